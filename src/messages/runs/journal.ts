import { inputAsText } from "../../runtime/call-input.ts";
import type { JournalCall, JournalStep } from "../../runtime/protocol.ts";
import type { StartedCall } from "../events/event.ts";
import type { EventLog } from "../events/event-log.ts";
import type { Run, StoredEvent } from "../schema.ts";

const READ_AT_ONCE = 500;

export const UNKNOWN_OUTCOME =
  "The appliance stopped while this tool was running. Whether it took effect is unknown; check before you repeat it.";

export interface Journal {
  /** Whether the last attempt has shown anything. */
  shown: boolean;
  /** The last attempt's text: its deltas, joined. */
  text: string;
  /** The steps whose tools were called, in all attempts. */
  steps: JournalStep[];
}

/**
 * What a run's events say of the attempt that a crash cut off. A call without an outcome is told to the model as unknown
 * and never repeated (docs/contract/api.md, After a restart). Null where its first events are no longer kept: what it
 * did is then not known.
 */
export function readJournal(events: Pick<EventLog, "ofRun">, run: Run): Journal | null {
  const own = readRun(events, run);
  if (own === null) return null;
  const attempt = own.slice(own.findLastIndex(({ type }) => type === "run.restarted") + 1);
  const shown = attempt.some(({ type }) => type === "message.delta" || type.startsWith("tool."));
  const deltas = attempt.filter(({ type }) => type === "message.delta").map(deltaOf);
  return { shown, text: deltas.join(""), steps: readSteps(own) };
}

function readSteps(own: readonly StoredEvent[]): JournalStep[] {
  const steps: JournalStep[] = [];
  // What was said since the last step's calls.
  let text = "";
  // After a restart the log tells the earlier steps' text again, before anything new.
  let toldAgain = "";
  let latest: JournalStep | undefined;
  for (const { type, data } of own) {
    if (type === "run.restarted") {
      text = "";
      toldAgain = steps.map((step) => step.text).join("");
      latest = undefined;
    } else if (type === "message.delta") {
      text += deltaOf({ data });
      if (toldAgain !== "" && text.startsWith(toldAgain)) {
        text = text.slice(toldAgain.length);
        toldAgain = "";
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
      beginCall(step, started);
      latest = step;
    } else if (type === "tool.completed") {
      const { toolCallId, output, isError } = JSON.parse(data) as Completed;
      // The last that began: servers number their calls anew with each answer.
      const begun = steps.flatMap(({ calls }) => calls).filter(({ result }) => result !== null);
      const call = begun.findLast(({ id }) => id === toolCallId);
      if (call) call.result = { output, isError };
    }
  }
  return steps;
}

/** Older events tell neither their step nor what follows. */
type Started = StartedCall & { step?: number; following?: StartedCall[] };
type Completed = { toolCallId: string; output: string; isError: boolean };

const notMade = ({ toolCallId, name, input }: StartedCall): JournalCall => ({
  id: toolCallId,
  name,
  input: inputAsText(input),
  result: null,
});

/** The step that an older event's call is taken to belong to: one without text since, while a call of it is open. */
const openStep = (latest: JournalStep | undefined): JournalStep | undefined =>
  latest?.calls.some(({ result }) => result?.output === UNKNOWN_OUTCOME) ? latest : undefined;

/** Until its outcome is told, it is unknown. */
function beginCall({ calls }: JournalStep, started: Started): void {
  let call = calls.find(({ id, result }) => id === started.toolCallId && result === null);
  if (call === undefined) {
    call = notMade(started);
    calls.push(call);
  }
  call.result = { output: UNKNOWN_OUTCOME, isError: true };
}

const deltaOf = ({ data }: Pick<StoredEvent, "data">) => (JSON.parse(data) as { delta: string }).delta;

/** What else happened to the agent meanwhile is passed over; what is kept of an agent bounds it all. */
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
