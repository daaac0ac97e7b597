import { afterAll, expect, test } from "bun:test";
import { parseMoney } from "../../src/lib/money.ts";
import { HOUR, handClock } from "../lib/hand-clock.ts";
import { startMockModelServer } from "../support/mock-model-server.ts";
import { startTestServer } from "../support/test-server.ts";
import { differences } from "./comparing.ts";
import { readContract } from "./pages.ts";

/** A request as a page shows it, and the answer that follows. */
interface Example {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
  status: number;
  answerHeaders: Record<string, string>;
  answer: string;
}

const model = startMockModelServer({
  answer: {
    kind: "text",
    tokens: ["A slim novel. A train asks for chapters that end."],
    usage: { prompt_tokens: 41, completion_tokens: 11 },
  },
});
const clock = handClock(Date.UTC(2026, 10, 21, 10));
const server = await startTestServer({ ROOST_MODEL: "openai:llama3.1", ROOST_OPENAI_BASE_URL: model.url }, { clock });
afterAll(async () => {
  await server.stop();
  await model.stop();
});

/** Values from the answers of earlier examples, for later ones: `$TOKEN`, `$INSTANCE`, and so on. */
const given: Record<string, string> = {
  INVITE: server.foundation.invites.create({ uses: 1, credit: parseMoney("10") ?? 0n, lifeMs: 3_600_000 }).code,
};
const NAMED: Readonly<Record<string, string>> = {
  TOKEN: "token",
  KEY: "key",
  INSTANCE: "instanceId",
  AGENT: "agentId",
  RUN: "runId",
};

function fill(text: string): string {
  const code = server.foundation.outbox.list()[0]?.code ?? "";
  return text.replaceAll(/\$([A-Z]+)/g, (whole, name: string) => (name === "CODE" ? code : (given[name] ?? whole)));
}

/** An example with the values of earlier ones filled in; its own values match any text. */
const expected = (text: string): string => fill(text).replaceAll(/\$[A-Z]+/g, "…");

function keepWhatIsNamed(example: Example, answer: unknown): void {
  if (typeof answer !== "object" || answer === null) return;
  for (const [name, member] of Object.entries(NAMED)) {
    const value = (answer as Record<string, unknown>)[member];
    if (example.answer.includes(`"${member}": "$${name}"`) && typeof value === "string") given[name] = value;
  }
}

const parseHeaders = (lines: string[]): Record<string, string> =>
  Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));

function parse(block: string): Example {
  const [request = "", answer = ""] = block.split(/^HTTP\/1\.1 /m);
  const split = (text: string): [string[], string] => {
    const at = text.indexOf("\n\n");
    return at < 0 ? [text.trimEnd().split("\n"), ""] : [text.slice(0, at).split("\n"), text.slice(at + 2).trimEnd()];
  };
  const [[first = "", ...headers], body] = split(request.trimEnd());
  const [[status = "", ...answerHeaders], shown] = split(answer);
  const [method = "", path = ""] = first.split(" ");
  return {
    ...{ method, path, headers: parseHeaders(headers), body },
    ...{ status: Number(status), answerHeaders: parseHeaders(answerHeaders), answer: shown },
  };
}

/** An event stream as objects: its `retry`, and each event with its parsed data. */
const framesOf = (text: string): unknown[] =>
  text
    .trim()
    .split("\n\n")
    .map((frame) =>
      Object.fromEntries(
        frame.split("\n").map((line) => {
          const at = line.indexOf(": ");
          const value = line.slice(at + 2);
          return [line.slice(0, at), line.startsWith("data:") ? JSON.parse(value) : value];
        }),
      ),
    );

/** The run in a stream is another one than in the example before it. */
const withoutRun = (example: Example): Example =>
  example.answer.startsWith("retry:") ? { ...example, answer: example.answer.replaceAll("$RUN", "…") } : example;

async function send({ method, path, headers, body }: Example): Promise<{ response: Response; text: string }> {
  const filled = Object.entries(headers).map(([name, value]): [string, string] => [name, fill(value)]);
  const response = await fetch(new URL(fill(path), server.url), {
    method,
    headers: filled,
    ...(body === "" ? {} : { body: fill(body) }),
  });
  return { response, text: await response.text() };
}

let hours = 0;

/** What has happened before this request according to the page: an hour of running, the end of an asynchronous run. */
async function comeTo({ path }: Example): Promise<void> {
  if (path.startsWith("/v1/billing") && hours === 0) {
    clock.advance(++hours * HOUR);
    await server.app.meterTimer.tick();
  }
  const run = /\/agents\/(agt_\w+)\/runs\/(run_\w+)$/.exec(fill(path));
  if (!run) return;
  const events = await fetch(new URL(`${fill(path).replace(/\/runs\/.*/, "/events")}?runId=${run[2]}`, server.url), {
    headers: { "X-API-Key": given.KEY ?? "" },
  });
  await events.text();
}

const { api } = await readContract();
const examples = api.blocks
  .filter(({ language }) => language === "http")
  .map(({ content }) => withoutRun(parse(content)));

test("the page has examples", () => expect(examples.length).toBeGreaterThan(20));

// In the order of the page: each may use values of the ones before it.
test.each(examples.map((example, at): [string, Example] => [`${at + 1}: ${example.method} ${example.path}`, example]))(
  "example %s is answered as the page shows",
  async (_, example) => {
    await comeTo(example);
    const { response, text } = await send(example);
    const isStream = example.answer.startsWith("retry:");
    const answer = isStream ? framesOf(text) : JSON.parse(text);
    if (!isStream) keepWhatIsNamed(example, answer);
    const shown = expected(example.answer);
    expect({ status: response.status, text }).toMatchObject({ status: example.status });
    expect(differences(isStream ? framesOf(shown) : JSON.parse(shown), answer)).toEqual([]);
    for (const [name, value] of Object.entries(example.answerHeaders)) {
      expect(differences(value, response.headers.get(name), name)).toEqual([]);
    }
  },
);
