import { ApiError, call, open, unreachable } from "./api.ts";
import type { Approval, Message } from "./records.ts";

/** The fields of a run's events that this page reads (`GET …/events`). */
export interface RunEvent {
  id: number;
  type: string;
  delta?: string;
  toolCallId?: string;
  name?: string;
  input?: unknown;
  output?: string;
  isError?: boolean;
  /** The agent's plan. */
  items?: { text: string; done: boolean }[];
  message?: Message;
  approval?: Approval;
  error?: { code: string; message: string };
}

/** A message that the server has stored, and the run that will answer it. */
export interface Sent {
  runId: string;
  messageId: string;
}

const ENDS = new Set(["run.completed", "run.failed", "run.cancelled"]);
/** The server sends `: ping` every 15 s: after this long without data the connection is dead. */
const MAX_SILENCE_MS = 40_000;
const MAX_TRIES = 6;

const beforeTry = (tries: number): Promise<void> =>
  tries === 0 ? Promise.resolve() : new Promise((resolve) => setTimeout(resolve, 250 * 2 ** tries));

/** Sends a message. Without an answer, it is sent again with the same idempotency key, so it is stored only once. */
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
      // A conflict means that the previous try is still being processed.
      const mayHelp = code === "unreachable" || (code === "conflict" && tries > 0);
      if (!mayHelp || tries === MAX_TRIES - 1) throw error;
    }
  }
}

/** A run's events, from first to last. A broken connection resumes at the next event. */
export async function* followRun(agentPath: string, runId: string, until: AbortSignal): AsyncGenerator<RunEvent> {
  let after = "";
  for (let tries = 0; tries < MAX_TRIES; tries++) {
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
  let timer = setTimeout(() => silence.abort(), MAX_SILENCE_MS);
  try {
    const { body } = await open("GET", path, undefined, AbortSignal.any([silence.signal, until]));
    if (!body) return;
    let text = "";
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), MAX_SILENCE_MS);
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
