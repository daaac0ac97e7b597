import { afterAll, beforeAll, expect, test } from "bun:test";
import type OpenAI from "openai";
import type { APIError } from "openai";
import { MAX_BODY_BYTES, MAX_CONVERSATION_BYTES } from "../../src/limits/body-bytes.ts";
import { type Surface, startSurface } from "./surface.ts";

let it: Surface;
beforeAll(async () => {
  it = await startSurface();
});
afterAll(() => it.stop());

const image = (bytes: number) => `data:image/png;base64,${"iVBOR/0K".repeat(bytes / 8)}`;
const asked = (url: string, text = "What is this?") => [
  { type: "text" as const, text },
  { type: "image_url" as const, image_url: { url } },
];
const chat = (content: OpenAI.ChatCompletionContentPart[]) =>
  it.client.chat.completions.create({ model: it.agent, messages: [{ role: "user", content }] });
const failing = (asked: Promise<unknown>): Promise<APIError> =>
  asked.then(
    () => expect.unreachable(),
    (error: APIError) => error,
  );

test("images of 4 MiB with all else reach the model as they are, on both surfaces", async () => {
  const url = image(MAX_CONVERSATION_BYTES - 4_096);
  await chat(asked(url));
  expect(it.asked()[0]?.content).toEqual(asked(url));
  const response = await it.client.responses.create({
    model: it.agent,
    input: [{ role: "user", content: [{ type: "input_image", image_url: url, detail: "auto" }] }],
  });
  expect(response.output_text).toBe("Hello, world");
});

test("an image is escaped as a client likes", async () => {
  const url = image(MAX_BODY_BYTES);
  const body = JSON.stringify({ model: it.agent, messages: [{ role: "user", content: asked(url) }] });
  const answer = await fetch(`${it.baseURL}/chat/completions`, {
    method: "POST",
    headers: { Authorization: `Bearer ${it.key}`, "Content-Type": "application/json" },
    body: body.replaceAll("/", "\\/"),
  });
  expect(answer.status).toBe(200);
  expect(it.asked()[0]?.content).toEqual(asked(url));
});

test("more is 413, and so is a mebibyte of anything else", async () => {
  for (const content of [
    asked(image(MAX_CONVERSATION_BYTES)),
    asked(image(8), "x".repeat(MAX_BODY_BYTES)),
    asked(image(MAX_BODY_BYTES), "x".repeat(MAX_BODY_BYTES)),
  ]) {
    expect(await failing(chat(content))).toMatchObject({ status: 413, code: "payload_too_large" });
  }
  const items = [{ role: "user" as const, content: "x".repeat(MAX_BODY_BYTES) }];
  const error = await failing(it.client.responses.create({ model: it.agent, input: items }));
  expect(error).toMatchObject({ status: 413, error: { message: expect.stringContaining("besides its images") } });
});

test("a body of unknown length is an ordinary one", async () => {
  const url = image(MAX_BODY_BYTES);
  const body = JSON.stringify({ model: it.agent, messages: [{ role: "user", content: asked(url) }] });
  const answer = await fetch(`${it.baseURL}/chat/completions`, {
    method: "POST",
    headers: { Authorization: `Bearer ${it.key}`, "Content-Type": "application/json" },
    body: new Blob([body]).stream().pipeThrough(new TransformStream()),
  });
  expect(answer.status).toBe(413);
});

test("a text of escapes alone is refused before it is read", async () => {
  const text = "\n".repeat(MAX_BODY_BYTES / 2 + 1);
  expect(await failing(chat([{ type: "text", text }]))).toMatchObject({
    status: 400,
    error: { message: expect.stringContaining("524288 escapes") },
  });
});

test("a continued response still has its last images, of which more than one have room", async () => {
  const ask = async (of: string, previous: string | null) => {
    const content = [{ type: "input_image" as const, image_url: of, detail: "auto" as const }];
    const input = [{ role: "user" as const, content }];
    return (await it.client.responses.create({ model: it.agent, input, previous_response_id: previous })).id;
  };
  const urls = [3, 2, 1].map((mebibytes) => image(mebibytes * MAX_BODY_BYTES));
  let last: string | null = null;
  for (const url of urls) last = await ask(url, last);
  await it.client.responses.create({ model: it.agent, input: "What were they?", previous_response_id: last });
  const shown = it.asked().flatMap(({ role, content }) => (role === "user" && Array.isArray(content) ? content : []));
  expect(shown.flatMap((part) => part.image_url?.url ?? []).map((url) => urls.indexOf(url))).toEqual([1, 2]);
});
