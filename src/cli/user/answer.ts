import type { MessageRecord } from "../../messages/record.ts";
import { Failure } from "../failure.ts";
import { colours, type Piece, printable } from "../output.ts";
import type { Client } from "./client.ts";
import { cancelRun, type RunEvent, sendMessage } from "./follow.ts";

/** What a message came to. */
export interface Outcome {
  reply: MessageRecord | null;
  cancelled: boolean;
}

/**
 * Sends a message and hands over its events as they come. The first Ctrl-C cancels the run, whose last events still
 * come; the second gives up waiting for them. Throws a `Failure` for a run that failed.
 */
export async function ask(
  client: Client,
  path: string,
  message: string,
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
    if (interrupted) leaving.abort(new Failure("left while the answer was being cancelled"));
    else {
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
  } finally {
    process.off("SIGINT", onInterrupt);
  }
}

const NEXT: Record<string, string> = { model_error: "roost doctor, on the host, checks the model" };

/** Writes an answer to the terminal as it comes, tools and restarts in passing; begins and ends on lines of its own. */
export function createAnswerView(write: (...pieces: Piece[]) => void): { show(event: RunEvent): void; end(): void } {
  let midLine = false;
  const say = (text: string) => {
    if (text === "") return;
    write(text);
    midLine = !text.endsWith("\n");
  };
  const aside = (text: string) => {
    if (midLine) write("\n");
    write(colours.dim(text), "\n");
    midLine = false;
  };
  return {
    show(event) {
      switch (event.type) {
        case "message.delta":
          say(printable(event.delta));
          break;
        case "tool.started":
          aside(`· ${event.name} ${short(JSON.stringify(event.input) ?? "")}`);
          break;
        case "tool.completed":
          if (event.isError) aside(`· ${event.name} failed: ${short(event.output)}`);
          break;
        case "run.restarted":
          aside("· the server was restarted: the answer begins again");
          break;
        case "run.cancelled":
          aside("· cancelled");
          break;
        default:
          break;
      }
    },
    end() {
      if (midLine) write("\n");
      midLine = false;
    },
  };
}

const SHORT = 100;

function short(text: string): string {
  const line = printable(text).replaceAll(/\s+/g, " ");
  return line.length > SHORT ? `${line.slice(0, SHORT)}…` : line;
}
