import { ApiError, type Message, open, unreachable } from "./api.ts";

/** What this page needs of an agent's events (the API's `GET …/events`). */
export interface RunEvent {
  id: number;
  type: string;
  runId?: string;
  delta?: string;
  name?: string;
  message?: Message;
  error?: { code: string; message: string };
}

const ENDS = new Set(["run.completed", "run.failed", "run.cancelled"]);
/** The server says `: ping` every 15 s; silence for this long is a dead connection. */
const SILENT_MS = 40_000;
const TRIES = 6;

/** Sends a message and gives its run's events to the end. A connection that breaks is taken up at the next event. */
export async function* sendMessage(agentPath: string, message: string): AsyncGenerator<RunEvent> {
  let connect = (signal: AbortSignal) => open("POST", `${agentPath}/messages`, { message, stream: true }, signal);
  let seen: RunEvent | undefined;
  for (let tries = 0; tries < TRIES; tries++) {
    if (tries > 0) await new Promise((resolve) => setTimeout(resolve, 250 * 2 ** tries));
    try {
      for await (const event of readEvents(connect)) {
        if (seen && event.runId !== seen.runId) continue;
        seen = event;
        tries = 0;
        yield event;
        if (ENDS.has(event.type)) return;
      }
    } catch (error) {
      // Without an event nobody knows whether the message arrived: sending it again could say it twice.
      if (!seen || (error instanceof ApiError && error.code !== "unreachable")) throw error;
    }
    if (!seen) break;
    const after = seen.id;
    connect = (signal) => open("GET", `${agentPath}/events?after=${after}`, undefined, signal);
  }
  throw unreachable();
}

async function* readEvents(connect: (signal: AbortSignal) => Promise<Response>): AsyncGenerator<RunEvent> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENT_MS);
  try {
    const { body } = await connect(silence.signal);
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
