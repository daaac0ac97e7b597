import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { BOUNDS, bodyBytesOf, rateOf } from "../../src/http/bounds.ts";
import type { Route } from "../../src/http/route.ts";
import { handClock } from "../lib/hand-clock.ts";
import { storeApproval } from "../support/stored-approval.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";
import { hold } from "./held-request.ts";

let server: TestServer;
let person: Person;
let ids: Record<string, string>;
beforeAll(async () => {
  // Time stands still, so that no rate recovers; and there are no more reads than a test soon uses up.
  const rates = { ROOST_ADDRESS_REQUESTS: "200", ROOST_READS_PER_SECOND: "10000", ROOST_WRITES_PER_SECOND: "400" };
  server = await startTestServer(rates, { clock: handClock() });
  person = await server.signUp();
  const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "x" })).body;
  const { agentId } = (await person.ask("POST", `/v1/instances/${instanceId}/agents`, { name: "Ada" })).body;
  const { keyId } = (await person.ask("POST", "/v1/auth/keys", {})).body;
  const sent = { message: "hi" };
  const at = `/v1/instances/${instanceId}/agents/${agentId}/messages`;
  const { runId } = (await person.ask("POST", at, sent, { Prefer: "respond-async" })).body;
  const conversationId = agentId.replace("agt_", "conv_");
  const approvalId = storeApproval(server, { accountId: person.accountId, instanceId, agentId });
  const hourly = { name: "Hourly", message: "hi", everySeconds: 3600 };
  const schedules = `/v1/instances/${instanceId}/agents/${agentId}/schedules`;
  const { scheduleId } = (await person.ask("POST", schedules, hourly)).body;
  // Nobody listens there.
  const unreachable = { name: "docs", url: "https://127.0.0.1:9/mcp" };
  const { serverId } = (await person.ask("POST", `/v1/instances/${instanceId}/mcp-servers`, unreachable)).body;
  ids = {
    serverId,
    scheduleId,
    approvalId,
    instanceId,
    agentId,
    keyId,
    runId,
    conversationId,
    key: "TOKEN",
    name: "code-review",
    "*": "SOUL.md",
  };
});
afterAll(() => server.stop());

const placed = ({ path }: Route) => path.replace(/:(\w+)|\*/g, (found, name) => ids[name ?? found] ?? "x");
const nameOf = ({ method, path }: Route) => `${method} ${path}`;

test("every route names its bounds: its rate, its body, its answer, and what ends it", () => {
  expect(server.app.routes.length).toBeGreaterThan(40);
  for (const route of server.app.routes) {
    const bound = BOUNDS[route.bound];
    expect([nameOf(route), bound.answerBytes > 0, bound.endsWith.length > 0]).toEqual([nameOf(route), true, true]);
    expect([nameOf(route), rateOf(route)]).toEqual([nameOf(route), expect.any(String)]);
    expect([nameOf(route), bodyBytesOf(route)]).toEqual([nameOf(route), expect.any(Number)]);
    // Long-lived answers have their bound, and a list is a page.
    expect([nameOf(route), route.bound === "stream"]).toEqual([nameOf(route), route.answer === "text/event-stream"]);
    const isList =
      route.method === "GET" &&
      typeof route.answer !== "string" &&
      "data" in ((route.answer as { shape?: object }).shape ?? {});
    expect([nameOf(route), route.bound === "page"]).toEqual([nameOf(route), isList]);
  }
});

test("every list refuses more than 100 at once", async () => {
  for (const route of server.app.routes.filter(({ bound }) => bound === "page")) {
    const { status, body } = await person.ask("GET", `${placed(route)}?limit=101`);
    expect([nameOf(route), status, body.error.message]).toEqual([
      nameOf(route),
      400,
      expect.stringContaining("limit: "),
    ]);
  }
});

test("every route with a body refuses one over its limit before reading it", async () => {
  for (const route of server.app.routes) {
    const limit = bodyBytesOf(route);
    if (limit === 0) continue;
    // One byte too many is announced, and the last one never arrives.
    const headers = route.access === "public" ? {} : { Authorization: `Bearer ${person.token}` };
    const request = await hold(server.url, route.method, placed(route), "x".repeat(limit + 1), headers);
    expect([nameOf(route), (await request.answered).status]).toEqual([nameOf(route), 413]);
    request.destroy();
  }
});

describe("every route counts against its rate", () => {
  const exhaust = async (ask: () => Promise<{ status: number }>) => {
    while ((await ask()).status !== 429);
  };

  test("of the account, whatever else is wrong with the request", async () => {
    await exhaust(() => person.ask("PATCH", "/v1/auth/me", { name: "Ada" }));
    await exhaust(() => person.ask("GET", "/v1/instances?limit=100"));
    for (const route of server.app.routes.filter(({ access }) => access !== "public")) {
      const body = route.method === "GET" ? undefined : "{";
      expect([nameOf(route), (await person.ask(route.method, placed(route), body)).status]).toEqual([
        nameOf(route),
        429,
      ]);
    }
  });

  test("of the address", async () => {
    await exhaust(() => server.ask("GET", "/v1/skills"));
    for (const route of server.app.routes.filter(({ access }) => access === "public")) {
      const body = route.method === "GET" ? {} : { body: "{" };
      expect([nameOf(route), (await server.ask(route.method, placed(route), body)).status]).toEqual([
        nameOf(route),
        429,
      ]);
    }
  });
});
