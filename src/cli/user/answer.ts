import type { MessageRecord } from "../../messages/record.ts";
import { Failure } from "../failure.ts";
import type { Client } from "./client.ts";
import { cancelRun, type MessageInput, type RunEvent, sendMessage } from "./follow.ts";

/** What a message came to. */
export interface Outcome {
  reply: MessageRecord | null;
  cancelled: boolean;
}

/** Whoever asked did not wait for the end. */
export class Left extends Failure {}

/** How long leaving waits for the server to hear that nobody wants the answer any more. */
const FAREWELL_MS = 2_000;

/**
 * Sends a message and hands over its events as they come. The first Ctrl-C cancels the run, whose last events still
 * come; the second gives up waiting for them and throws `Left`. Throws a `Failure` for a run that failed.
 */
export async function ask(
  client: Client,
  path: string,
  message: MessageInput,
  onEvent: (event: RunEvent) => void,
): Promise<Outcome> {
  const leaving = new AbortController();
  const outcome: Outcome = { reply: null, cancelled: false };
  const cancelling: Promise<void>[] = [];
  let runId: string | null = null;
  let interrupted = false;
  const cancel = () => {
    if (runId !== null) cancelling.push(cancelRun(client, path, runId).catch((error) => leaving.abort(error)));
  };
  const onInterrupt = () => {
    if (interrupted) {
      const known = "left while the answer was being cancelled";
      leaving.abort(
        new Left(runId === null ? "left before the server answered: it may still have the message" : known),
      );
    } else {
      interrupted = true;
      cancel();
    }
  };
  process.on("SIGINT", onInterrupt);
  try {
    for await (const event of sendMessage(client, path, message, leaving.signal)) {
      if (runId === null) {
        runId = event.runId;
        if (interrupted) cancel();
      }
      onEvent(event);
      if (event.type === "message.completed") outcome.reply = event.message;
      else if (event.type === "run.cancelled") outcome.cancelled = true;
      else if (event.type === "run.failed") throw new Failure(event.error.message, NEXT[event.error.code] ?? null);
    }
    await Promise.all(cancelling);
    return outcome;
  } catch (error) {
    if (error instanceof Left) await Promise.race([Promise.all(cancelling), Bun.sleep(FAREWELL_MS)]);
    throw error;
  } finally {
    process.off("SIGINT", onInterrupt);
  }
}

const NEXT: Record<string, string> = { model_error: "roost doctor, on the host, checks the model" };
