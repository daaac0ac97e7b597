import type { MessageQueries } from "../queries.ts";
import { defaultConversationOf, OVER_STATUSES, type Run, type RunStatus } from "../schema.ts";

/** All runs of the agent, or of one of its conversations. */
export type RunsOf = { agentId: string; conversationId: string | null };

/**
 * Runs from before this place in the agent's log, newest first. Those that are over are found by their status, and an
 * agent's in its default conversation and in the others: a page of all is merged from these, and from the few that are
 * unfinished.
 */
export function pageOfRuns(
  queries: Pick<MessageQueries, "runsOf" | "runsOfOthers" | "unfinishedOf" | "unfinishedIn">,
  { agentId, conversationId }: RunsOf,
  status: RunStatus | null,
  before: number | null,
  limit: number,
): Run[] {
  const mark = before ?? Number.MAX_SAFE_INTEGER;
  const isAsked = (one: RunStatus) => status === null || one === status;
  const over = OVER_STATUSES.filter(isAsked).flatMap((one) =>
    conversationId === null
      ? [
          ...queries.runsOf(defaultConversationOf(agentId), one, mark, limit),
          ...queries.runsOfOthers(agentId, one, mark, limit),
        ]
      : queries.runsOf(conversationId, one, mark, limit),
  );
  const unfinished = conversationId === null ? queries.unfinishedOf(agentId) : queries.unfinishedIn(conversationId);
  return over
    .concat(unfinished.filter((run) => isAsked(run.status) && run.firstEventId < mark))
    .sort((one, other) => other.firstEventId - one.firstEventId)
    .slice(0, limit);
}
