import { inputAsText } from "../../runtime/call-input.ts";
import type { JournalCall, JournalStep } from "../../runtime/protocol.ts";
import type { ToolResult } from "../../tools/tool.ts";
import type { AgentEvent } from "../events/event.ts";
import type { EventLog } from "../events/event-log.ts";
import type { StartedCall } from "../events/event-record.ts";
import type { Run, StoredEvent } from "../schema.ts";
import type { SavedJournal } from "./parking-queries.ts";

const READ_AT_ONCE = 500;

export const UNKNOWN_OUTCOME =
  "The server stopped while this tool was running. Whether it took effect is unknown; check before you repeat it.";

export interface Journal {
  /** Whether the last attempt has reported text or tool calls since it was started or resumed. */
  shown: boolean;
  /** The text that clients have been shown: the last attempt's deltas, joined. */
  text: string;
  /** The steps in which tools were called, of all attempts. */
  steps: JournalStep[];
  /** Whether `text` is exactly the steps' text, because the run waited and showed nothing since: it continues there. */
  continues: boolean;
  /** What the log lacks: the results of calls that have begun, of which nobody knows the outcome. */
  lost: AgentEvent[];
}

export const NOTHING_DONE: Journal = { shown: false, text: "", steps: [], continues: false, lost: [] };

/**
 * Reads what a run has done from its events, or, if it has waited, from the journal saved then and its events since.
 * A call without an outcome is reported to the model as unknown and never repeated
 * (docs/contract/api.md, After a restart). Returns null if its first events are no longer kept, because it is then
 * unknown what the run did.
 */
export function readJournal(
  events: Pick<EventLog, "ofRun">,
  run: Run,
  saved: SavedJournal | null = null,
): Journal | null {
  // While it waits it does nothing: by then, the log may have dropped even what came after its journal.
  const waits = saved !== null && run.status === "waiting";
  const own = waits ? [] : readRun(events, saved === null ? run : { ...run, firstEventId: saved.upTo + 1 });
  if (own === null) return null;
  const restart = own.findLastIndex(({ type }) => type === "run.restarted");
  const attempt = own.slice(restart + 1);
  const shown = attempt.some(({ type }) => type === "message.delta" || type.startsWith("tool."));
  const deltas = attempt.filter(({ type }) => type === "message.delta").map(deltaOf);
  const before = restart < 0 && saved !== null ? textOf(saved.steps) : "";
  const { steps, open } = readSteps(own, saved?.steps ?? []);
  return {
    shown,
    text: before + deltas.join(""),
    steps,
    continues: saved !== null && restart < 0 && !shown,
    lost: [...open].map(({ id, name }) => ({
      ...{ type: "tool.completed", runId: run.runId, toolCallId: id, name },
      ...unknownResult(),
    })),
  };
}

/** Adds what the events report to the steps. Returns also the calls that have begun and not ended. */
function readSteps(own: readonly StoredEvent[], steps: JournalStep[]) {
  const open = new Set<JournalCall>();
  // The text since the last step's calls.
  let text = "";
  // After a restart the log repeats the earlier steps' text, before anything new.
  let repeated = "";
  let latest: JournalStep | undefined;
  for (const { type, data } of own) {
    if (type === "run.restarted") {
      text = "";
      repeated = textOf(steps);
      latest = undefined;
    } else if (type === "message.delta") {
      text += deltaOf({ data });
      if (repeated !== "" && text.startsWith(repeated)) {
        text = text.slice(repeated.length);
        repeated = "";
      }
      latest = undefined;
    } else if (type === "tool.started") {
      const started = JSON.parse(data) as Started;
      let step = started.step === undefined ? openStep(latest) : steps[started.step - 1];
      if (step === undefined) {
        step = { text, calls: [started, ...(started.following ?? [])].map(notMade) };
        steps.push(step);
        text = "";
      }
      open.add(beginCall(step, started));
      latest = step;
    } else if (type === "tool.completed") {
      const { toolCallId, output, isError } = JSON.parse(data) as Completed;
      // The latest with this id: in runs of older versions, each answer may have numbered its calls anew.
      const call = [...open].findLast(({ id }) => id === toolCallId);
      if (!call) continue;
      call.result = { output, isError };
      open.delete(call);
    }
  }
  return { steps, open };
}

/** Events of older versions have neither `step` nor `following`. */
type Started = StartedCall & { step?: number; following?: StartedCall[] };
type Completed = { toolCallId: string; output: string; isError: boolean };

const notMade = ({ toolCallId, name, input }: StartedCall): JournalCall => ({
  id: toolCallId,
  name,
  input: inputAsText(input),
  result: null,
});

/** The step of a call without `step`: the latest one, if there is no text since and one of its calls is open. */
const openStep = (latest: JournalStep | undefined): JournalStep | undefined =>
  latest?.calls.some(isUnknown) ? latest : undefined;

const unknownResult = (): ToolResult => ({ output: UNKNOWN_OUTCOME, isError: true });

export const isUnknown = ({ result }: JournalCall): boolean => result?.output === UNKNOWN_OUTCOME;

/** Marks a call as started: its outcome is unknown until it is in the log. */
function beginCall({ calls }: JournalStep, started: Started): JournalCall {
  let call = calls.find(({ id, result }) => id === started.toolCallId && result === null);
  if (call === undefined) {
    call = notMade(started);
    calls.push(call);
  }
  call.result = unknownResult();
  delete call.goAhead;
  return call;
}

const textOf = (steps: readonly JournalStep[]) => steps.map(({ text }) => text).join("");

const deltaOf = ({ data }: Pick<StoredEvent, "data">) => (JSON.parse(data) as { delta: string }).delta;

/** Reads all of a run's events. Their number is bounded by what the log keeps of an agent. */
function readRun(events: Pick<EventLog, "ofRun">, run: Run): StoredEvent[] | null {
  const own: StoredEvent[] = [];
  for (let after = run.firstEventId - 1; ; ) {
    const rows = events.ofRun(run, after, READ_AT_ONCE);
    if (rows === null) return null;
    own.push(...rows);
    const last = rows.at(-1);
    if (!last || rows.length < READ_AT_ONCE) return own;
    after = last.eventId;
  }
}
