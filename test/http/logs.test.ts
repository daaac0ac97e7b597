import { expect, test } from "bun:test";
import { pino } from "pino";
import { startMcpService } from "../mcp/mcp-service.ts";
import { startMockModelServer } from "../support/mock-model-server.ts";
import { startTestServer } from "../support/test-server.ts";

test("no code, token, key, secret or message text is logged, even at the lowest log level", async () => {
  await using mock = Object.assign(startMockModelServer(), {
    [Symbol.asyncDispose]: async () => mock.stop(),
  });
  const lines: string[] = [];
  const log = pino({ level: "trace" }, { write: (line: string) => void lines.push(line) });
  const settings = { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url, ROOST_OPENAI_API_KEY: "sk-hidden" };
  const server = await startTestServer(settings, { log });
  const secrets = ["sk-hidden"];
  try {
    const person = await server.signUp("quiet@example.com");
    const mailed = server.foundation.outbox.list()[0]?.code ?? "no code";
    const { key } = (await person.ask("POST", "/v1/auth/keys", {})).body;
    secrets.push(person.token, mailed, key);
    const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "home" })).body;
    const at = `/v1/instances/${instanceId}`;
    await person.ask("POST", `${at}/secrets`, { key: "TOKEN", value: "s3cret-value" });
    const { agentId } = (await person.ask("POST", `${at}/agents`, { name: "Ada" })).body;
    await person.ask("POST", `${at}/agents/${agentId}/messages`, { message: "between-you-and-me" });
    mock.script({ kind: "status", status: 400, body: { error: { message: "between-you-and-me sk-hidden" } } });
    const failed = await person.ask("POST", `${at}/agents/${agentId}/messages`, { message: "between-you-and-me" });
    expect(failed.status).toBe(502);
    await server.ask("GET", "/v1/auth/me", { token: `${person.token}x` });
    await server.ask("POST", "/v1/auth/verify-code", { body: { email: "quiet@example.com", code: mailed } });
    secrets.push("s3cret-value", "between-you-and-me", "I am the mock");
  } finally {
    await server.stop();
  }
  const all = lines.join("");
  expect(lines.length).toBeGreaterThan(8);
  expect(secrets.filter((secret) => all.includes(secret))).toEqual([]);
});

test("why a credential is refused is in the log, and not in the answer", async () => {
  const reasons: (string | undefined)[] = [];
  const told = (line: string) => {
    const { status, reason } = JSON.parse(line);
    if (status === 401) reasons.push(reason);
  };
  const server = await startTestServer({}, { log: pino({ level: "debug" }, { write: told }) });
  await using _ = { [Symbol.asyncDispose]: () => server.stop() };
  const [{ token, ask }, other] = [await server.signUp(), await server.signUp()];
  await ask("POST", "/v1/auth/sign-out");
  const refused = [
    {},
    { Authorization: "Basic YWRhOmxvdmVsYWNl" },
    { "X-API-Key": "rst_live_nobodys" },
    { Authorization: "Bearer of.good.news" },
    { Authorization: `Bearer ${other.token}x` },
    { Authorization: `Bearer ${token}` },
  ];
  const answers = await Promise.all(refused.map((headers) => server.ask("GET", "/v1/auth/me", { headers })));
  const messages = new Set(answers.map(({ body }) => body.error.message));
  expect([...messages]).toEqual(["missing or invalid credentials: send Authorization: Bearer <token>, or X-API-Key"]);
  expect(reasons.sort()).toEqual([
    "invalid or expired token",
    "no bearer token",
    "no credential",
    "token of an unknown key",
    "token signed out",
    "unknown or expired key",
  ]);
});

test.each([{}, { "Idempotency-Key": "once" }])(
  "a client that leaves while an MCP server is asked is no fault of the host: %p",
  async (headers) => {
    const service = startMcpService("2025");
    const told = Promise.withResolvers<string>();
    const write = (line: string) => void (line.includes("/mcp-servers") && told.resolve(line));
    const server = await startTestServer(
      { ROOST_EGRESS: `public,${service.host}` },
      { log: pino({ level: "debug" }, { write }) },
    );
    const person = await server.signUp();
    const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "home" })).body;
    const leaving = new AbortController();
    service.intercept = () => {
      leaving.abort();
      return new Promise(() => {});
    };
    const asked = fetch(`${server.url}/v1/instances/${instanceId}/mcp-servers`, {
      method: "POST",
      headers: { Authorization: `Bearer ${person.token}`, "Content-Type": "application/json", ...headers },
      body: JSON.stringify({ name: "docs", url: service.url }),
      signal: leaving.signal,
    });
    expect(String(await asked.catch((error: unknown) => error))).toContain("AbortError");
    expect(JSON.parse(await told.promise)).toMatchObject({ level: 20, status: 499, msg: "request" });
    await server.stop();
    await service.stop();
  },
);
