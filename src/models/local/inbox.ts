/** Buffers events that arrive while the reader is busy: the reader takes all of them, or waits for the next. */
import type { ModelEvent } from "../engine.ts";

export interface Inbox {
  put(event: ModelEvent): void;
  /** Events that have arrived can still be taken; then `take` throws. */
  fail(error: unknown): void;
  /** All events since the last call, at least one. */
  take(): Promise<ModelEvent[]>;
}

export function createInbox(): Inbox {
  let events: ModelEvent[] = [];
  let failure: { error: unknown } | undefined;
  let wake = () => {};

  return {
    put(event) {
      const last = events.at(-1);
      if (event.type === "text" && last?.type === "text") last.text += event.text;
      else events.push({ ...event });
      wake();
    },
    fail(error) {
      failure ??= { error };
      wake();
    },
    async take() {
      if (events.length === 0 && failure === undefined) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      if (events.length === 0 && failure !== undefined) throw failure.error;
      const taken = events;
      events = [];
      return taken;
    },
  };
}
