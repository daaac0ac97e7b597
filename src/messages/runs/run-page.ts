import type { MessageQueries, RunsOf } from "../queries.ts";
import { RUN_STATUSES, type Run, type RunStatus } from "../schema.ts";

/**
 * Runs from before this place in the agent's log, newest first. The index has them by status, so a page of all of them
 * is merged from six.
 */
export function pageOfRuns(
  queries: MessageQueries,
  whose: RunsOf,
  status: RunStatus | null,
  before: number | null,
  limit: number,
): Run[] {
  const of = (one: RunStatus) => queries.runsOf(whose, one, before ?? Number.MAX_SAFE_INTEGER, limit);
  if (status !== null) return of(status);
  return RUN_STATUSES.flatMap(of)
    .sort((one, other) => other.firstEventId - one.firstEventId)
    .slice(0, limit);
}
