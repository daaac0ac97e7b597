import { afterAll, beforeAll, expect, test } from "bun:test";
import { bodyBytesOf } from "../../src/http/bounds.ts";
import type { Route } from "../../src/http/route.ts";
import { signedToken } from "../http/signed-token.ts";
import { handClock, MINUTE, SECOND } from "../lib/hand-clock.ts";
import { type MockModelServer, startMockModelServer } from "../support/mock-model-server.ts";
import type { OpenApi } from "../support/openapi-check.ts";
import { storeApproval } from "../support/stored-approval.ts";
import { type Answer, type Ask, type Person, startTestServer, type TestServer } from "../support/test-server.ts";

/**
 * Every test checks that no answer is one that /openapi.json does not declare (support/openapi-check.ts). This is the
 * other half: every failure that a route declares can happen.
 */
interface Failure {
  route: Route;
  status: number;
  code: string;
}

/** What a failure needs instead of a valid request. */
type Request = Ask & { path?: string };

const clock = handClock();
let mock: MockModelServer;
let server: TestServer;
/** A server on which all rate limits are used up. */
let spent: TestServer;
let spentToken: string;
let owner: Person;
let suspended: Person;
let ids: Record<string, string> = {};
let stoppedId: string;
let otherSlug: string;

beforeAll(async () => {
  mock = startMockModelServer({
    record: false,
    answer: ({ body }) =>
      JSON.stringify(body.messages).includes("in circles")
        ? { kind: "tools", calls: [{ name: "now", arguments: { timeZone: "Mars/Base" } }] }
        : JSON.stringify(body.messages).includes("in JSON")
          ? { kind: "text", tokens: ["no"] }
          : { kind: "status", status: 400 },
  });
  const model = { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url };
  server = await startTestServer({ ...model, ROOST_MAX_WORKSPACE_BYTES: "100000" }, { clock });
  owner = await server.signUp();
  suspended = await server.signUp();
  server.foundation.accounts.setSuspended(suspended.accountId, true);
  const made = async (path: string, body: object, headers = {}) => (await owner.ask("POST", path, body, headers)).body;
  const { instanceId } = await made("/v1/instances", { name: "one" }, { "Idempotency-Key": "used" });
  const { agentId } = await made(`/v1/instances/${instanceId}/agents`, { name: "Ada" });
  otherSlug = (await made(`/v1/instances/${instanceId}/agents`, { name: "Bo" })).slug;
  const messages = `/v1/instances/${instanceId}/agents/${agentId}/messages`;
  const { runId } = await made(messages, { message: "hello" }, { Prefer: "respond-async" });
  const { keyId } = await made("/v1/auth/keys", {});
  const conversationId = agentId.replace("agt_", "conv_");
  const hourly = { name: "Hourly", message: "hello", everySeconds: 3600 };
  const { scheduleId } = await made(`/v1/instances/${instanceId}/agents/${agentId}/schedules`, hourly);
  const unreachable = { name: "docs", url: "https://127.0.0.1:9/mcp" };
  const { serverId } = await made(`/v1/instances/${instanceId}/mcp-servers`, unreachable);
  const approvalId = storeApproval(server, { accountId: owner.accountId, instanceId, agentId });
  ids = { instanceId, agentId, conversationId, runId, keyId, approvalId, ruleId: `rule_${UNKNOWN}` };
  ids = {
    ...ids,
    responseId: `resp_${UNKNOWN}`,
    scheduleId,
    serverId,
    name: "code-review",
    key: "TOKEN",
    "*": "SOUL.md",
    model: agentId,
  };
  stoppedId = (await made("/v1/instances", { name: "stopped" })).instanceId;
  await owner.ask("POST", `/v1/instances/${stoppedId}/stop`);

  const least = { ROOST_READS_PER_SECOND: "1", ROOST_WRITES_PER_SECOND: "1", ROOST_ADDRESS_REQUESTS: "1" };
  spent = await startTestServer(least, { clock });
  const { accounts, store } = spent.foundation;
  const account = store.transaction(() => accounts.create({ email: "a@example.org", name: "A", credit: 0n, note: "" }));
  spentToken = signedToken(spent.dataDir, account.accountId, {});
});
afterAll(async () => {
  await server.stop();
  await spent.stop();
  await mock.stop();
});

const pathOf = ({ path }: Route, values: Record<string, string> = ids): string =>
  path.replace(/:(\w+)|\*/g, (part, name = part) => values[name] ?? "");
const takesBody = ({ method }: Route) => method === "POST" || method === "PUT" || method === "PATCH";
const UNKNOWN = "0".repeat(32);
const nobodys = () => ({
  ...ids,
  instanceId: `inst_${UNKNOWN}`,
  keyId: `key_${UNKNOWN}`,
  approvalId: "x",
  name: "nothing",
  model: `agt_${UNKNOWN}`,
});
/** Of a chat completion, and of a response. */
const chat = (content: string, more: object = {}, model = ids.agentId) =>
  json({ model, messages: [{ role: "user", content }], ...more });
const response = (input: string, more: object = {}, model = ids.agentId) => json({ model, input, ...more });
const json = (body: unknown): Request => ({
  body: JSON.stringify(body),
  headers: { "Content-Type": "application/json" },
});
const PROOF = { "X-PAYMENT": `{"txHash":"0x${"ab".repeat(32)}","network":"base"}` };

/** A code mailed to somebody who has been suspended, or whose invite has been used up, since then. */
async function mailedCode(email: string, inviteCode?: string): Promise<string> {
  clock.advance(MINUTE + SECOND);
  await server.ask("POST", "/v1/auth/send-code", { body: { email, inviteCode } });
  return server.foundation.outbox.list().find(({ to }) => to === email)?.code ?? "";
}

/** Failures of one route only, or with a reason of its own. */
const OWN: Record<string, () => Request | Promise<Request>> = {
  "POST /v1/auth/send-code invite_required": () => json({ email: "stranger@example.org" }),
  "POST /v1/auth/verify-code unauthorized": () => json({ email: owner.email, code: "00000000" }),
  async "POST /v1/auth/verify-code invite_required"() {
    const { code: inviteCode } = server.foundation.invites.create({ uses: 1, credit: 0n, lifeMs: 60 * MINUTE });
    const code = await mailedCode("late@example.org", inviteCode);
    const firstCode = await mailedCode("first@example.org", inviteCode);
    await server.ask("POST", "/v1/auth/verify-code", { body: { email: "first@example.org", code: firstCode } });
    return json({ email: "late@example.org", code });
  },
  async "POST /v1/auth/verify-code forbidden"() {
    const { accounts } = server.foundation;
    accounts.setSuspended(suspended.accountId, false);
    const code = await mailedCode(suspended.email);
    accounts.setSuspended(suspended.accountId, true);
    return json({ email: suspended.email, code });
  },
  "POST /v1/auth/redeem-link unauthorized": () => json({ link: "nothing" }),
  "POST /v1/auth/redeem-link forbidden": () => json({ link: server.foundation.links.create(suspended.email, 0n) }),
  "POST /v1/auth/keys not_found": () => json({ instanceId: `inst_${UNKNOWN}` }),
  "GET /v1/approvals not_found": () => ({ path: `/v1/approvals?instanceId=inst_${UNKNOWN}` }),
  /** Its run does not wait for it. */
  "POST /v1/approvals/:approvalId/decision conflict": () => json({ decision: "deny" }),
  "GET /v1/billing/usage not_found": () => ({ path: `/v1/billing/usage?instanceId=inst_${UNKNOWN}` }),
  "PATCH /v1/instances/:instanceId/agents/:agentId conflict": () => json({ slug: otherSlug }),
  "POST /v1/instances/:instanceId/mcp-servers conflict": () => json({ name: "docs", url: "https://127.0.0.1:9/mcp" }),
  "POST /v1/instances/:instanceId/mcp-servers/:serverId/approve conflict": () =>
    json({ updatedAt: "2026-01-01T00:00:00.000Z" }),
  "PATCH /v1/instances/:instanceId/agents/:agentId/schedules/:scheduleId conflict": async () => ({
    path: await heartbeatPath(),
    ...json({ enabled: false }),
  }),
  "DELETE /v1/instances/:instanceId/agents/:agentId/schedules/:scheduleId conflict": async () => ({
    path: await heartbeatPath(),
  }),
  "GET /v1/instances/:instanceId/agents/:agentId/bundle invalid_request": () => ({
    path: `/v1/instances/${ids.instanceId}/agents/${ids.agentId}/bundle?history=perhaps`,
  }),
  "PUT /v1/instances/:instanceId/agents/:agentId/files/* conflict": () => ({ body: "x".repeat(99_000) }),
  /** The default conversation. */
  "DELETE /v1/instances/:instanceId/agents/:agentId/conversations/:conversationId conflict": () => ({}),
  "POST /v1/instances/:instanceId/agents/:agentId/messages model_error": () => json({ message: "hello" }),
  "POST /v1/instances/:instanceId/agents/:agentId/messages loop_detected": () => json({ message: "in circles" }),
  "POST /v1/instances/:instanceId/agents/:agentId/messages output_invalid": () =>
    json({ message: "in JSON", output: { schema: { type: "object" } } }),
  async "POST /v1/instances/:instanceId/agents/:agentId/messages instance_not_ready"() {
    return {
      path: `/v1/instances/${stoppedId}/agents/${await stoppedAgent()}/messages`,
      ...json({ message: "hello" }),
    };
  },
  "POST /v1/chat/completions not_found": () => chat("hello", {}, `agt_${UNKNOWN}`),
  "POST /v1/chat/completions model_error": () => chat("hello"),
  "POST /v1/chat/completions loop_detected": () => chat("in circles"),
  "POST /v1/chat/completions output_invalid": () => chat("in JSON", { response_format: { type: "json_object" } }),
  "POST /v1/chat/completions instance_not_ready": async () => chat("hello", {}, await stoppedAgent()),
  "POST /v1/responses not_found": () => response("hello", {}, `agt_${UNKNOWN}`),
  "POST /v1/responses model_error": () => response("hello"),
  "POST /v1/responses loop_detected": () => response("in circles"),
  "POST /v1/responses output_invalid": () => response("in JSON", { text: { format: { type: "json_object" } } }),
  "POST /v1/responses instance_not_ready": async () => response("hello", {}, await stoppedAgent()),
  "POST /v1/chat/completions budget_exceeded": async () => chat("hello", {}, await spentAgent()),
  "POST /v1/responses budget_exceeded": async () => response("hello", {}, await spentAgent()),
  "POST /v1/instances/:instanceId/agents/:agentId/messages budget_exceeded": async () => ({
    path: `/v1/instances/${ids.instanceId}/agents/${await spentAgent()}/messages`,
    ...json({ message: "hello" }),
  }),
  async "POST /v1/instances/:instanceId/agents/:agentId/schedules/:scheduleId/run budget_exceeded"() {
    const schedules = `/v1/instances/${ids.instanceId}/agents/${await spentAgent()}/schedules`;
    const { scheduleId } = (
      await owner.ask("POST", schedules, { name: "Hourly", message: "hello", everySeconds: 3600 })
    ).body;
    return { path: `${schedules}/${scheduleId}/run` };
  },
  "POST /v1/embeddings not_found": () => json({ model: "another", input: "hello" }),
};

const stoppedAgent = async (): Promise<string> =>
  (await owner.ask("POST", `/v1/instances/${stoppedId}/agents`, { name: "Cy" })).body.agentId;

/** Its model may take one token a day. */
async function spentAgent(): Promise<string> {
  const agents = `/v1/instances/${ids.instanceId}/agents`;
  const { agentId } = (await owner.ask("POST", agents, { name: "Di" })).body;
  await owner.ask("PATCH", `${agents}/${agentId}`, { modelLimits: { tokensPerDay: 1 } });
  return agentId;
}

async function heartbeatPath(): Promise<string> {
  const agent = `/v1/instances/${ids.instanceId}/agents/${ids.agentId}`;
  await owner.ask("PATCH", agent, { heartbeat: { everySeconds: 31_536_000 } });
  const { data } = (await owner.ask("GET", `${agent}/schedules`)).body;
  const { scheduleId } = data.find(({ kind }: { kind: string }) => kind === "heartbeat");
  return `${agent}/schedules/${scheduleId}`;
}

/** Failures that every route has for the same reason. */
function generic({ route, code, status }: Failure): Request | null {
  switch (code) {
    case "unauthorized":
      return route.access === "public" ? null : { token: "nonsense" };
    case "forbidden":
      return route.access === "public" ? null : { token: suspended.token };
    case "not_found":
      return status === 410 ? { headers: { "Last-Event-ID": "999999" } } : { path: pathOf(route, nobodys()) };
    case "conflict":
      return {
        ...json({ name: "another" }),
        headers: { "Content-Type": "application/json", "Idempotency-Key": "used" },
      };
    case "precondition_failed":
      return { headers: { "If-Match": '"another"' }, ...(takesBody(route) ? { body: "text" } : {}) };
    case "payload_too_large":
      return { body: "x".repeat(bodyBytesOf(route) + 1) };
    case "payment_required":
      return { path: pathOf(route, { ...ids, instanceId: stoppedId }), ...json({ name: "new" }), headers: PROOF };
    case "invalid_request":
      if (route.path.endsWith("*"))
        return { path: pathOf(route, { ...ids, "*": ".hidden" }), ...(takesBody(route) ? { body: "x" } : {}) };
      if (takesBody(route)) return json([1]);
      return { path: `${pathOf(route)}?limit=0&after=nothing` };
    default:
      return null;
  }
}

async function provoke(failure: Failure): Promise<Answer | null> {
  const { route, code } = failure;
  const { method } = route;
  // So that the requests of this test are not too many at once.
  clock.advance(10);
  if (code === "rate_limited") {
    const ask = () => spent.ask(method, pathOf(route), route.access === "public" ? {} : { token: spentToken });
    for (let tries = 0; tries < 10; tries++) {
      const answer = await ask();
      if (answer.status === 429) return answer;
    }
    return null;
  }
  const request = (await OWN[`${method} ${route.path} ${code}`]?.()) ?? generic(failure);
  if (request === null) return null;
  const { path = pathOf(route), headers = {}, ...asked } = request;
  const typed = code === "payment_required" ? { ...headers, "Content-Type": "application/json" } : headers;
  const credential = route.access === "public" ? {} : { token: owner.token };
  return await server.ask(method, path, { ...credential, ...asked, headers: typed });
}

/**
 * Failures of no particular route: errors of the host, a full host, and bodies that do not arrive
 * (test/http/incoming-bodies.test.ts).
 */
const isOfHost = ({ code, status }: Failure): boolean => code === "internal_error" || status === 408;
/** While workspaces are being read after an upgrade: test/agents/large-workspaces.test.ts. */
const isOfUpgrade = ({ code, route }: Failure): boolean =>
  code === "instance_not_ready" && !/\/(messages|completions|responses)$/.test(route.path);
/** A model process that fails: test/models/local-process.test.ts. */
const isOfModelProcess = ({ code, route }: Failure): boolean =>
  code === "model_error" && route.path.endsWith("/embeddings");

/**
 * A history that is too long, or is cleared at that moment (test/bundles/export.test.ts), and a server that is changed while
 * it is asked (test/mcp/servers.test.ts).
 */
const isOfMoment = ({ code, route }: Failure): boolean =>
  code === "conflict" && (route.path.endsWith("/bundle") || route.name === "updateMcpServer");

function declared(document: OpenApi, route: Route): Failure[] {
  const path = route.path.replaceAll(/:(\w+)/g, "{$1}").replace("*", "{file}");
  const { responses = {} } = document.paths[path]?.[route.method.toLowerCase()] ?? {};
  return Object.entries(responses)
    .filter(([status]) => Number(status) >= 400)
    .flatMap(([status, { $ref = "" }]) => {
      const response = document.components.responses[$ref.split("/").at(-1) ?? ""];
      const codes = Object.keys(response?.content?.["application/json"]?.examples ?? {});
      return codes.map((code) => ({ route, status: Number(status), code }));
    });
}

test("every failure that the document declares for a route happens", async () => {
  const document = (await server.ask("GET", "/openapi.json")).body as OpenApi;
  const wrong: string[] = [];
  let right = 0;
  for (const failure of server.app.routes.flatMap((route) => declared(document, route))) {
    if (isOfHost(failure) || isOfUpgrade(failure) || isOfModelProcess(failure)) continue;
    if (isOfMoment(failure)) continue;
    const { route, status, code } = failure;
    const answer = await provoke(failure);
    if (answer?.status === status && answer.body.error?.code === code) right++;
    else
      wrong.push(`${route.method} ${route.path} ${status} ${code}: ${answer?.status} ${JSON.stringify(answer?.body)}`);
  }
  expect(wrong).toEqual([]);
  expect(right).toBeGreaterThan(200);
});
