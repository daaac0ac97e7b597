import { AppError } from "../lib/app-error.ts";
import { type Clock, secondsUntil } from "../lib/clock.ts";
import { newId } from "../lib/id.ts";
import { addUsage, newUsage, type RunUsage } from "../messages/runs/progress.ts";
import type { Asked, UnkeptListener } from "../messages/runs/unkept-runs.ts";
import type { ToolCall } from "../models/engine.ts";
import type { ForcedCall } from "./forced-call.ts";

/** What an agent has answered. */
export interface Answer {
  text: string;
  /** The caller's functions that it calls, each with an id of its own. */
  calls: ToolCall[];
  /** `length`: it ends where it had to, in its text or its last call. */
  finish: "stop" | "length" | "tool_calls";
  /** Of all its model calls together. */
  usage: RunUsage;
  /** Who has answered: `local:…` or `openai:…`. */
  model: string | null;
  /** How often it has called its model. */
  steps: number;
  /** Whether it has read what a stranger may have written (docs/contract/runtime.md, Taint). */
  isTainted: boolean;
}

/** An answer that is being written. */
export interface Answering {
  /** Rejects with an `AppError` that says why there is none. */
  done: Promise<Answer>;
  /** Cancels it, for this reason. */
  cancel(reason: AppError): void;
}

/** What an agent is asked on this surface. */
export interface AskedHere extends Asked {
  /** The call that its answer is to be; null for an answer in words. */
  forced: ForcedCall | null;
}

/** Whom to ask what. */
export interface Ask {
  /** Starts to ask; returns how to cancel. Throws if the agent cannot be asked now. */
  start(listener: UnkeptListener): () => void;
  forced: AskedHere["forced"];
}

const STOPPED = () =>
  new AppError("instance_not_ready", "the agent's instance was stopped, or the agent deleted, before it had answered", {
    retryAfterSeconds: 5,
  });

/** Asks an agent. `onText` gets each piece of its text as it is written. Throws as `ask` does. */
export function answer({ start, forced }: Ask, clock: Clock, onText: (text: string) => void = () => {}): Answering {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  // A client that leaves early waits no longer.
  promise.catch(() => {});
  let [text, calls, steps] = ["", [] as ToolCall[], 0];
  const usage = newUsage();
  let model: string | null = null;
  let isTainted = false;
  let why: AppError | null = null;
  const stop = start((event) => {
    switch (event.type) {
      case "started":
        model = event.model;
        break;
      case "tainted":
        isTainted = true;
        break;
      case "step":
        steps++;
        break;
      case "delta":
        text += event.text;
        if (forced === null) onText(event.text);
        break;
      case "usage":
        addUsage(usage, event);
        break;
      case "asked":
        // Servers repeat their ids, and a caller tells its calls apart by them.
        calls = event.calls.map((call) => ({ ...call, id: newId("call") }));
        break;
      case "ended": {
        const { outcome } = event;
        if (outcome.kind === "failed") {
          const retryAfterSeconds = secondsUntil(clock, outcome.retryAt);
          reject(new AppError(outcome.code, outcome.message, { retryAfterSeconds }));
        } else if (outcome.kind !== "completed") reject(why ?? STOPPED());
        else {
          const said =
            forced === null ? { text, calls } : { text: "", calls: [{ id: newId("call"), ...forced.callOf(text) }] };
          const usual = forced?.finish ?? (calls.length > 0 ? "tool_calls" : "stop");
          const finish = outcome.finishReason === "stop" ? usual : outcome.finishReason;
          resolve({ ...said, usage, model, steps, isTainted, finish });
        }
      }
    }
  });
  return {
    done: promise,
    cancel(reason) {
      why ??= reason;
      stop();
    },
  };
}
