import type { WaitingCall } from "../../runtime/hosted-run.ts";
import { cutOutput } from "../../tools/long-output.ts";
import type { ToolResult } from "../../tools/tool.ts";
import type { AgentEvent } from "../events/event.ts";
import type { EventLog } from "../events/event-log.ts";
import type { Run, SavedCall, SavedStep } from "../schema.ts";
import { isUnknown, readJournal } from "./journal.ts";
import type { ParkingQueries, SavedJournal } from "./parking-queries.ts";
import type { Taint } from "./taint.ts";

/** Runs of an agent that may wait at the same time (docs/contract/runtime.md, Waiting). */
export const MAX_WAITING = 32;

/**
 * The decision about a waiting call: its result, or that it may be made. `isUntrusted` if a stranger may have written the
 * result.
 */
export type Decision = (ToolResult & { isUntrusted?: boolean }) | "go ahead";

/** Waiting runs. A run that waits keeps its conversation's turn, but no place, no worker and no timer. */
export interface Parking {
  /** What a run had done when it last waited; null if it never has. */
  saved(run: Run): SavedJournal | null;
  /**
   * Parks a run in whose last step these calls wait. Returns the changed run; it is `running` if the calls were refused
   * because too many runs of the agent wait. Returns null if what the run did is no longer known. Call it in the
   * transaction that has written its events.
   */
  park(run: Run, waits: readonly WaitingCall[]): Run | null;
  /**
   * Settles what a call waits for. After the last one, the run is `running` and can be started from its journal.
   * Returns null, and does nothing, if no call waits for it (any longer). Call it in a transaction.
   */
  decide(runId: string, waitId: string, decision: Decision): Run | null;
  /** Deletes the saved journal of a run that has ended. */
  forget(run: Run): void;
}

const REFUSED: ToolResult = {
  output: `${MAX_WAITING} runs of this agent are already waiting for a decision, so this call cannot wait too: do without it, or say what you need.`,
  isError: true,
};

export function createParking(
  findRun: (runId: string) => Run | undefined,
  queries: ParkingQueries,
  events: Pick<EventLog, "append" | "ofRun">,
  taint: Pick<Taint, "markWaiting">,
): Parking {
  const saved = (run: Run) => (run.journalUpTo === null ? null : queries.journal(run.runId));

  /** Saves the journal up to and including these events. */
  function save(run: Run, steps: SavedStep[], reported: AgentEvent[]): Run {
    const { kind = null, id = null } = waitingIn(steps)[0]?.waitsFor ?? {};
    const status = kind === null ? "running" : "waiting";
    const upTo = events.append(run.agentId, reported, run.conversationId);
    const state = { status, waitingKind: kind, waitingId: id } as const;
    queries.save(run.runId, state, { upTo, steps });
    return { ...run, ...state, journalUpTo: upTo };
  }

  return {
    saved,
    park(run, waits) {
      const { runId, agentId } = run;
      const journal = readJournal(events, run, saved(run));
      if (journal === null) return null;
      const steps: SavedStep[] = journal.steps;
      for (const { call, waitsFor } of waits) mark(steps.at(-1), call, waitsFor);
      const open = waitingIn(steps);
      if (queries.waitingOf(agentId) >= MAX_WAITING) {
        return save(
          run,
          steps,
          open.map((call) => settle(runId, call, REFUSED)),
        );
      }
      const calls = open.map(({ id, name, waitsFor }) => ({ toolCallId: id, name, waitsFor }));
      return save(run, steps, [{ type: "run.waiting", runId, calls }]);
    },
    decide(runId, waitId, decision) {
      const run = findRun(runId);
      const journal = run?.status === "waiting" ? saved(run) : null;
      const call = journal && waitingIn(journal.steps).find(({ waitsFor }) => waitsFor.id === waitId);
      if (!run || !call) return null;
      const { steps } = journal;
      const reported: AgentEvent[] = [];
      if (decision !== "go ahead" && decision.isUntrusted) taint.markWaiting(runId);
      if (decision === "go ahead") letGo(call);
      else reported.push(settle(runId, call, decision));
      if (waitingIn(steps).length === 0) reported.push({ type: "run.resumed", runId });
      return save(run, steps, reported);
    },
    forget: (run) => run.journalUpTo !== null && queries.forget(run.runId),
  };
}

type OpenCall = SavedCall & Required<Pick<SavedCall, "waitsFor">>;

const waitingIn = (steps: readonly SavedStep[]): OpenCall[] =>
  steps.flatMap(({ calls }) => calls).filter((call): call is OpenCall => call.waitsFor !== undefined);

/** Marks a call as waiting. The journal has it with an unknown outcome, since its start is in the log. */
function mark(
  step: SavedStep | undefined,
  { id, name, input }: WaitingCall["call"],
  waitsFor: WaitingCall["waitsFor"],
) {
  const call = step?.calls.find((one) => isUnknown(one) && one.id === id && one.name === name && one.input === input);
  if (call) Object.assign(call, { result: null, waitsFor });
}

function letGo(call: SavedCall): void {
  if (call.waitsFor) call.goAhead = call.waitsFor.id;
  delete call.waitsFor;
}

function settle(runId: string, call: SavedCall, { output, isError }: ToolResult): AgentEvent {
  const result = { output: cutOutput(output), isError };
  call.result = result;
  delete call.waitsFor;
  return { type: "tool.completed", runId, toolCallId: call.id, name: call.name, ...result };
}
