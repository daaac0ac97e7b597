import { afterAll, expect, test } from "bun:test";
import type { OpenApi } from "../support/openapi-check.ts";
import { startSurface } from "./surface.ts";

const it = await startSurface();
afterAll(() => it.stop());
const document: OpenApi = (await it.server.ask("GET", "/openapi.json")).body;

/** The events of a stream: the name of each, and its data with nothing but the kinds of its values. */
const formsOf = (stream: string) =>
  stream
    .trimEnd()
    .split("\n\n")
    .map((frame) =>
      frame.replace(/^data: (\{.*)$/m, (_, json) => `data: ${JSON.stringify(kindsIn(JSON.parse(json)))}`),
    );

const kindsIn = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (key, inner) => {
    if (key === "id" || key.endsWith("_id")) return String(inner).replace(/(?<=[_-])[0-9a-f]{32}/, "…");
    return typeof inner === "number" || (key !== "type" && typeof inner === "string") ? typeof inner : inner;
  });

test.each([
  ["/v1/chat/completions", { messages: [{ role: "user", content: "Hello" }] }],
  ["/v1/responses", { input: "Hello" }],
])("the document's example of a stream of %s has the events of a real one, in the same form", async (path, asked) => {
  it.mock.script({ kind: "text", tokens: ["One", " two"], delayMs: 5 });
  const answer = await fetch(`${it.server.url}${path}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${it.key}`, "Content-Type": "application/json" },
    body: JSON.stringify({ model: it.agent, stream: true, ...asked }),
  });
  const real = formsOf(await answer.text());
  const content = document.paths[path]?.post?.responses["200"]?.content;
  const shown = formsOf(String(content?.["text/event-stream"]?.example));
  // How the text is cut into pieces is the host's affair.
  expect([...new Set(shown)]).toEqual([...new Set(real)]);
});
