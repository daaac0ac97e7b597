import type { MessageQueries, RunsOf } from "../queries.ts";
import { RUN_STATUSES, type Run, type RunStatus } from "../schema.ts";

/** Newest first, behind this place in the agent's log. The index has them by status, so all of them are six short lists. */
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
