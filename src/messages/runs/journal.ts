import type { JournalStep } from "../../runtime/protocol.ts";
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
 * and never repeated (architecture.md). Null where its first events are no longer kept: what it did is then not known.
 */
export function readJournal(events: Pick<EventLog, "ofRun">, run: Run): Journal | null {
  const own = readRun(events, run);
  if (own === null) return null;
  const attempt = own.slice(own.findLastIndex(({ type }) => type === "run.restarted") + 1);
  const shown = attempt.some(({ type }) => type === "message.delta" || type.startsWith("tool."));
  const deltas = attempt.filter(({ type }) => type === "message.delta").map(deltaOf);
  const steps: JournalStep[] = [];
  let text = "";
  // After a restart the log tells the earlier steps' text again, before anything new.
  let toldAgain = "";
  let open: JournalStep | null = null;
  for (const { type, data } of own) {
    if (type === "run.restarted") {
      text = "";
      toldAgain = steps.map((step) => step.text).join("");
      open = null;
    } else if (type === "message.delta") {
      text += deltaOf({ data });
      if (toldAgain !== "" && text.startsWith(toldAgain)) {
        text = text.slice(toldAgain.length);
        toldAgain = "";
      }
      open = null;
    } else if (type === "tool.started") {
      const { toolCallId, name, input } = JSON.parse(data) as { toolCallId: string; name: string; input: unknown };
      if (!open || open.calls.every(({ output }) => output !== UNKNOWN_OUTCOME)) {
        open = { text, calls: [] };
        steps.push(open);
        text = "";
      }
      open.calls.push({ id: toolCallId, name, input: asText(input), output: UNKNOWN_OUTCOME, isError: true });
    } else if (type === "tool.completed") {
      const { toolCallId, output, isError } = JSON.parse(data) as {
        toolCallId: string;
        output: string;
        isError: boolean;
      };
      // The last one: servers number their calls anew with each answer.
      const call = steps.flatMap(({ calls }) => calls).findLast(({ id }) => id === toolCallId);
      if (call) Object.assign(call, { output, isError });
    }
  }
  return { shown, text: deltas.join(""), steps };
}

const deltaOf = ({ data }: Pick<StoredEvent, "data">) => (JSON.parse(data) as { delta: string }).delta;

const asText = (input: unknown) => (typeof input === "string" ? input : JSON.stringify(input));

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
