import type { Instance } from "../../instances/schema.ts";
import type { Clock } from "../../lib/clock.ts";
import { newId } from "../../lib/id.ts";
import type { Host } from "../../runtime/host.ts";
import type { Store } from "../../storage/store.ts";
import type { AgentEvent } from "../events/event.ts";
import type { EventLog } from "../events/event-log.ts";
import type { MessageQueries } from "../queries.ts";
import type { Run } from "../schema.ts";
import { type ActiveRuns, newActive } from "./active-runs.ts";
import type { RunQueue } from "./run-queue.ts";

/** The agent and conversation of a run, and who or what caused it. */
export type Caused = Pick<Run, "agentId" | "conversationId" | "originType" | "originId">;

export interface NewRunParts {
  store: Pick<Store, "afterCommit">;
  clock: Clock;
  events: Pick<EventLog, "append">;
  queries: Pick<MessageQueries, "insertRun">;
  host: Pick<Host, "release">;
}

/**
 * Writes a queued run and its event; it starts when its turn comes. `model` is given for an agent that has no other run:
 * if there is a place for it, it is written as started at once, which saves its start a commit. Call it in the
 * transaction of its message.
 */
export type QueueRun = (
  of: Caused,
  instance: Pick<Instance, "instanceId" | "accountId" | "stops">,
  messageId: string,
  model?: string,
) => Run;

export function createNewRuns(parts: NewRunParts, active: ActiveRuns, queue: RunQueue): QueueRun {
  const { store, clock, events, queries, host } = parts;
  return (caused, { instanceId, accountId, stops }, messageId, model) => {
    const { agentId, conversationId } = caused;
    const runId = newId("run");
    // A run that ends in this transaction is still active if that is rolled back.
    const isFree = active.of(caused) === undefined;
    const starts = model !== undefined && isFree && queue.takePlace(accountId, instanceId);
    const undo = () => host.release(instanceId);
    if (starts) store.afterCommit(() => {}, undo);
    const reported: AgentEvent[] = [{ type: "run.queued", runId }];
    if (starts) reported.push({ type: "run.started", runId });
    const firstEventId = events.append(agentId, reported, conversationId) - reported.length + 1;
    const createdAt = clock.now();
    const run: Run = { ...caused, ...NEW_RUN, runId, instanceId, messageId, firstEventId, stops, createdAt };
    if (!starts) {
      queries.insertRun(run);
      store.afterCommit(() => queue.add(agentId, accountId));
      return run;
    }
    // Its first model call is counted here.
    const current = newActive({ ...run, status: "running", model, startedAt: createdAt, steps: 1 });
    current.accountId = accountId;
    queries.insertRun(current.run);
    active.add(current);
    store.afterCommit(
      () => queue.begin(current, accountId),
      () => void active.remove(current),
    );
    return run;
  };
}

/** What is the same in every run that has not started. */
export const NEW_RUN = {
  status: "queued",
  model: null,
  errorCode: null,
  errorMessage: null,
  steps: 0,
  promptTokens: 0,
  completionTokens: 0,
  cachedTokens: null,
  cost: null,
  retryAt: null,
  startedAt: null,
  finishedAt: null,
  waitingKind: null,
  waitingId: null,
  journalUpTo: null,
} as const;
