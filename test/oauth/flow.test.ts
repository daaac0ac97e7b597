import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { type McpService, startMcpService, text } from "../mcp/mcp-service.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";
import { visit } from "./person.ts";
import { refusalOf } from "./protected-server.ts";
import { type AuthorizationServer, startAuthorizationServer } from "./provider.ts";

let provider: AuthorizationServer;
let service: McpService;
let server: TestServer;
let person: Person;
let servers: string;
beforeAll(async () => {
  provider = await startAuthorizationServer();
  service = startMcpService("2026", { name: "search", run: () => text("found") });
  const asked = new URL(provider.issuer).host;
  server = await startTestServer({
    ROOST_EGRESS: `${service.host},${asked}`,
    ROOST_PUBLIC_URL: "http://127.0.0.1:3000",
  });
  person = await server.signUp();
  const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "Re<search>" })).body;
  servers = `/v1/instances/${instanceId}/mcp-servers`;
});
afterAll(async () => {
  await server.stop();
  await service.stop();
  await provider.stop();
});

let names = 0;
let one: string;
beforeEach(async () => {
  provider.lifeSeconds = 3_600;
  service.intercept = (_, request) => refusalOf(provider, request);
  const { status, body } = await person.ask("POST", servers, { name: `s${++names}`, url: service.url });
  expect([status, body.status]).toEqual([201, "needs_authorization"]);
  one = `${servers}/${body.serverId}`;
});
afterEach(async () => {
  await person.ask("DELETE", one);
});

const CALLBACK = "http://127.0.0.1:3000/v1/oauth/callback";
const look = async () => (await person.ask("GET", one)).body;

/** Begins, and returns what the person's browser is sent back to. */
async function begin(consents = true): Promise<string> {
  const { status, body } = await person.ask("POST", `${one}/authorize`);
  expect([status, Object.keys(body).sort()]).toEqual([200, ["authorizationUrl", "expiresAt"]]);
  const back = new URL(await visit(body.authorizationUrl, CALLBACK, { name: "ana", consents }));
  return `${server.url}${back.pathname}${back.search}`;
}

async function authorize(): Promise<void> {
  const page = await fetch(await begin());
  const { status, statusReason } = await look();
  expect([page.status, status, statusReason]).toEqual([200, "ready", null]);
}

test("who consents in the browser has the server's tools approved as they stand", async () => {
  const page = await fetch(await begin());
  expect(page.status).toBe(200);
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(page.headers.get("content-security-policy")).toStartWith("default-src 'none'; style-src 'sha256-");
  expect(page.headers.get("referrer-policy")).toBe("no-referrer");
  expect(page.headers.get("cache-control")).toBe("no-store");
  const html = await page.text();
  expect(html).toContain(person.email);
  expect(html).toContain("Re&#60;search&#62;");
  expect(html).toContain("You can close this window.");
  expect(html).not.toMatch(/<script|state|code=/);
  const { status, statusReason, tools } = await look();
  expect({ status, statusReason }).toEqual({ status: "ready", statusReason: null });
  expect(tools).toMatchObject([{ name: "search", state: "approved" }]);
});

test("who waits for the end sees it only when the server was asked for its tools, also if that finds nothing new", async () => {
  const before = await look();
  const back = await begin();
  const asked = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  service.intercept = async (_, request) => {
    asked.resolve();
    await answered.promise;
    return await refusalOf(provider, request);
  };
  const page = fetch(back);
  await asked.promise;
  expect((await look()).updatedAt).toBe(before.updatedAt);
  answered.resolve();
  expect((await page).status).toBe(200);
  const after = await look();
  expect(after.status).toBe("ready");
  expect(after.updatedAt).not.toBe(before.updatedAt);

  await authorize();
  expect((await look()).updatedAt).not.toBe(after.updatedAt);
});

test("who cancels in the browser gives nothing, and the owner is told what to do", async () => {
  const page = await fetch(await begin(false));
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining("The access was denied")]);
  const { status, statusReason } = await look();
  expect({ status, statusReason }).toEqual({
    status: "needs_authorization",
    statusReason: "the authorization was denied: authorize it again",
  });
});

test("the page is for a person who opens it, and counts once", async () => {
  const back = await begin();
  for (const [method, destination] of [
    ["HEAD", "document"],
    ["GET", "iframe"],
    ["GET", "image"],
    ["GET", "empty"],
  ] as const) {
    const { status } = await fetch(back, { method, headers: { "Sec-Fetch-Dest": destination } });
    expect([method, destination, status]).toEqual([method, destination, 400]);
  }
  const both = await Promise.all([fetch(back), fetch(back, { headers: { "Sec-Fetch-Dest": "document" } })]);
  expect(both.map(({ status }) => status).sort()).toEqual([200, 400]);
  const again = await fetch(back);
  expect([again.status, await again.text()]).toEqual([400, expect.stringContaining("This address was used before")]);
  expect((await look()).status).toBe("ready");
});

test.each([
  ["", "nothing"],
  ["?code=x", "no state"],
  ["?state=x", "an unknown state"],
  [`?state=${"x".repeat(200)}`, "a state that is too long"],
  ["?state=a&state=b&code=x", "two states"],
  ["?error=<script>alert(1)</script>&error_description=<b>&state=x", "markup"],
])("the page shows nothing of an address like %s", async (query) => {
  const page = await fetch(`${server.url}/v1/oauth/callback${query}`);
  expect([page.status, await page.text()]).toEqual([400, expect.not.stringMatching(/<script|<b>/)]);
});

test("the host says who it is, at the URL that is its id where it cannot register", async () => {
  const answer = await fetch(`${server.url}/v1/oauth/client`);
  expect([answer.status, await answer.json()]).toEqual([
    200,
    {
      client_id: "http://127.0.0.1:3000/v1/oauth/client",
      client_name: "Roost at 127.0.0.1",
      client_uri: "http://127.0.0.1:3000",
      redirect_uris: [CALLBACK],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
      application_type: "native",
    },
  ]);
});

test("a server with a header Authorization of its own cannot be authorized", async () => {
  await person.ask("PATCH", one, { headers: { authorization: "Bearer {{secret:NONE}}" } });
  const { status, body } = await person.ask("POST", `${one}/authorize`);
  expect([status, body.error.message]).toEqual([409, expect.stringContaining("a header Authorization")]);
});

test("a server without an authorization server says why it cannot be authorized", async () => {
  service.intercept = (_, request) => (request.method === "GET" ? new Response(null, { status: 404 }) : undefined);
  const { status, body } = await person.ask("POST", `${one}/authorize`);
  expect([status, body.error.message]).toEqual([
    409,
    "this MCP server cannot be authorized: its authorization server publishes no metadata",
  ]);
});

test("a token that has ended is renewed before it is used", async () => {
  provider.lifeSeconds = 10;
  await authorize();
  const { granted, refused } = provider.refreshed;
  provider.lifeSeconds = 3_600;
  expect((await person.ask("POST", `${one}/refresh`)).body.status).toBe("ready");
  expect(provider.refreshed).toEqual({ granted: granted + 1, refused });
});

test("a token that the server refuses is renewed, and the request sent again", async () => {
  await authorize();
  const [, old] = /Bearer (.+)/.exec(service.requests.at(-1)?.get("authorization") ?? "") ?? [];
  let refusals = 0;
  service.intercept = (_, request) => {
    const isOld = request.headers.get("authorization") === `Bearer ${old}`;
    if (isOld) refusals++;
    return isOld ? new Response(null, { status: 401 }) : refusalOf(provider, request);
  };
  expect((await person.ask("POST", `${one}/refresh`)).body.status).toBe("ready");
  expect(refusals).toBe(1);
});

test("a renewal that is refused ends the authorization, and the owner is told what to do", async () => {
  provider.lifeSeconds = 10;
  await authorize();
  provider.refuses = true;
  const { body } = await person.ask("POST", `${one}/refresh`);
  provider.refuses = false;
  expect({ status: body.status, statusReason: body.statusReason }).toEqual({
    status: "needs_authorization",
    statusReason: "its authorization server refused to renew the access: authorize it again",
  });
  await authorize();
});

test("removing a server revokes what was given for it", async () => {
  await authorize();
  const before = provider.revoked.length;
  await person.ask("DELETE", one);
  while (provider.revoked.length === before) await Bun.sleep(5);
});

test("authorizing a server again revokes what was given before, and the new access is good", async () => {
  await authorize();
  const before = provider.revoked.length;
  await authorize();
  while (provider.revoked.length === before) await Bun.sleep(5);
  expect((await person.ask("POST", `${one}/refresh`)).body.status).toBe("ready");
});

test("deleting an instance revokes what was given for its servers", async () => {
  const instanceId = (await person.ask("POST", "/v1/instances", { name: "Short" })).body.instanceId;
  const at = `/v1/instances/${instanceId}/mcp-servers`;
  const kept = one;
  one = `${at}/${(await person.ask("POST", at, { name: "short", url: service.url })).body.serverId}`;
  await authorize();
  one = kept;
  const before = provider.revoked.length;
  expect((await person.ask("DELETE", `/v1/instances/${instanceId}`)).status).toBe(200);
  while (provider.revoked.length === before) await Bun.sleep(5);
});

test("another URL has to be authorized anew, and the token of the old one is revoked, not shown to it", async () => {
  await authorize();
  const before = provider.revoked.length;
  const asked = service.requests.length;
  const { body } = await person.ask("PATCH", one, { url: `${service.url}/elsewhere` });
  expect(body.status).toBe("needs_authorization");
  expect(service.requests.slice(asked).filter((headers) => headers.has("authorization"))).toEqual([]);
  while (provider.revoked.length === before) await Bun.sleep(5);
});

test("a server that has to be authorized at another URL has its tools approved as they stand, once it is", async () => {
  service.intercept = () => undefined;
  expect((await person.ask("PATCH", one, { url: `${service.url}/open` })).body.status).toBe("changed");
  expect((await person.ask("POST", `${one}/approve`)).body).toMatchObject({
    status: "ready",
    protocolVersion: "2026-07-28",
  });
  service.intercept = (_, request) => refusalOf(provider, request);
  const { body } = await person.ask("PATCH", one, { url: service.url });
  expect(body).toMatchObject({ status: "needs_authorization", protocolVersion: null, tools: [] });
  await authorize();
  expect((await look()).tools).toMatchObject([{ name: "search", state: "approved" }]);
});

test("a server that wants a header besides the token has its tools approved as they stand, once it has both", async () => {
  service.intercept = async (_, request) => {
    const refusal = await refusalOf(provider, request);
    return refusal ?? (request.headers.has("x-tenant") ? undefined : new Response(null, { status: 401 }));
  };
  expect((await fetch(await begin())).status).toBe(200);
  expect(await look()).toMatchObject({ status: "needs_authorization", tools: [] });
  const { body } = await person.ask("PATCH", one, { headers: { "X-Tenant": "a" } });
  expect(body).toMatchObject({ status: "ready", tools: [{ name: "search", state: "approved" }] });
});

test("an authorization survives a restart of the host, also between beginning and callback", async () => {
  const { pathname, search } = new URL(await begin());
  await server.restart();
  expect((await fetch(`${server.url}${pathname}${search}`)).status).toBe(200);
  await server.restart();
  expect((await person.ask("POST", `${one}/refresh`)).body.status).toBe("ready");
});

test("a token that the server repeats is taken out", async () => {
  await authorize();
  const [, token = ""] = /Bearer (.+)/.exec(service.requests.at(-1)?.get("authorization") ?? "") ?? [];
  service.intercept = (_, request) => new Response(`no: ${request.headers.get("authorization")}`, { status: 403 });
  const { statusReason } = (await person.ask("POST", `${one}/refresh`)).body;
  expect(statusReason).toStartWith("it answered 403: no: Bearer [secret token of mcp_");
  expect(statusReason).not.toContain(token);
});
