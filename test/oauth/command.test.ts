import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { type Home, makeHome, onTerminal, run } from "../cli/command-line.ts";
import { type McpService, startMcpService } from "../mcp/mcp-service.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";
import { visit } from "./person.ts";
import { refusalOf } from "./protected-server.ts";
import { type AuthorizationServer, startAuthorizationServer } from "./provider.ts";

let provider: AuthorizationServer;
let service: McpService;
let server: TestServer;
let person: Person;
let home: Home;
let env: Record<string, string>;
let servers: string;
beforeAll(async () => {
  provider = await startAuthorizationServer();
  service = startMcpService("2026", { name: "search" });
  service.intercept = (_, request) => refusalOf(provider, request);
  server = await startTestServer({ ROOST_EGRESS: `${service.host},${new URL(provider.issuer).host}` });
  person = await server.signUp();
  home = makeHome();
  const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "home" })).body;
  servers = `/v1/instances/${instanceId}/mcp-servers`;
  const { key } = (await person.ask("POST", "/v1/auth/keys", { scopes: ["read", "write"] })).body;
  env = { ROOST_URL: server.url, ROOST_API_KEY: key };
});
afterAll(async () => {
  home.remove();
  await server.stop();
  await service.stop();
  await provider.stop();
});
beforeEach(async () => {
  for (const { serverId } of (await person.ask("GET", servers)).body.data) {
    await person.ask("DELETE", `${servers}/${serverId}`);
  }
  await person.ask("POST", servers, { name: "docs", url: service.url });
});

const AUTHORIZE = ["mcp", "authorize", "home", "docs"];

async function consent(authorizationUrl: string, consents: boolean): Promise<void> {
  const back = await visit(authorizationUrl, `${server.url}/v1/oauth/callback`, { name: "ana", consents });
  await fetch(back);
}

test("roost mcp authorize prints the address, and waits until somebody has consented", async () => {
  await using terminal = onTerminal(home, AUTHORIZE, env, 2_000);
  const [address] = await terminal.until(/http:\S+/);
  await terminal.until(/Waiting for somebody to consent/);
  await consent(address, true);
  await terminal.until(/docs is authorized, and has 1 tool\./);
  expect(await terminal.exited).toBe(0);
});

test("roost mcp authorize says that the access was denied, and how to begin again", async () => {
  await using terminal = onTerminal(home, AUTHORIZE, env, 2_000);
  const [address] = await terminal.until(/http:\S+/);
  await consent(address, false);
  await terminal.until(/docs is not authorized: the authorization was denied.*roost mcp authorize home docs/s);
  expect(await terminal.exited).toBe(1);
});

test("roost mcp authorize says that nothing was changed where a server works already, and the access was denied", async () => {
  const again = async (consents: boolean) => {
    const { json } = await run(home, [...AUTHORIZE, "--json"], { env });
    await consent(json().authorizationUrl, consents);
  };
  await again(true);
  await using terminal = onTerminal(home, AUTHORIZE, env, 2_000);
  const [address] = await terminal.until(/http:\S+/);
  await consent(address, false);
  await terminal.until(/the authorization was denied: nothing was changed.*roost mcp authorize home docs/s);
  expect(await terminal.exited).toBe(1);
  expect((await person.ask("GET", servers)).body.data).toMatchObject([
    { status: "ready", lastAuthorization: { outcome: "failed", reason: "the authorization was denied" } },
  ]);
});

test("roost mcp authorize --print only prints, and --json is the API's answer", async () => {
  const printed = await run(home, [...AUTHORIZE, "--print"], { env });
  expect([printed.code, printed.errors]).toEqual([0, ""]);
  expect(printed.output.trim()).toStartWith(`${provider.issuer}/auth?`);
  const { code, json } = await run(home, [...AUTHORIZE, "--json"], { env });
  expect([code, Object.keys(json()).sort()]).toEqual([0, ["authorizationUrl", "expiresAt"]]);
});

test("adding a server that has to be authorized names the command for that", async () => {
  const { errors } = await run(home, ["mcp", "refresh", "home", "docs"], { env });
  expect(errors).toContain("roost mcp authorize home docs");
});
