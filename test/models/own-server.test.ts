import { afterAll, beforeAll, expect, test } from "bun:test";
import { pino } from "pino";
import { startMockModelServer } from "../support/mock-model-server.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";

const KEY = "sk-of-the-tenant";
const hostServer = startMockModelServer();
const ownServer = startMockModelServer();
const logged: string[] = [];
let server: TestServer;
let person: Person;

beforeAll(async () => {
  const log = pino({ level: "trace" }, { write: (line: string) => void logged.push(line) });
  server = await startTestServer(
    {
      ROOST_MODEL: "openai:host-model",
      ROOST_OPENAI_BASE_URL: hostServer.url,
      ROOST_EGRESS: `public,127.0.0.1:${ownServer.port}`,
    },
    { log },
  );
  person = await server.signUp();
});
afterAll(async () => {
  await server.stop();
  await Promise.all([hostServer.stop(), ownServer.stop()]);
});

/** An instance with these secrets, and an agent in it. */
async function start(secrets: Record<string, string>, model: string | null, owner = person) {
  const { instanceId } = (await owner.ask("POST", "/v1/instances", { name: "home" })).body;
  const at = `/v1/instances/${instanceId}`;
  const set = (values: Record<string, string>) => owner.ask("POST", `${at}/secrets`, { secrets: values });
  if (Object.keys(secrets).length > 0) await set(secrets);
  const created = await owner.ask("POST", `${at}/agents`, { name: "Ada", model });
  const say = () => owner.ask("POST", `${at}/agents/${created.body.agentId}/messages`, { message: "Hello?" });
  return { at, instanceId, created, say, set };
}

test("an instance's own server answers for its agents, with its key and any of its models, and for nobody else's", async () => {
  const before = hostServer.requests.length;
  const own = await start({ OPENAI_BASE_URL: `${ownServer.url}\n`, OPENAI_API_KEY: KEY }, "openai:their-model");
  expect(own.created.status).toBe(201);
  const answer = await own.say();
  expect(answer.body.message).toBe("Hello, I am the mock model.");
  const asked = ownServer.requests.at(-1);
  expect(asked?.headers).toMatchObject({ authorization: `Bearer ${KEY}`, "accept-encoding": "identity" });
  expect(asked?.body).toMatchObject({ model: "their-model", stream: true });
  expect(hostServer.requests.length).toBe(before);

  const other = await start({}, null);
  await other.say();
  expect(hostServer.requests.length).toBe(before + 1);
  expect((await start({}, "openai:their-model")).created.status).toBe(400);
  expect(logged.join("")).not.toContain(KEY);
});

test("its secrets' use is in the audit log, once until they change; new ones hold from the next call", async () => {
  const own = await start({ OPENAI_BASE_URL: ownServer.url, OPENAI_API_KEY: "first-key" }, "openai:their-model");
  const uses = () =>
    server.foundation.audit
      .read(0, 1_000)
      .filter(({ action, subject }) => action === "secret.use" && subject === own.instanceId).length;
  await own.say();
  await own.say();
  expect(uses()).toBe(2);
  await own.set({ OPENAI_API_KEY: "second-key" });
  await own.say();
  expect(ownServer.requests.at(-1)?.headers.authorization).toBe("Bearer second-key");
  expect(uses()).toBe(4);
  await person.ask("DELETE", `${own.at}/secrets/OPENAI_BASE_URL`);
  const refused = await own.say();
  expect([refused.status, refused.body.error.message]).toEqual([
    502,
    expect.stringContaining("does not offer the model"),
  ]);
});

test.each([
  ["http://127.0.0.1:9/v1", "127.0.0.1:9 has an address that is not public"],
  ["http://169.254.169.254/v1", "has an address that is not public"],
  ["file:///etc/passwd", "is not a URL"],
  ["nonsense", "is not a URL"],
])("a server at %s is refused, in words for its owner, and nothing is asked", async (url, reason) => {
  const before = [hostServer.requests.length, ownServer.requests.length];
  const { say } = await start({ OPENAI_BASE_URL: url, OPENAI_API_KEY: KEY }, "openai:their-model");
  const { status, body } = await say();
  expect(status).toBe(502);
  expect(body.error.message).toContain(reason);
  expect([hostServer.requests.length, ownServer.requests.length]).toEqual(before);
});

test("a key or a URL that is longer than any is refused, in words for its owner, and nothing is asked", async () => {
  const before = ownServer.requests.length;
  const longest = "k".repeat(8_192);
  const { say, set } = await start({ OPENAI_BASE_URL: ownServer.url, OPENAI_API_KEY: `${longest}k` }, "openai:a");
  const { status, body } = await say();
  expect([status, body.error.message]).toEqual([
    502,
    "The secret OPENAI_API_KEY is no API key: expected at most 8192 characters.",
  ]);
  expect(ownServer.requests.length).toBe(before);
  await set({ OPENAI_API_KEY: longest });
  expect((await say()).status).toBe(200);
  await set({ OPENAI_BASE_URL: `${ownServer.url}/${"/".repeat(8_192)}x` });
  expect((await say()).body.error.message).toContain("The secret OPENAI_BASE_URL is not a URL");
});

test("its owner is told what it says, without the key", async () => {
  const { say } = await start({ OPENAI_BASE_URL: ownServer.url, OPENAI_API_KEY: KEY }, "openai:their-model");
  ownServer.script({ kind: "status", status: 403, body: { error: { message: `no rights for ${KEY}` } } });
  const { body } = await say();
  expect(body.error.message).toContain("check the secret OPENAI_API_KEY and its rights: no rights for …");
});

test("the longest answer is what the operator has set, also on a host without a server of its own", async () => {
  const settings = { ROOST_ANSWER_TOKENS: "64", ROOST_EGRESS: `public,127.0.0.1:${ownServer.port}` };
  const alone = await startTestServer(settings);
  try {
    const { say } = await start({ OPENAI_BASE_URL: ownServer.url }, "openai:their-model", await alone.signUp());
    expect((await say()).status).toBe(200);
    expect(ownServer.requests.at(-1)?.body.max_tokens).toBe(64);
  } finally {
    await alone.stop();
  }
});

test("a run that is cancelled leaves its own server at once", async () => {
  const { at, created, say } = await start({ OPENAI_BASE_URL: ownServer.url }, "openai:their-model");
  const arrived = ownServer.requests.length + 1;
  ownServer.script({ kind: "text", tokens: ["never ", "ending"], ending: "hang" });
  const answer = say();
  await ownServer.arrived(arrived);
  const runs = `${at}/agents/${created.body.agentId}/runs`;
  const [{ runId }] = (await person.ask("GET", runs)).body.data;
  expect((await person.ask("POST", `${runs}/${runId}/cancel`)).body.status).toBe("cancelled");
  await ownServer.left(1);
  expect((await answer).body.finishReason).toBe("cancelled");
});
