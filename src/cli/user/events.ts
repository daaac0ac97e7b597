import type { AgentEvent } from "../../../clients/typescript/src/index.ts";
import { colours, type Piece, stream, streamJson } from "../output.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import { findAgent } from "./find.ts";

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
  try {
    for await (const event of client.events(agent, { after, signal: leaving.signal })) {
      if (json) streamJson(event);
      else stream(...lineOf(event), "\n");
    }
  } catch (error) {
    if (!leaving.signal.aborted) throw error;
  }
}

function lineOf(event: AgentEvent): Piece[] {
  const { id, type, createdAt, ...own } = event;
  const { agentId: _, runId, ...rest } = own as Record<string, unknown>;
  const detail = Object.keys(rest).length === 0 ? "" : ` ${JSON.stringify(rest)}`;
  const run = runId === undefined ? [] : [" ", colours.dim(String(runId))];
  return [colours.dim(`${id} ${createdAt}`), " ", colours.bold(type), ...run, detail];
}
