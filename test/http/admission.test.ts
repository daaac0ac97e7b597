import { afterEach, expect, test } from "bun:test";
import { handClock } from "../lib/hand-clock.ts";
import { type Answer, startTestServer, type TestServer } from "../support/test-server.ts";
import { hold } from "./held-request.ts";

let server: TestServer;
afterEach(() => server.stop());

/** No time passes, so that it gives nobody back what was used up, however long the requests take. */
const still = () => ({ clock: handClock() });

const statuses = (answers: { status: number }[]): Record<number, number> => {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};
const times = <T>(count: number, work: (at: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, at) => work(at)));

test("an address without a credential has a limit of requests a minute, whatever it asks for", async () => {
  server = await startTestServer({ ROOST_ADDRESS_REQUESTS: "20" }, still());
  const paths = ["/v1/skills", "/", "/docs", "/v1/no-such-path", "/v1/instances"];
  const before = await times(20, (at) => server.ask("GET", paths[at % paths.length] ?? "/"));
  expect(statuses(before)).toEqual({ 200: 12, 401: 4, 404: 4 });
  for (const path of paths) {
    const { status, body, headers } = await server.ask("GET", path);
    expect([path, status, body.error.code]).toEqual([path, 429, "rate_limited"]);
    expect(Number(headers.get("retry-after"))).toBeWithin(1, 61);
  }
  expect((await server.ask("POST", "/v1/auth/send-code", { body: {} })).status).toBe(429);
  expect((await server.ask("GET", "/healthz")).status).toBe(200);
  expect((await server.ask("GET", "/readyz")).status).toBe(200);
});

test("a caller with a valid credential is not delayed by others at the same address", async () => {
  server = await startTestServer({ ROOST_ADDRESS_REQUESTS: "30", ROOST_ADDRESS_REFUSALS: "5" }, still());
  const person = await server.signUp();
  await times(60, () => server.ask("GET", "/v1/instances", { token: "not.a.token" }));
  expect((await person.ask("GET", "/v1/auth/me")).status).toBe(200);
  expect((await person.ask("GET", "/v1/skills")).status).toBe(200);
  expect((await person.ask("GET", "/v1/no-such-path")).status).toBe(404);
  expect((await server.ask("GET", "/v1/skills")).status).toBe(429);
});

test("wrong codes, unknown invites and e-mails, and bad tokens are counted together", async () => {
  server = await startTestServer({ ROOST_ADDRESS_REFUSALS: "12" }, still());
  await server.signUp("ada@example.com");
  const refused = await times(16, async (at) => {
    const email = `nobody${at}@example.com`;
    if (at % 4 === 0) return server.ask("POST", "/v1/auth/send-code", { body: { email } });
    if (at % 4 === 1) return server.ask("POST", "/v1/auth/send-code", { body: { email, inviteCode: "roost-x" } });
    if (at % 4 === 2) return server.ask("GET", "/v1/auth/me", { key: "rst_live_wrong" });
    return server.ask("POST", "/v1/auth/verify-code", { body: { email: "ada@example.com", code: "12345678" } });
  });
  const counts = statuses(refused);
  expect([counts[429], (counts[401] ?? 0) + (counts[403] ?? 0)]).toEqual([4, 12]);
  expect((await server.ask("POST", "/v1/auth/redeem-link", { body: { link: "x" } })).status).toBe(429);
});

test("requests whose last byte is held back are checked when they are complete: nothing slips past the limit of refusals", async () => {
  server = await startTestServer({ ROOST_ADDRESS_REFUSALS: "10" }, still());
  const body = JSON.stringify({ email: "ada@example.com", code: "00000000" });
  const held = await times(40, () => hold(server.url, "POST", "/v1/auth/verify-code", body));
  const answers = await Promise.all(held.map((request) => request.release()));
  expect(statuses(answers)).toEqual({ 401: 10, 429: 30 });
});

test("an account has its reads and writes per second, and does not delay another account", async () => {
  server = await startTestServer({ ROOST_READS_PER_SECOND: "10", ROOST_WRITES_PER_SECOND: "2" }, still());
  const [busy, quiet] = [await server.signUp(), await server.signUp()];
  const reads = await times(100, () => busy.ask("GET", "/v1/auth/me"));
  expect(statuses(reads)[200]).toBeWithin(10, 60);
  expect(statuses(reads)[429]).toBeGreaterThan(0);
  const writes = await times(100, (at) => busy.ask("PATCH", "/v1/auth/me", { name: `Ada ${at}` }));
  expect(statuses(writes)[200]).toBeWithin(10, 40);
  const limited = writes.find(({ status }) => status === 429);
  expect(limited?.body.error.code).toBe("rate_limited");
  expect(Number(limited?.headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await quiet.ask("GET", "/v1/auth/me")).status).toBe(200);
  expect((await quiet.ask("PATCH", "/v1/auth/me", { name: "Quiet" })).status).toBe(200);
});

test("each request that an MCP client's message makes counts, also if they come in one batch", async () => {
  server = await startTestServer({ ROOST_WRITES_PER_SECOND: "2" }, still());
  const person = await server.signUp();
  const input = { approvalId: `apr_${"0".repeat(32)}`, decision: "deny" };
  const decide = (id: number) => ({
    ...{ jsonrpc: "2.0", id, method: "tools/call" },
    params: { name: "decide_approval", arguments: input },
  });
  const batch = Array.from({ length: 16 }, (_, id) => decide(id));
  const answer = await person.fetch("POST", "/v1/mcp", batch, { Accept: "application/json, text/event-stream" });
  const told = await answer.text();
  // Ten writes at once: the batch is one, and so is each decision in it.
  expect([told.match(/"text":"(\w+)/g)?.toSorted()]).toEqual([
    [...Array(9).fill('"text":"not_found'), ...Array(7).fill('"text":"rate_limited')],
  ]);
});

test("a large answer is paid for by the requests that follow", async () => {
  server = await startTestServer({ ROOST_READS_PER_SECOND: "40" }, still());
  const person = await server.signUp();
  const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "x" })).body;
  const files = Object.fromEntries([1, 2, 3].map((at) => [`${at}.md`, "x".repeat(200_000)]));
  const { agentId } = (await person.ask("POST", `/v1/instances/${instanceId}/agents`, { name: "big", files })).body;
  expect((await person.ask("GET", `/v1/instances/${instanceId}/agents/${agentId}`)).status).toBe(200);
  // 600 KB count as at least 146 ordinary answers, and the account has 40 a second.
  const next = await person.ask("GET", "/v1/auth/me");
  expect(next.status).toBe(429);
  expect(Number(next.headers.get("retry-after"))).toBeGreaterThanOrEqual(3);
});

test("a replayed answer costs as much as the first one", async () => {
  server = await startTestServer({ ROOST_WRITES_PER_SECOND: "10" }, still());
  const person = await server.signUp();
  const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "x" })).body;
  const agent = { name: "big", files: { "1.md": "x".repeat(90_000) } };
  const create = () =>
    person.ask("POST", `/v1/instances/${instanceId}/agents`, agent, { "Idempotency-Key": "same-each-time" });
  expect((await create()).status).toBe(201);
  // The request counts as two ordinary ones, its answer as 22 more once it is known; the account can save up fifty.
  const again: Answer[] = [];
  while (again.length < 10) again.push(await create());
  expect(statuses(again)[201] ?? 0).toBeLessThan(5);
  expect(statuses(again)[429]).toBeGreaterThan(5);
});

test("a suspended account is held to the limits of its address", async () => {
  server = await startTestServer({ ROOST_ADDRESS_REQUESTS: "20" }, still());
  const person = await server.signUp();
  server.foundation.accounts.setSuspended(person.accountId, true);
  const answers = await times(40, (at) => person.ask("GET", at % 2 === 0 ? "/v1/auth/me" : "/v1/skills"));
  expect(statuses(answers)[429]).toBeGreaterThan(20);
  expect((await server.ask("GET", "/v1/skills")).status).toBe(429);
});

test("an operator's limit for one account applies within a second, and only to it", async () => {
  server = await startTestServer();
  const [limited, other] = [await server.signUp(), await server.signUp()];
  const { store } = server.foundation;
  store.transaction(() => store.sqlite.run("INSERT INTO account_limits VALUES (?, 'reads', 1)", [limited.accountId]));
  let answer = await limited.ask("GET", "/v1/auth/me");
  while (answer.status === 200) answer = await limited.ask("GET", "/v1/auth/me");
  expect(answer.status).toBe(429);
  expect(statuses(await times(20, () => other.ask("GET", "/v1/auth/me")))).toEqual({ 200: 20 });
});

test.each(["/docs/swagger-ui.js", "/openapi.json"])(
  "no address has the host send %s again and again: it counts as several requests",
  async (path) => {
    server = await startTestServer({ ROOST_ADDRESS_REQUESTS: "100" }, still());
    const ask = async () => {
      const response = await fetch(new URL(path, server?.url), { headers: { "Accept-Encoding": "identity" } });
      return [response.status, (await response.bytes()).byteLength] as const;
    };
    const sent: number[] = [];
    for (let [status, bytes] = await ask(); status === 200; [status, bytes] = await ask()) sent.push(bytes);
    const [size = 0] = sent;
    expect(size).toBeGreaterThan(65_536);
    expect(sent.length).toBe(Math.ceil(100 / (1 + Math.floor(size / 65_536))));
  },
);
