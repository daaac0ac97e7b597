import type { MessageQueries, RunsOf } from "../queries.ts";
import { OVER_STATUSES, type Run, type RunStatus } from "../schema.ts";

/**
 * Runs from before this place in the agent's log, newest first. An index has those that are over by their status, so a page
 * of all is merged from three, and from the few that are unfinished.
 */
export function pageOfRuns(
  queries: Pick<MessageQueries, "runsOf" | "unfinishedOf" | "unfinishedIn">,
  whose: RunsOf,
  status: RunStatus | null,
  before: number | null,
  limit: number,
): Run[] {
  const { agentId, conversationId } = whose;
  const mark = before ?? Number.MAX_SAFE_INTEGER;
  const isAsked = (one: RunStatus) => status === null || one === status;
  const unfinished = conversationId === null ? queries.unfinishedOf(agentId) : queries.unfinishedIn(conversationId);
  return OVER_STATUSES.filter(isAsked)
    .flatMap((one) => queries.runsOf(whose, one, mark, limit))
    .concat(unfinished.filter((run) => isAsked(run.status) && run.firstEventId < mark))
    .sort((one, other) => other.firstEventId - one.firstEventId)
    .slice(0, limit);
}
