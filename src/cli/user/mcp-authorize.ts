import { Failure } from "../failure.ts";
import { note, printJson, say } from "../output.ts";
import { shellWord } from "../shell-word.ts";
import type { Records } from "./client.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import { findServer, SERVER } from "./mcp.ts";
import { openPage } from "./open.ts";

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
  const { path, server: before } = await findServer(client, instance, given);
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
    if (now.lastAuthorization?.endedAt !== before.lastAuthorization?.endedAt) {
      tell(now, instance);
      return;
    }
  }
  throw new Failure("nobody has consented in time", `to begin again: ${commandOf(instance, before.name)}`);
}

function tell({ name, status, statusReason, tools, lastAuthorization }: ServerRecord, instance: string): void {
  const works = status === "ready" || status === "changed";
  if (works && lastAuthorization?.outcome === "failed") {
    throw new Failure(
      `${lastAuthorization.reason}: nothing was changed, and ${name} is as it was before`,
      `to begin again: ${commandOf(instance, name)}`,
    );
  }
  if (works) {
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
