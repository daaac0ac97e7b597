import { AppError } from "../lib/app-error.ts";
import type { Answer } from "./answering.ts";

/** Writes an answer as server-sent events, in one of OpenAI's forms. Each function returns whole frames. */
export interface AnswerWriter {
  begin(): string;
  text(piece: string): string;
  end(answer: Answer): string;
  fail(error: AppError): string;
}

export interface AnswerStream {
  body: ReadableStream<Uint8Array>;
  /** For `answer`. */
  onText(piece: string): void;
  /** Follows the answer to its end. An answer that cannot be begun is never followed. */
  follow(done: Promise<Answer>): void;
}

const PING_MS = 15_000;
const PING = ": ping\n\n";
const encoder = new TextEncoder();

export const frameOf = (data: unknown, event?: string): string =>
  `${event === undefined ? "" : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`;

/**
 * A stream of an answer. What a slow reader has not taken yet is joined to one piece, so a stream takes no more memory than
 * its answer. `onEnd` is called once; with `true` if the client has left before the end.
 */
export function streamAnswer(writer: AnswerWriter, onEnd: (hasLeft: boolean) => void, pingMs = PING_MS): AnswerStream {
  let text = "";
  let last: string | null = null;
  let isOver = false;
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const send = (frames: string) => controller?.enqueue(encoder.encode(frames));
  const hasRoom = () => (controller?.desiredSize ?? 0) > 0;
  let ping: Timer | undefined;

  function end(hasLeft: boolean): void {
    if (isOver) return;
    isOver = true;
    clearInterval(ping);
    onEnd(hasLeft);
  }

  function flush(): void {
    if (isOver || !hasRoom()) return;
    // Sending may ask for more at once, so what is sent is no longer waiting.
    const [piece, rest] = [text, last];
    text = "";
    if (rest === null) {
      if (piece !== "") send(writer.text(piece));
      return;
    }
    end(false);
    send((piece === "" ? "" : writer.text(piece)) + rest);
    controller?.close();
  }

  const body = new ReadableStream<Uint8Array>({
    start(given) {
      controller = given;
      send(writer.begin());
    },
    pull: flush,
    cancel: () => end(true),
  });

  return {
    body,
    onText(piece) {
      text += piece;
      flush();
    },
    follow(done) {
      if (!isOver) ping = setInterval(() => hasRoom() && send(PING), pingMs).unref();
      done.then(
        (answer) => {
          last = writer.end(answer);
          flush();
        },
        (error: unknown) => {
          last = writer.fail(error instanceof AppError ? error : new AppError("internal_error", "the answer was lost"));
          flush();
        },
      );
    },
  };
}
