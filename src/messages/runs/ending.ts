import type { Clock } from "../../lib/clock.ts";
import type { WaitingCall } from "../../runtime/hosted-run.ts";
import type { RunOutcome } from "../../runtime/protocol.ts";
import type { AgentEvent } from "../events/event.ts";
import type { EventLog } from "../events/event-log.ts";
import type { MessageQueries } from "../queries.ts";
import { type MessageRecord, showMessage } from "../record.ts";
import type { Run } from "../schema.ts";
import type { Parking } from "./parking.ts";
import type { Progress } from "./progress.ts";
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
  ended?(ended: EndedRun): void;
}

export interface EndingParts {
  clock: Clock;
  events: EventLog;
  queries: MessageQueries;
  taint: Taint;
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
  { clock, events, queries, taint, senderOf }: EndingParts,
  parking: Pick<Parking, "forget">,
) {
  return (
    run: Run,
    outcome: RunOutcome,
    { text, steps, usage, ...progress }: Progress,
    reported: readonly AgentEvent[],
  ): EndedRun => {
    const { agentId, conversationId, runId } = run;
    // One that ends while it waits is not in memory.
    const isTainted = progress.isTainted || (outcome.kind !== "completed" && taint.isMarked(runId));
    if (isTainted) taint.forget(runId);
    const last = [...reported];
    let reply: MessageRecord | null = null;
    if (outcome.kind !== "failed" || text !== "") {
      const message = replyOfRun(run, {
        ...{ text, outcome, usage, isTainted },
        sender: senderOf(agentId),
        createdAt: clock.now(),
      });
      queries.insertMessage(message);
      reply = showMessage(message);
      last.push({ type: "message.completed", runId, message: reply });
    }
    const error = outcome.kind === "failed" ? { code: outcome.code, message: outcome.message } : null;
    if (error) last.push({ type: "run.failed", runId, error });
    else last.push({ type: outcome.kind === "completed" ? "run.completed" : "run.cancelled", runId });
    const change = {
      status: outcome.kind,
      finishedAt: clock.now(),
      errorCode: error?.code ?? null,
      errorMessage: error?.message ?? null,
      waitingKind: null,
      waitingId: null,
      steps,
      ...usage,
    };
    queries.endRun(runId, change);
    parking.forget(run);
    events.append(agentId, last, conversationId);
    return { run: { ...run, ...change, journalUpTo: null }, reply };
  };
}
