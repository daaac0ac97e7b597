import { colours, type Piece, stream, streamJson } from "../output.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import { findAgent } from "./find.ts";
import { followAgent, type StreamedEvent } from "./follow.ts";

/** `roost events INSTANCE AGENT`: the agent's events, one per line, until Ctrl-C. */
export async function showEvents(
  instance: string,
  agent: string,
  { json, after, ...options }: ServerOptions & { json?: true; after?: number },
): Promise<void> {
  const client = openClient(options);
  const { path } = await findAgent(client, instance, agent);
  const leaving = new AbortController();
  process.once("SIGINT", () => leaving.abort());
  try {
    for await (const event of followAgent(client, path, after ?? null, leaving.signal)) {
      if (json) streamJson(event);
      else stream(...lineOf(event), "\n");
    }
  } catch (error) {
    if (!leaving.signal.aborted) throw error;
  }
}

function lineOf(event: StreamedEvent): Piece[] {
  const { id, type, createdAt, ...own } = event;
  const { agentId: _, runId, ...rest } = own as Record<string, unknown>;
  const detail = Object.keys(rest).length === 0 ? "" : ` ${JSON.stringify(rest)}`;
  const run = runId === undefined ? [] : [" ", colours.dim(String(runId))];
  return [colours.dim(`${id} ${createdAt}`), " ", colours.bold(type), ...run, detail];
}
