import { inputLines } from "../../lib/input-lines.ts";
import { note, printJson, printTable, say } from "../output.ts";
import { shellWord } from "../shell-word.ts";
import type { Client, Records } from "./client.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import { findInstance, INSTANCE, only } from "./find.ts";
import { confirm } from "./prompt.ts";

const SERVERS = `${INSTANCE}/mcp-servers` as const;
export const SERVER = `${SERVERS}/{serverId}` as const;
type ServerRecord = Records["McpServer"];
type Tool = ServerRecord["tools"][number];

const ID = /^mcp_[0-9a-f]{32}$/;

interface Options extends ServerOptions {
  json?: true;
}

interface SureOptions extends Options {
  yes?: true;
}

/** `roost mcp list INSTANCE` */
export async function listServers(instance: string, options: Options): Promise<void> {
  const client = openClient(options);
  const instanceId = await findInstance(client, instance);
  const servers = await Array.fromAsync(client.all(SERVERS, { path: { instanceId } }));
  if (options.json) {
    printJson(servers);
    return;
  }
  printTable(
    ["NAME", "STATUS", "TOOLS", "WAITING", "URL"],
    servers.map((server) => [
      server.name,
      statusOf(server),
      String(server.tools.length - waitingOf(server).length),
      String(waitingOf(server).length),
      server.url,
    ]),
    `There are no MCP servers. To add one: roost mcp add ${shellWord(instance)} NAME URL`,
    { shorten: ["URL"] },
  );
}

/** `roost mcp list INSTANCE SERVER` */
export async function listTools(instance: string, given: string, options: Options): Promise<void> {
  const { server } = await findServer(openClient(options), instance, given);
  if (options.json) {
    printJson([server]);
    return;
  }
  showTools(server.tools);
  if (server.statusReason !== null) note(`${server.name} is ${statusOf(server)}: ${server.statusReason}`);
  hint(instance, server);
}

/** What waits for its owner is shown in full. */
function showTools(tools: readonly Tool[], none = "It offers no tools."): void {
  printTable(
    ["TOOL", "STATE", "DESCRIPTION"],
    tools.map(({ name, state, description }) => [name, state, description || "-"]),
    none,
    { shorten: ["TOOL", "DESCRIPTION"] },
  );
  for (const { name, state, description, inputSchema } of tools) {
    if (state !== "new" && state !== "changed") continue;
    say("");
    say(`${name}: ${description || "-"}`);
    for (const line of inputLines(inputSchema)) say(`  ${line}`);
  }
}

/** `roost mcp add INSTANCE NAME URL` */
export async function addServer(
  instance: string,
  name: string,
  url: string,
  options: Options & { header?: Record<string, string> },
): Promise<void> {
  const client = openClient(options);
  const instanceId = await findInstance(client, instance);
  const server = await client.post(SERVERS, { path: { instanceId }, body: { name, url, headers: options.header } });
  tell(instance, server, options, "added");
}

/** `roost mcp refresh INSTANCE SERVER` */
export async function refreshServer(instance: string, given: string, options: Options): Promise<void> {
  const client = openClient(options);
  const { path } = await findServer(client, instance, given);
  tell(instance, await client.post(`${SERVER}/refresh`, { path }), options, "asked");
}

/** `roost mcp approve INSTANCE SERVER [TOOLS...]`: exactly the definitions that it has shown. */
export async function approveTools(
  instance: string,
  given: string,
  names: readonly string[],
  { yes, ...options }: SureOptions,
): Promise<void> {
  const client = openClient(options);
  const { path, server } = await findServer(client, instance, given);
  const waiting = waitingOf(server).filter(({ name }) => names.length === 0 || names.includes(name));
  if (!options.json) showTools(waiting, "Nothing waits for approval.");
  if (waiting.length > 0) {
    await confirm(`Let agents of ${instance} use them as they are described?`, yes, options.json && waiting);
  }
  const body = { updatedAt: server.updatedAt, ...(names.length > 0 && { tools: [...names] }) };
  tell(instance, await client.post(`${SERVER}/approve`, { path, body }), options, "approved");
}

/** `roost mcp remove INSTANCE SERVER` */
export async function removeServer(instance: string, given: string, { yes, ...options }: SureOptions): Promise<void> {
  const client = openClient(options);
  const { path, server } = await findServer(client, instance, given);
  await confirm(`Remove the MCP server ${server.name}?`, yes);
  const removed = await client.delete(SERVER, { path });
  if (options.json) printJson(removed);
  else say(`${server.name} is removed.`);
}

function tell(instance: string, server: ServerRecord, options: Options, done: string): void {
  if (options.json) {
    printJson(server);
    return;
  }
  const { name, status, statusReason, tools } = server;
  const usable = tools.length - waitingOf(server).length;
  say(`${name} is ${done}: ${statusOf(server)}, with ${usable} ${usable === 1 ? "tool" : "tools"} for agents.`);
  if (statusReason !== null) note(statusReason);
  if (status === "ready" && usable > 0) note(`Agents call them ${name}__…, and ask a person each time.`);
  hint(instance, server);
}

/** What to do next about it. */
function hint(instance: string, server: ServerRecord): void {
  const [home, name] = [shellWord(instance), shellWord(server.name)];
  const secret = /\bno secret ([A-Za-z_]\w*)/.exec(server.statusReason ?? "")?.[1];
  if (server.status === "needs_authorization" && secret !== undefined) {
    note(`To store it: roost secret set ${home} ${secret}; then roost mcp refresh ${home} ${name}`);
  } else if (server.status === "needs_authorization")
    note(`To authorize it in a browser: roost mcp authorize ${home} ${name}`);
  else if (server.status === "unreachable") note(`To try again: roost mcp refresh ${home} ${name}`);
  else if (waitingOf(server).length > 0) note(`To accept what has changed: roost mcp approve ${home} ${name}`);
}

const statusOf = ({ status }: ServerRecord): string => status.replaceAll("_", " ");

const waitingOf = ({ tools }: ServerRecord): Tool[] => tools.filter(({ state }) => state !== "approved");

/** A server given by its id or name. Throws if there is none. */
export async function findServer(client: Client, instance: string, given: string) {
  const instanceId = await findInstance(client, instance);
  if (ID.test(given)) {
    const path = { instanceId, serverId: given };
    return { path, server: await client.get(SERVER, { path }) };
  }
  const all = await Array.fromAsync(client.all(SERVERS, { path: { instanceId } }));
  const server = only(
    all.filter(({ name }) => name === given),
    `MCP server "${given}"`,
    `roost mcp list ${shellWord(instance)}`,
  );
  return { path: { instanceId, serverId: server.serverId }, server };
}
