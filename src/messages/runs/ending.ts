import type { Clock } from "../../lib/clock.ts";
import type { WaitingCall } from "../../runtime/hosted-run.ts";
import type { RunOutcome } from "../../runtime/protocol.ts";
import type { AgentEvent } from "../events/event.ts";
import type { EventLog } from "../events/event-log.ts";
import type { MessageQueries, NewMessageRow } from "../queries.ts";
import { type MessageRecord, showMessage } from "../record.ts";
import type { Run } from "../schema.ts";
import { readJournal } from "./journal.ts";
import type { Parking } from "./parking.ts";
import type { StepQueries } from "./past-steps.ts";
import { type Progress, savedOf } from "./progress.ts";
import { replyOfRun } from "./reply.ts";
import type { Taint } from "./taint.ts";

/** A run that has ended, with the agent's message; null if it failed before it wrote any text. */
export interface EndedRun {
  run: Run;
  reply: MessageRecord | null;
}

/** Called in the transaction in which it happens. */
export interface RunListener {
  /**
   * A run waits, tainted or not. What is to decide about its calls is created here, so that nobody decides before the run
   * waits.
   */
  waiting?(run: Run, calls: readonly WaitingCall[], isTainted: boolean): void;
  /** A run is about to end. What there is to report of it is reported here: nothing of it follows its end. */
  ending?(run: Run, outcome: RunOutcome): void;
  ended?(ended: EndedRun): void;
}

export interface EndingParts {
  clock: Clock;
  events: EventLog;
  queries: MessageQueries;
  taint: Taint;
  steps: Pick<StepQueries, "add">;
  /** The sender of the agent's messages. */
  senderOf(agentId: string): { id: string; name: string };
}

const failure = (message: string): RunOutcome => ({ kind: "failed", code: "internal_error", message });
export const BROKEN = failure("the agent's run could not be started; the cause is in the host's log");
export const LOST = failure(
  "the events that say what the agent's run has done are no longer kept, so it cannot continue; send the message again",
);

/** Writes the end of a run: its message, its row, and its last events after those `reported`. Call it in a transaction. */
export function createEnding(
  { clock, events, queries, taint, steps: pastSteps, senderOf }: EndingParts,
  parking: Pick<Parking, "forget" | "saved">,
) {
  return (
    run: Run,
    outcome: RunOutcome,
    { text, hasCalled, ...progress }: Progress,
    reported: readonly AgentEvent[],
  ): EndedRun => {
    const { agentId, conversationId, runId } = run;
    // One that ends while it waits is not in memory.
    const isTainted = progress.isTainted || (outcome.kind !== "completed" && taint.isMarked(runId));
    if (isTainted) taint.forget(runId);
    const last = [...reported];
    let reply: NewMessageRow | null = null;
    if (outcome.kind !== "failed" || text !== "") {
      reply = replyOfRun(run, {
        ...{ text, outcome, usage: progress.usage, isTainted },
        sender: senderOf(agentId),
        createdAt: clock.now(),
      });
      queries.insertMessage(reply);
      last.push({ type: "message.completed", runId, message: showMessage(reply) });
    }
    const error = outcome.kind === "failed" ? { code: outcome.code, message: outcome.message } : null;
    if (error) last.push({ type: "run.failed", runId, error });
    else last.push({ type: outcome.kind === "completed" ? "run.completed" : "run.cancelled", runId });
    const change = {
      status: outcome.kind,
      finishedAt: clock.now(),
      errorCode: error?.code ?? null,
      errorMessage: error?.message ?? null,
      retryAt: (outcome.kind === "failed" && outcome.retryAt) || null,
      waitingKind: null,
      waitingId: null,
      ...savedOf(progress),
    };
    queries.endRun(runId, change);
    events.append(agentId, last, conversationId);
    // Read from the log, which by now has all that it did.
    if (reply && (hasCalled || run.journalUpTo !== null)) {
      pastSteps.add(reply, readJournal(events, run, parking.saved(run))?.steps ?? []);
    }
    parking.forget(run);
    return { run: { ...run, ...change, journalUpTo: null }, reply: reply && showMessage(reply) };
  };
}
