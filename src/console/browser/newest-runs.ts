import type { AgentIds } from "../../../clients/typescript/src/index.ts";
import { roost } from "./api.ts";
import { AGENT, type Run } from "./records.ts";

/** Each has its message, so these are enough for a page of messages. */
const MOST = 100;

/**
 * A conversation's newest runs, by id: without those that are no longer kept, were not on this host, or belong to the
 * conversation that this is a fork of.
 */
export async function newestRuns(agent: AgentIds, conversationId: string): Promise<Map<string, Run>> {
  const { data } = await roost.get(`${AGENT}/runs`, { path: agent, query: { limit: MOST, conversationId } });
  return new Map(data.map((run) => [run.runId, run]));
}
