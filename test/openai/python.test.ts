import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { PERSON, type Surface, startSurface, WEATHER } from "./surface.ts";

const CLIENT = "openai==3.54.0";
/** Kept between runs. */
const VENV = join(import.meta.dir, `../../node_modules/.cache/python-${CLIENT.replace("==", "-")}`);

/** OpenAI's client in an environment of its own; or why there is none. */
async function installClient(): Promise<string | null> {
  if (existsSync(VENV)) return null;
  const python = Bun.which("python3");
  if (python === null) return "there is no python3 on this machine";
  const making = `${VENV}.${process.pid}`;
  const run = async (...command: string[]) => {
    const child = Bun.spawn(command, { stdio: ["ignore", "ignore", "ignore"], timeout: 240_000 });
    return (await child.exited) === 0;
  };
  try {
    if (!(await run(python, "-m", "venv", making))) return "python3 has no venv";
    const pip = [join(making, "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", CLIENT];
    if (!(await run(...pip))) return `${CLIENT} could not be installed: is there a network?`;
    if (!existsSync(VENV)) renameSync(making, VENV);
    return null;
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
}

const missing = await installClient();

let it: Surface;
beforeAll(async () => {
  it = await startSurface({ ROOST_ADDRESS_REFUSALS: "5" });
});
afterAll(() => it.stop());

test.skipIf(missing !== null)(
  `OpenAI's client for Python does what its README shows${missing === null ? "" : ` (skipped: ${missing})`}`,
  async () => {
    it.when(
      "call a function",
      { kind: "tools", calls: [{ name: "get_weather", arguments: { city: "Paris" } }] },
      {
        kind: "text",
        tokens: ["It is warm."],
      },
    );
    it.when("answer in JSON", { kind: "text", tokens: ['{"name": "Ada", ', '"age": 36}'] });
    const made = async (path: string, body: object) => (await it.person.ask("POST", path, body)).body;
    const { instanceId } = await made("/v1/instances", { name: "stopped" });
    const { agentId: stopped } = await made(`/v1/instances/${instanceId}/agents`, { name: "Bo" });
    await made(`/v1/instances/${instanceId}/stop`, {});
    const child = Bun.spawn([join(VENV, "bin/python"), join(import.meta.dir, "client.py")], {
      env: {
        BASE_URL: it.baseURL,
        KEY: it.key,
        AGENT: it.agent,
        STOPPED: stopped,
        WEATHER: JSON.stringify(WEATHER),
        PERSON: JSON.stringify(PERSON),
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const textOf = (stream: ReadableStream<Uint8Array>) => new Response(stream as unknown as BodyInit).text();
    const [told, errors] = await Promise.all([textOf(child.stdout), textOf(child.stderr)]);
    expect([await child.exited, errors]).toEqual([0, ""]);
    const { response_events, ...got } = JSON.parse(told);
    expect(got).toEqual({
      models: expect.arrayContaining([it.agent, "local:all-minilm-l6-v2"]),
      chat: "Hello, world",
      chat_stream: "Hello, world",
      response: "Hello, world",
      continued: "Hello, world",
      call: ["get_weather", { city: "Paris" }],
      after_call: "It is warm.",
      structured: { name: "Ada", age: 36 },
      embeddings: [384, 384],
      errors: [
        ["AuthenticationError", 401, "unauthorized", null],
        ["NotFoundError", 404, "not_found", "model"],
        ["BadRequestError", 400, "invalid_request", "n"],
        ["InternalServerError", 503, "instance_not_ready", null],
        ["RateLimitError", 429, "rate_limited", null],
      ],
    });
    expect(response_events.at(0)).toBe("response.created");
    expect(response_events).toContain("response.output_text.delta");
    expect(response_events.at(-1)).toBe("response.completed");
  },
);
