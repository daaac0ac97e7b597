import { Failure } from "../failure.ts";
import { note, printJson, say } from "../output.ts";
import type { Client, Records } from "./client.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import { findInstance, INSTANCE, only, shellWord } from "./find.ts";
import { openPage } from "./open.ts";

const SERVERS = `${INSTANCE}/mcp-servers` as const;
const SERVER = `${SERVERS}/{serverId}` as const;
const ID = /^mcp_[0-9a-f]{32}$/;

/** Between two looks at the server. */
const PAUSE_MS = 2_000;
/** Longer than any authorization server takes, whatever the host says. */
const MAX_WAIT_MS = 15 * 60 * 1000;

interface Options extends ServerOptions {
  json?: true;
  print?: true;
}

type ServerRecord = Records["McpServer"];

/**
 * `roost mcp authorize INSTANCE NAME`: prints the address to open, opens it if somebody is at a terminal, and waits until
 * the server has an answer; with `--json` or `--print` it only prints.
 */
export async function authorizeMcpServer(instance: string, given: string, options: Options): Promise<void> {
  const client = openClient(options);
  const instanceId = await findInstance(client, instance);
  const before = await findServer(client, instanceId, instance, given);
  const path = { instanceId, serverId: before.serverId };
  const begun = await client.post(`${SERVER}/authorize`, { path });
  if (options.json) {
    printJson(begun);
    return;
  }
  const { authorizationUrl, expiresAt } = begun;
  say(authorizationUrl);
  if (options.print) return;
  // It comes from the server, and goes to a program of this machine.
  if (/^https?:\/\/[^/]/.test(authorizationUrl)) await openPage(authorizationUrl);
  note("Waiting for somebody to consent there. Stop waiting with Ctrl-C: the address stays good.");
  const lastMs = Math.min(Date.parse(expiresAt), Date.now() + MAX_WAIT_MS) || Date.now();
  while (Date.now() < lastMs) {
    await Bun.sleep(PAUSE_MS);
    const now = await client.get(SERVER, { path });
    if (now.updatedAt !== before.updatedAt) {
      tell(now, instance);
      return;
    }
  }
  throw new Failure("nobody has consented in time", `to begin again: ${commandOf(instance, before.name)}`);
}

function tell({ name, status, statusReason, tools }: ServerRecord, instance: string): void {
  if (status === "ready" || status === "changed") {
    say(`${name} is authorized, and has ${tools.length} ${tools.length === 1 ? "tool" : "tools"}.`);
    return;
  }
  throw new Failure(
    `${name} is not authorized: ${statusReason ?? status}`,
    `to begin again: ${commandOf(instance, name)}`,
  );
}

const commandOf = (instance: string, name: string): string =>
  `roost mcp authorize ${shellWord(instance)} ${shellWord(name)}`;

/** A server given by its id or name. */
async function findServer(client: Client, instanceId: string, instance: string, given: string): Promise<ServerRecord> {
  if (ID.test(given)) return await client.get(SERVER, { path: { instanceId, serverId: given } });
  const servers = await Array.fromAsync(client.all(SERVERS, { path: { instanceId } }));
  const named = servers.filter(({ name }) => name === given);
  return only(named, `MCP server "${given}"`, `roost mcp list ${shellWord(instance)}`);
}
