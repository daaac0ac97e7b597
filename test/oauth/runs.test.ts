import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { type Asking, startAsking } from "../approvals/asking.ts";
import { type McpService, startMcpService, text } from "../mcp/mcp-service.ts";
import { visit } from "./person.ts";
import { refusalOf } from "./protected-server.ts";
import { type AuthorizationServer, startAuthorizationServer } from "./provider.ts";

let provider: AuthorizationServer;
let service: McpService;
let it: Asking;
let one: string;
beforeAll(async () => {
  provider = await startAuthorizationServer();
  service = startMcpService("2026", {
    name: "whose",
    // What a careless or hostile server may do.
    run: () => text(`This was ${service.requests.at(-1)?.get("authorization")}.`),
  });
  service.intercept = (_, request) => refusalOf(provider, request);
  it = await startAsking(undefined, {}, { ROOST_EGRESS: `public,${service.host},${new URL(provider.issuer).host}` });
});
afterAll(async () => {
  await it.stop();
  await service.stop();
  await provider.stop();
});

const CALLBACK = () => `${it.server.url}/v1/oauth/callback`;

beforeEach(async () => {
  provider.refuses = false;
  provider.lifeSeconds = 3_600;
  if (one !== undefined) await it.person.ask("DELETE", one);
  const servers = `/v1/instances/${it.instance}/mcp-servers`;
  const { body } = await it.person.ask("POST", servers, { name: "docs", url: service.url });
  one = `${servers}/${body.serverId}`;
  await it.begin();
  await it.person.ask("PATCH", it.at(""), { tools: { docs__whose: "always" } });
});

async function authorize(): Promise<void> {
  const { authorizationUrl } = (await it.person.ask("POST", `${one}/authorize`)).body;
  await fetch(await visit(authorizationUrl, CALLBACK(), { name: "ana", consents: true }));
  expect((await it.person.ask("GET", one)).body.status).toBe("ready");
}

/** Has an agent call the tool in as many conversations at once; returns what the model was given. */
async function callTogether(count: number): Promise<string[]> {
  const asks = Array.from({ length: count }, (_, at) => `Whose is it, ${at}?`);
  const runs = asks.map(async (message) => {
    it.calls(message, ["docs__whose", {}]);
    const { conversationId } = (await it.person.ask("POST", it.at("/conversations"), {})).body;
    const { status, body } = await it.send(message, { conversationId });
    expect([status, body.error]).toEqual([200, undefined]);
  });
  await Promise.all(runs);
  return asks.flatMap((message) => it.results(message));
}

test("runs send the token that a person has given, and neither a model nor an event gets it", async () => {
  await authorize();
  const [result = ""] = await callTogether(1);
  expect(result).toContain("This was Bearer [secret token of mcp_");
  const [, token = ""] = /Bearer (.+)/.exec(service.requests.at(-1)?.get("authorization") ?? "") ?? [];
  expect(await provider.subjectOf(token, service.url)).toBe("ana");
  await using events = await it.events(0);
  const frames = await events.until(({ event }) => event === "run.completed");
  expect(JSON.stringify(frames)).not.toContain(token);
  expect(JSON.stringify(it.mock.requests)).not.toContain(token);
});

test("four runs that find the token ended cause one renewal", async () => {
  provider.lifeSeconds = 25;
  await authorize();
  provider.lifeSeconds = 3_600;
  const { granted, refused } = provider.refreshed;
  const results = await callTogether(4);
  expect(results).toEqual(Array.from(results, () => expect.stringContaining("This was Bearer [secret")));
  expect(provider.refreshed).toEqual({ granted: granted + 1, refused });
});

test("a run whose token can no longer be renewed fails its call, and the server waits for its owner", async () => {
  provider.lifeSeconds = 25;
  await authorize();
  provider.refuses = true;
  const [result = ""] = await callTogether(1);
  expect(result).toContain("the MCP server docs has to be authorized by this agent's owner");
  const { status, statusReason } = (await it.person.ask("GET", one)).body;
  expect({ status, statusReason }).toEqual({
    status: "needs_authorization",
    statusReason: "its authorization server refused to renew the access: authorize it again",
  });
});

test("what a server wants a token for besides is told to its owner, and asked for at the next authorization", async () => {
  await authorize();
  const challenge = 'Bearer error="insufficient_scope", scope="files:write"';
  service.intercept = (method, request) =>
    method === "tools/call"
      ? new Response(null, { status: 403, headers: { "WWW-Authenticate": challenge } })
      : refusalOf(provider, request);
  const [refused = ""] = await callTogether(1);
  expect(refused).toContain(
    "the MCP server docs has to be authorized by this agent's owner: it wants a token for more",
  );
  service.intercept = (_, request) => refusalOf(provider, request);
  expect((await it.person.ask("GET", one)).body).toMatchObject({
    status: "needs_authorization",
    statusReason: expect.stringContaining("(files:write): authorize it again"),
  });
  const scopeOf = async () =>
    new URL((await it.person.ask("POST", `${one}/authorize`)).body.authorizationUrl).searchParams.get("scope");
  expect(await scopeOf()).toBe("tools files:write offline_access");
  await authorize();
  // A later one asks for no less.
  expect(await scopeOf()).toBe("tools files:write offline_access");
  await it.begin();
  await it.person.ask("PATCH", it.at(""), { tools: { docs__whose: "always" } });
  expect((await callTogether(1))[0]).toContain("This was Bearer");
});
