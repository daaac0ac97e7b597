import type { AgentEvent } from "../../../clients/typescript/src/index.ts";
import { Failure } from "../failure.ts";
import { colours, type Piece, stream, streamJson } from "../output.ts";
import { shellWord } from "../shell-word.ts";
import { RoostError } from "./client.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import { findAgent } from "./find.ts";
import { noteLoss, whenLost } from "./lost-connection.ts";

/** `roost events INSTANCE AGENT`: the agent's events, one per line, until Ctrl-C. */
export async function showEvents(
  instance: string,
  given: string,
  { json, after, ...options }: ServerOptions & { json?: true; after?: number },
): Promise<void> {
  const client = openClient(options);
  const agent = await findAgent(client, instance, given);
  const leaving = new AbortController();
  process.once("SIGINT", () => leaving.abort());
  const connected = json ? undefined : whenLost(noteLoss);
  let last = after;
  try {
    for await (const event of client.events(agent, { after, signal: leaving.signal, connected })) {
      last = event.id;
      if (json) streamJson(event);
      else stream(...lineOf(event), "\n");
    }
  } catch (error) {
    if (leaving.signal.aborted) return;
    if (!(error instanceof RoostError && error.code === "disconnected")) throw error;
    const from = last === undefined ? "" : ` --after ${last}`;
    const again = `roost events ${shellWord(instance)} ${shellWord(given)}${from}`;
    throw new Failure(error.message, `to go on once it runs again: ${again}`, { cause: error });
  }
}

function lineOf(event: AgentEvent): Piece[] {
  const { id, type, createdAt, ...own } = event;
  const { agentId: _, runId, ...rest } = own as Record<string, unknown>;
  const detail = Object.keys(rest).length === 0 ? "" : ` ${JSON.stringify(rest)}`;
  const run = runId === undefined ? [] : [" ", colours.dim(String(runId))];
  return [colours.dim(`${id} ${createdAt}`), " ", colours.bold(type), ...run, detail];
}
