import { afterEach, expect, test } from "bun:test";
import { createOllamaWatch } from "../../src/models/ollama.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

type Served = { status?: number; body: string | object };
const ollamas: Bun.Server<undefined>[] = [];
const servers: TestServer[] = [];
afterEach(async () => {
  for (const ollama of ollamas.splice(0)) await ollama.stop(true);
  for (const server of servers.splice(0)) await server.stop();
});

/** Waits for it as long as a busy machine takes. */
const watch = (baseUrl: string, now = () => 0) => createOllamaWatch({ baseUrl, deadlineMs: 60_000 }, now);

/** A server that answers only on /v1/models, and counts the requests. */
function serve(answer: () => Served | Promise<Served>): { url: string; asked: () => number } {
  let asked = 0;
  const ollama = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      if (new URL(request.url).pathname !== "/v1/models") return new Response(null, { status: 404 });
      asked++;
      const { status = 200, body } = await answer();
      return new Response(typeof body === "string" ? body : JSON.stringify(body), { status });
    },
  });
  ollamas.push(ollama);
  return { url: `http://127.0.0.1:${ollama.port}/v1`, asked: () => asked };
}
const models = (...ids: string[]): Served => ({
  body: { object: "list", data: ids.map((id) => ({ id, object: "model" })) },
});

test("models that can chat are offered, but not names that a shell could interpret", async () => {
  const { url } = serve(() =>
    models(
      "qwen3:8b",
      "nomic-embed-text:latest",
      "hf.co/org/Model-GGUF:Q4_K_M",
      "x'; rm -rf ~; '",
      "$(id)",
      "a\nb",
      "",
    ),
  );
  expect(await watch(url)()).toEqual({
    baseUrl: url,
    models: ["qwen3:8b", "hf.co/org/Model-GGUF:Q4_K_M"],
  });
});

test.each([
  ["no list", { body: "<html>" }],
  ["another shape", { body: { models: [] } }],
  ["no model", models()],
  ["no model that talks", models("all-minilm:latest")],
  ["a refusal", { ...models("qwen3:8b"), status: 401 }],
  ["a redirect", { status: 302, body: "" }],
  ["more than is read", { body: { data: [{ id: "a".repeat(2 * 1024 * 1024) }] } }],
] as const)("%s is not an Ollama", async (_, served) => {
  const { url } = serve(() => served);
  expect(await watch(url)()).toBeNull();
});

test("concurrent callers, and those within half a minute, share one request", async () => {
  let now = 0;
  const { url, asked } = serve(() => models("qwen3:8b"));
  const look = watch(url, () => now);
  await Promise.all([look(), look(), look()]);
  now = 29_999;
  await look();
  expect(asked()).toBe(1);
  now = 30_000;
  await look();
  expect(asked()).toBe(2);
});

async function hostWith(settings: Record<string, string> = {}) {
  const { url, asked } = serve(() => models("qwen3:8b"));
  const server = await startTestServer(settings, { ollamaUrl: url });
  servers.push(server);
  return { url, asked, server, person: await server.signUp() };
}

test("an Ollama is shown to clients on this machine, but not through a proxy or under another host name", async () => {
  const { url, asked, server, person } = await hostWith({ ROOST_PUBLIC_URL: "https://agents.example.com" });
  for (const headers of [{ "X-Forwarded-For": "192.0.2.1" }, { Via: "1.1 proxy" }, { Host: "agents.example.com" }]) {
    const { body } = await person.ask("GET", "/v1/host", undefined, headers);
    expect(body).toEqual({ model: "local:smollm2-135m-instruct", ollama: null });
  }
  expect(asked()).toBe(0);
  const { body } = await person.ask("GET", "/v1/host");
  expect(body.ollama).toEqual({ baseUrl: url, models: ["qwen3:8b"], settingsFile: `${server.dataDir}/roost.toml` });
});

test("if the operator has chosen a model, nothing is offered and Ollama is not searched for", async () => {
  const { asked, person } = await hostWith({
    ROOST_MODEL: "openai:mock",
    ROOST_OPENAI_BASE_URL: "http://127.0.0.1:9/v1",
  });
  expect((await person.ask("GET", "/v1/host")).body).toEqual({ model: "openai:mock", ollama: null });
  expect(asked()).toBe(0);
});
