import { ApiError, call, open, unreachable } from "./api.ts";
import type { Message } from "./records.ts";

/** What this page needs of a run's events (the API's `GET …/events`). */
export interface RunEvent {
  id: number;
  type: string;
  delta?: string;
  name?: string;
  message?: Message;
  error?: { code: string; message: string };
}

/** A message that is on the host's disk, and the run that will answer it. */
export interface Sent {
  runId: string;
  messageId: string;
}

const ENDS = new Set(["run.completed", "run.failed", "run.cancelled"]);
/** The server says `: ping` every 15 s; silence for this long is a dead connection. */
const SILENT_MS = 40_000;
const TRIES = 6;

const beforeTry = (tries: number): Promise<void> =>
  tries === 0 ? Promise.resolve() : new Promise((resolve) => setTimeout(resolve, 250 * 2 ** tries));

/** Sends a message. Where the answer does not arrive it is sent again under the same key, and so written once. */
export async function sendMessage(agentPath: string, message: string): Promise<Sent> {
  const key = [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
  const headers = { Prefer: "respond-async", "Idempotency-Key": key };
  for (let tries = 0; ; tries++) {
    await beforeTry(tries);
    try {
      return await call<Sent>("POST", `${agentPath}/messages`, { message }, headers);
    } catch (error) {
      const code = error instanceof ApiError ? error.code : "";
      // A conflict says that the try before is still being taken in.
      const mayHelp = code === "unreachable" || (code === "conflict" && tries > 0);
      if (!mayHelp || tries === TRIES - 1) throw error;
    }
  }
}

/** A run's events from its first to its last. A connection that breaks is taken up at the next event. */
export async function* followRun(agentPath: string, runId: string, until: AbortSignal): AsyncGenerator<RunEvent> {
  let after = "";
  for (let tries = 0; tries < TRIES; tries++) {
    await beforeTry(tries);
    try {
      for await (const event of readEvents(`${agentPath}/events?runId=${runId}${after}`, until)) {
        after = `&after=${event.id}`;
        tries = 0;
        yield event;
        if (ENDS.has(event.type)) return;
      }
    } catch (error) {
      if (until.aborted || (error instanceof ApiError && error.code !== "unreachable")) throw error;
    }
  }
  throw unreachable();
}

async function* readEvents(path: string, until: AbortSignal): AsyncGenerator<RunEvent> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENT_MS);
  try {
    const { body } = await open("GET", path, undefined, AbortSignal.any([silence.signal, until]));
    if (!body) return;
    let text = "";
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENT_MS);
      const frames = (text + part.value).split("\n\n");
      text = frames.pop() ?? "";
      for (const frame of frames) {
        const data = frame.split("\n").find((line) => line.startsWith("data: "));
        if (data) yield JSON.parse(data.slice("data: ".length)) as RunEvent;
      }
    }
  } finally {
    clearTimeout(timer);
    silence.abort();
  }
}
