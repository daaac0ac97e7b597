import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { HOUR, handClock, MINUTE } from "../lib/hand-clock.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";
import { signedToken } from "./signed-token.ts";

/**
 * What docs/contract/api.md, Scopes, requires of a caller, route by route, written down separately from the routes' own
 * declarations.
 */
interface Rule {
  needs: "nobody" | Level;
  /** For the whole account: not for a key with an `instanceId`. */
  whole?: true;
  /** What an authorised caller gets: the status, and for a 404 what does not exist. */
  passes: number | `404 ${string}`;
  body?: unknown;
  /** An authorised caller uses something up, so that the next one needs a fresh world. */
  spends?: true;
}

const AGENTS = "/v1/instances/:instanceId/agents";
const AGENT = `${AGENTS}/:agentId`;
const SERVERS = "/v1/instances/:instanceId/mcp-servers";
const RULES: Record<string, Rule> = {
  "POST /v1/auth/send-code": { needs: "nobody", passes: 400 },
  "POST /v1/auth/verify-code": { needs: "nobody", passes: 400 },
  "POST /v1/auth/redeem-link": { needs: "nobody", passes: 400 },
  "GET /v1/auth/me": { needs: "read", passes: 200 },
  "PATCH /v1/auth/me": { needs: "write", whole: true, body: { name: "me" }, passes: 200 },
  "POST /v1/auth/keys": { needs: "keys", body: {}, passes: 201 },
  "GET /v1/auth/keys": { needs: "keys", passes: 200 },
  "DELETE /v1/auth/keys/:keyId": { needs: "keys", passes: 200, spends: true },
  "POST /v1/auth/revoke-tokens": { needs: "keys", passes: 200, spends: true },
  "POST /v1/auth/sign-out": { needs: "token", passes: 200, spends: true },
  "POST /v1/instances": { needs: "write", whole: true, body: { name: "new" }, passes: 201 },
  "GET /v1/instances": { needs: "read", passes: 200 },
  "GET /v1/instances/:instanceId": { needs: "read", passes: 200 },
  "PATCH /v1/instances/:instanceId": { needs: "write", body: { name: "renamed" }, passes: 200 },
  "POST /v1/instances/:instanceId/stop": { needs: "write", passes: 200 },
  "POST /v1/instances/:instanceId/start": { needs: "write", passes: 200 },
  "DELETE /v1/instances/:instanceId": { needs: "write", passes: 200, spends: true },
  [`POST ${AGENTS}`]: { needs: "write", body: { name: "another" }, passes: 201 },
  [`GET ${AGENTS}`]: { needs: "read", passes: 200 },
  [`GET ${AGENT}`]: { needs: "read", passes: 200 },
  [`PATCH ${AGENT}`]: { needs: "write", body: { name: "renamed" }, passes: 200 },
  [`DELETE ${AGENT}`]: { needs: "write", passes: 200, spends: true },
  [`GET ${AGENT}/bundle`]: { needs: "read", passes: 200 },
  "POST /v1/instances/:instanceId/import": { needs: "write", body: "no bundle", passes: 400 },
  [`GET ${AGENT}/tools`]: { needs: "read", passes: 200 },
  [`GET ${AGENT}/files`]: { needs: "read", passes: 200 },
  [`GET ${AGENT}/files/*`]: { needs: "read", passes: 200 },
  [`PUT ${AGENT}/files/*`]: { needs: "write", body: "text", passes: 200 },
  [`DELETE ${AGENT}/files/*`]: { needs: "write", passes: 200, spends: true },
  [`POST ${AGENT}/messages`]: { needs: "chat", body: { message: " " }, passes: 400 },
  [`GET ${AGENT}/messages`]: { needs: "read", passes: 200 },
  [`DELETE ${AGENT}/messages`]: { needs: "write", passes: 200 },
  [`POST ${AGENT}/conversations`]: { needs: "chat", body: { title: "Plans" }, passes: 201 },
  [`GET ${AGENT}/conversations`]: { needs: "read", passes: 200 },
  [`GET ${AGENT}/conversations/:conversationId`]: { needs: "read", passes: 200 },
  [`PATCH ${AGENT}/conversations/:conversationId`]: { needs: "chat", body: { title: null }, passes: 200 },
  [`DELETE ${AGENT}/conversations/:conversationId`]: { needs: "chat", passes: 200, spends: true },
  [`GET ${AGENT}/context`]: { needs: "read", passes: 200 },
  [`POST ${AGENT}/conversations/:conversationId/fork`]: {
    needs: "chat",
    body: { messageId: `msg_${"0".repeat(32)}` },
    passes: "404 message",
  },
  [`GET ${AGENT}/memory`]: { needs: "read", passes: 400 },
  [`DELETE ${AGENT}/memory`]: { needs: "write", passes: 400 },
  [`POST ${SERVERS}`]: { needs: "write", body: {}, passes: 400 },
  [`GET ${SERVERS}`]: { needs: "read", passes: 200 },
  [`GET ${SERVERS}/:serverId`]: { needs: "read", passes: "404 MCP server" },
  [`PATCH ${SERVERS}/:serverId`]: { needs: "write", body: {}, passes: "404 MCP server" },
  [`DELETE ${SERVERS}/:serverId`]: { needs: "write", passes: "404 MCP server" },
  [`POST ${SERVERS}/:serverId/refresh`]: { needs: "write", passes: "404 MCP server" },
  [`POST ${SERVERS}/:serverId/approve`]: { needs: "write", body: {}, passes: "404 MCP server" },
  [`POST ${SERVERS}/:serverId/authorize`]: { needs: "write", passes: "404 MCP server" },
  [`POST ${AGENT}/schedules`]: { needs: "write", body: {}, passes: 400 },
  [`GET ${AGENT}/schedules`]: { needs: "read", passes: 200 },
  [`GET ${AGENT}/schedules/:scheduleId`]: { needs: "read", passes: "404 schedule" },
  [`PATCH ${AGENT}/schedules/:scheduleId`]: { needs: "write", body: {}, passes: "404 schedule" },
  [`DELETE ${AGENT}/schedules/:scheduleId`]: { needs: "write", passes: "404 schedule" },
  [`POST ${AGENT}/schedules/:scheduleId/run`]: { needs: "chat", passes: "404 schedule" },
  [`GET ${AGENT}/schedules/:scheduleId/slots`]: { needs: "read", passes: "404 schedule" },
  [`GET ${AGENT}/runs`]: { needs: "read", passes: 200 },
  [`GET ${AGENT}/runs/:runId`]: { needs: "read", passes: "404 run" },
  [`POST ${AGENT}/runs/:runId/cancel`]: { needs: "chat", passes: "404 run" },
  [`GET ${AGENT}/events`]: { needs: "read", passes: 200 },
  "GET /v1/approvals": { needs: "read", passes: 200 },
  "GET /v1/approvals/:approvalId": { needs: "read", passes: "404 approval" },
  "POST /v1/approvals/:approvalId/decision": {
    needs: "approve",
    body: { decision: "deny" },
    passes: "404 approval",
  },
  "GET /v1/instances/:instanceId/approval-rules": { needs: "read", passes: 200 },
  "DELETE /v1/instances/:instanceId/approval-rules/:ruleId": { needs: "write", passes: "404 approval rule" },
  "GET /v1/skills": { needs: "nobody", passes: 200 },
  "GET /v1/skills/:name": { needs: "nobody", passes: 200 },
  "POST /v1/instances/:instanceId/skills": { needs: "write", body: { name: "no-such-skill" }, passes: "404 skill" },
  "GET /v1/instances/:instanceId/skills": { needs: "read", passes: 200 },
  "DELETE /v1/instances/:instanceId/skills/:name": { needs: "write", passes: "404 skill" },
  "POST /v1/instances/:instanceId/secrets": { needs: "write", body: { key: "A", value: "a" }, passes: 201 },
  "GET /v1/instances/:instanceId/secrets": { needs: "read", passes: 200 },
  "DELETE /v1/instances/:instanceId/secrets/:key": { needs: "write", passes: "404 secret" },
  "GET /v1/models": { needs: "read", passes: 200 },
  "GET /v1/models/:model": { needs: "read", passes: 200 },
  "POST /v1/chat/completions": { needs: "chat", body: { model: "x", messages: [] }, passes: 400 },
  "POST /v1/responses": { needs: "chat", body: { model: "x" }, passes: 400 },
  "GET /v1/responses/:responseId": { needs: "chat", passes: "404 response" },
  "DELETE /v1/responses/:responseId": { needs: "chat", passes: "404 response" },
  "POST /v1/mcp": { needs: "read", body: {}, passes: 400 },
  "POST /v1/embeddings": { needs: "chat", body: { model: "x" }, passes: 400 },
  "GET /v1/host": { needs: "read", passes: 200 },
  "GET /v1/billing": { needs: "read", whole: true, passes: 200 },
  "GET /v1/billing/usage": { needs: "read", whole: true, passes: 200 },
  "GET /v1/usage": { needs: "read", whole: true, passes: 400 },
  "GET /v1/billing/transactions": { needs: "read", whole: true, passes: 200 },
  "POST /v1/billing/top-up": { needs: "write", whole: true, passes: 402 },
};

/** `token` is for what no key may do: ending a session. */
type Level = "read" | "chat" | "write" | "approve" | "keys" | "token";
/** Each level with the credentials that reach it (docs/contract/api.md, Scopes). */
const LEVELS_OF: Record<string, Level[]> = {
  read: ["read"],
  chat: ["read", "chat"],
  write: ["read", "chat", "write"],
  "read+chat": ["read", "chat"],
  "read+write": ["read", "chat", "write"],
  "write+chat": ["read", "chat", "write"],
  "read+write+chat": ["read", "chat", "write", "keys"],
  approve: ["read", "approve"],
  "write+chat+approve": ["read", "chat", "write", "approve"],
  "read+write+chat+approve": ["read", "chat", "write", "approve", "keys"],
};

/** A credential, and what the contract says about it. */
interface Credential {
  name: string;
  headers: Record<string, string>;
  says:
    | { kind: "invalid" }
    | { kind: "suspended" }
    | { kind: "valid"; levels: Level[]; sees: "own" | "limited" | "nothing" };
}

interface World {
  owner: Person;
  params: Record<string, string>;
  credentials: Credential[];
}

const clock = handClock();
let server: TestServer;
let world: World;

const ALL: Level[] = ["read", "chat", "write", "keys"];
const SESSION: Level[] = [...ALL, "approve", "token"];
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

async function makeWorld(): Promise<World> {
  const { signUp, foundation, dataDir } = server;
  const [owner, stranger, suspended] = [await signUp(), await signUp(), await signUp()];
  const made = async (person: Person, path: string, body: unknown) => (await person.ask("POST", path, body)).body;
  const { instanceId } = await made(owner, "/v1/instances", { name: "one" });
  const { instanceId: otherId } = await made(owner, "/v1/instances", { name: "other" });
  const { agentId } = await made(owner, `/v1/instances/${instanceId}/agents`, { name: "Ada", files: { "a.md": "a" } });
  const { conversationId } = await made(owner, `/v1/instances/${instanceId}/agents/${agentId}/conversations`, {});
  const keyOf = async (input: object) => (await made(owner, "/v1/auth/keys", input)) as { key: string; keyId: string };

  const spare = await keyOf({ name: "to be deleted" });
  const revoked = await keyOf({});
  await owner.ask("DELETE", `/v1/auth/keys/${revoked.keyId}`);
  const expired = await keyOf({ expiresAt: new Date(clock.now() + MINUTE).toISOString() });
  clock.advance(2 * MINUTE);
  const { key: suspendedKey } = await made(suspended, "/v1/auth/keys", {});
  foundation.accounts.setSuspended(suspended.accountId, true);

  const invalid = (name: string, headers: Record<string, string>): Credential => ({
    name,
    headers,
    says: { kind: "invalid" },
  });
  const valid = (
    name: string,
    headers: Record<string, string>,
    levels = ALL,
    sees: "own" | "limited" | "nothing" = "own",
  ): Credential => ({
    name,
    headers,
    says: { kind: "valid", levels, sees },
  });
  const scoped = await Promise.all(
    Object.entries(LEVELS_OF).map(async ([scopes, levels]) => {
      const { key } = await keyOf({ scopes: scopes.split("+") });
      return valid(`key with ${scopes}`, { "X-API-Key": key }, levels);
    }),
  );
  const limited = await keyOf({ instanceId });
  const elsewhere = await keyOf({ instanceId: otherId });
  const limitedReader = await keyOf({ instanceId, scopes: ["read"] });
  const writer = await keyOf({ scopes: ["write"] });
  const approver = await keyOf({ scopes: ["read", "approve"] });
  const anyApprover = await keyOf({ scopes: ["write", "chat", "approve"] });
  const anyKey = await keyOf({});
  const past = Math.floor((clock.now() - HOUR) / 1000);
  const credentials = [
    invalid("nothing", {}),
    invalid("garbage", bearer("garbage")),
    invalid("another scheme", { Authorization: `Basic ${owner.token}` }),
    invalid("a token that is over", bearer(signedToken(dataDir, owner.accountId, { payload: { exp: past } }))),
    invalid("a token of another epoch", bearer(signedToken(dataDir, owner.accountId, { payload: { epoch: 1 } }))),
    invalid("an empty key", { "X-API-Key": "" }),
    invalid("a revoked key", { "X-API-Key": revoked.key }),
    invalid("an expired key", { "X-API-Key": expired.key }),
    invalid("the owner's token with a bad key", { ...bearer(owner.token), "X-API-Key": revoked.key }),
    invalid("a stranger's token with the owner's key", { ...bearer(stranger.token), "X-API-Key": anyKey.key }),
    { name: "a suspended account's token", headers: bearer(suspended.token), says: { kind: "suspended" as const } },
    { name: "a suspended account's key", headers: { "X-API-Key": suspendedKey }, says: { kind: "suspended" as const } },
    ...scoped,
    valid("a key limited to the instance", { "X-API-Key": limited.key }, ALL, "limited"),
    valid("a reading key limited to the instance", { "X-API-Key": limitedReader.key }, ["read"], "limited"),
    valid("a key limited to another instance", { "X-API-Key": elsewhere.key }, ALL, "nothing"),
    valid("a stranger's token", bearer(stranger.token), SESSION, "own"),
    valid("the owner's token", bearer(owner.token), SESSION),
    valid("the owner's key as a token", bearer(anyKey.key)),
    valid(
      "the owner's token with a limited key",
      { ...bearer(owner.token), "X-API-Key": limited.key },
      // Only what both allow.
      [...ALL, "token"],
      "limited",
    ),
    valid("a key that reads and approves with one that writes", { ...bearer(approver.key), "X-API-Key": writer.key }, [
      "read",
    ]),
    valid("two keys that may approve", { ...bearer(approver.key), "X-API-Key": anyApprover.key }, ["read", "approve"]),
    valid(
      "two keys limited to different instances",
      { ...bearer(limited.key), "X-API-Key": elsewhere.key },
      [],
      "nothing",
    ),
  ];
  const params = {
    instanceId,
    agentId,
    conversationId,
    keyId: spare.keyId,
    runId: `run_${"0".repeat(32)}`,
    approvalId: `appr_${"0".repeat(32)}`,
    ruleId: `rule_${"0".repeat(32)}`,
    scheduleId: `sch_${"0".repeat(32)}`,
    serverId: `mcp_${"0".repeat(32)}`,
    responseId: `resp_${"0".repeat(32)}`,
    name: "code-review",
    model: "local:all-minilm-l6-v2",
    key: "GONE",
  };
  return { owner, params, credentials };
}

/** What this credential gets from this route, by the contract. */
function expectedOf(path: string, rule: Rule, { name, says }: Credential): string {
  if (rule.needs === "nobody") return String(rule.passes);
  if (says.kind === "invalid") return "401";
  if (says.kind === "suspended") return "403";
  const isLimited = says.sees !== "own";
  if (!says.levels.includes(rule.needs)) return "403";
  if (isLimited && (rule.whole || rule.needs === "keys")) return "403";
  const isHidden = says.sees === "nothing" || name === "a stranger's token";
  if (isHidden && path.includes(":instanceId")) return "404 instance";
  if (isHidden && path.includes(":keyId")) return "404 key";
  return String(rule.passes);
}

const pathOf = (path: string, params: Record<string, string>) =>
  path.replace(/:(\w+)/g, (_, name: string) => params[name] ?? "").replace("*", "a.md");

/** The status; for a 404 also what does not exist, according to the message. */
async function answerOf(method: string, path: string, rule: Rule, headers: Record<string, string>): Promise<string> {
  const { body } = rule;
  const isJson = body !== undefined && typeof body !== "string";
  const response = await fetch(new URL(path, server.url), {
    method,
    headers: { ...headers, ...(isJson ? { "Content-Type": "application/json" } : {}) },
    ...(body === undefined ? {} : { body: isJson ? JSON.stringify(body) : body }),
  });
  if (response.status !== 404) {
    await response.body?.cancel();
    return String(response.status);
  }
  const { error } = (await response.json()) as { error: { message: string } };
  return `404 ${error.message.replace(" not found", "")}`;
}

beforeAll(async () => {
  server = await startTestServer({}, { clock });
  world = await makeWorld();
});
afterAll(() => server.stop());

test("every route of the server has a rule here", () => {
  const known = server.app.routes.map(({ method, path }) => `${method} ${path}`);
  expect(known.sort()).toEqual(Object.keys(RULES).sort());
});

describe("who may", () => {
  for (const [route, rule] of Object.entries(RULES)) {
    const [method = "", path = ""] = route.split(" ");
    test(`${route}: ${rule.needs}`, async () => {
      const expected: Record<string, string> = {};
      const got: Record<string, string> = {};
      for (const { name } of world.credentials) {
        const credential = world.credentials.find((one) => one.name === name);
        if (!credential) throw new Error(`no credential ${name}`);
        expected[name] = expectedOf(path, rule, credential);
        got[name] = await answerOf(method, pathOf(path, world.params), rule, credential.headers);
        if (rule.spends && Number(got[name]) < 300) world = await makeWorld();
      }
      expect(got).toEqual(expected);
    });
  }
});

test("a list shows a limited key only its instance and the agents in it, and a stranger nothing", async () => {
  const { params, credentials } = world;
  const listOf = async (name: string) => {
    const { headers = {} } = credentials.find((one) => one.name === name) ?? {};
    const { body } = await server.ask("GET", "/v1/instances", { headers });
    return (body.data as { instanceId: string }[]).map(({ instanceId }) => instanceId);
  };
  expect(await listOf("a key limited to the instance")).toEqual([params.instanceId ?? ""]);
  expect(await listOf("a key limited to another instance")).not.toContain(params.instanceId);
  expect(await listOf("a stranger's token")).toEqual([]);
  expect(await listOf("the owner's token")).toContain(params.instanceId ?? "");
});

test("every refused credential gets the same message, which says how to sign in", async () => {
  const texts = new Set<string>();
  for (const { headers, says } of world.credentials.filter(({ says }) => says.kind === "invalid")) {
    const answer = await server.ask("GET", "/v1/auth/me", { headers });
    expect([says.kind, answer.status]).toEqual(["invalid", 401]);
    expect(answer.headers.get("www-authenticate")).toStartWith("Bearer");
    texts.add(answer.body.error.message);
  }
  expect(texts.size).toBe(1);
});

test("two bad credentials at once are refused like one, and the host keeps running", async () => {
  const { owner } = world;
  for (const token of ["a.b.c", signedToken(server.dataDir, owner.accountId, { payload: { epoch: 7 } })]) {
    expect((await server.ask("GET", "/v1/auth/me", { token, key: "nonsense" })).status).toBe(401);
  }
  expect((await owner.ask("GET", "/v1/auth/me")).status).toBe(200);
});

test("two keys of one account are one caller, with only what both allow", async () => {
  const { owner, params } = world;
  const keyOf = async (input: object): Promise<string> => (await owner.ask("POST", "/v1/auth/keys", input)).body.key;
  const [reader, writer] = [await keyOf({ scopes: ["read"] }), await keyOf({ scopes: ["write"] })];
  const limited = await keyOf({ instanceId: params.instanceId });
  const statusOf = async (method: string, path: string, token: string, key: string) =>
    (await server.ask(method, path, { token, key, ...(method === "GET" ? {} : { body: { name: "x" } }) })).status;
  for (const [token, key] of [
    [reader, writer],
    [writer, reader],
  ] as const) {
    expect(await statusOf("GET", "/v1/auth/me", token, key)).toBe(200);
    expect(await statusOf("POST", "/v1/instances", token, key)).toBe(403);
  }
  expect(await statusOf("POST", "/v1/auth/keys", writer, writer)).toBe(403);
  for (const [token, key] of [
    [limited, writer],
    [writer, limited],
  ] as const) {
    expect(await statusOf("POST", "/v1/instances", token, key)).toBe(403);
    expect(await statusOf("PATCH", `/v1/instances/${params.instanceId}`, token, key)).toBe(200);
  }
});
