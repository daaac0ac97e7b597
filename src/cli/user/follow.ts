import { waitFor } from "../../lib/wait-for.ts";
import { type AgentEvent, endsRun } from "../../messages/events/event.ts";
import { Failure } from "../failure.ts";
import { ApiError, type Client, Unreachable } from "./client.ts";
import { readServerEvents } from "./sse.ts";

/** An event as the stream carries it (docs/contract/api.md, Events). */
export type StreamedEvent = AgentEvent & { id: number; createdAt: string };
export type RunEvent = Extract<StreamedEvent, { runId: string }>;

/** The server pings every 15 s: after three missed pings the connection is dead. */
const MAX_SILENCE_MS = 45_000;
const RETRY_MS = 1000;
/** How long a server may be down, for example to restart, before a command gives up. */
const MAX_DOWN_MS = 60_000;
/** A connection that lasted this long counts as a success, even without an event. */
const MIN_HELD_MS = 10_000;

type Open = (after: number | null) => Promise<ReadableStream<Uint8Array>>;

/**
 * The events of a stream, over any number of connections: `open` opens the next one after the last event seen (null
 * before the first). Rethrows what the first `open` throws; later throws only if the server stays down.
 */
async function* resumeStream(open: Open, after: number | null, signal: AbortSignal): AsyncGenerator<StreamedEvent> {
  let opened = false;
  for (let downSince: number | null = null; ; ) {
    let openedAt = Number.POSITIVE_INFINITY;
    try {
      const body = await open(after);
      openedAt = Date.now();
      opened = true;
      for await (const { data } of readServerEvents(body, MAX_SILENCE_MS)) {
        const event = JSON.parse(data) as StreamedEvent;
        downSince = null;
        after = event.id;
        yield event;
      }
    } catch (error) {
      const away = !(error instanceof Failure) || error instanceof Unreachable;
      if (signal.aborted || !opened || !away) throw error;
    }
    if (Date.now() - openedAt > MIN_HELD_MS) downSince = null;
    downSince ??= Date.now();
    if (Date.now() - downSince > MAX_DOWN_MS) {
      throw new Unreachable(
        "the connection broke, and the server cannot be reached any more",
        "to see what happened: roost events INSTANCE AGENT",
      );
    }
    await waitFor(RETRY_MS, signal);
  }
}

/** An agent's events until `signal`: those after the event `after`, or from now on. */
export function followAgent(
  client: Client,
  path: string,
  after: number | null,
  signal: AbortSignal,
): AsyncGenerator<StreamedEvent> {
  return resumeStream((last) => openEvents(client, path, last, signal), after, signal);
}

const openEvents = (client: Client, path: string, after: number | null, signal: AbortSignal) =>
  client.stream("GET", `${path}/events`, {
    headers: after === null ? {} : { "Last-Event-ID": String(after) },
    signal,
  });

export interface MessageInput {
  message: string;
  /** The agent's default conversation if absent. */
  conversationId?: string | undefined;
}

/**
 * Sends a message and yields its run's events to the last. A broken connection resumes where it was; before the first
 * event, by sending again with the same idempotency key, so that the message is never stored twice.
 */
export async function* sendMessage(
  client: Client,
  path: string,
  message: MessageInput,
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  const key = crypto.randomUUID();
  let runId: string | undefined;
  const open: Open = (after) =>
    after === null
      ? client.stream("POST", `${path}/messages`, {
          body: { ...message, stream: true },
          headers: { "Idempotency-Key": key },
          signal,
        })
      : openEvents(client, path, after, signal);
  for await (const event of resumeStream(open, null, signal)) {
    if (!("runId" in event)) continue;
    runId ??= event.runId;
    if (event.runId !== runId) continue;
    yield event;
    if (endsRun(event.type)) return;
  }
}

/** Asks the server to cancel a run; does nothing if it has ended. */
export async function cancelRun(client: Client, path: string, runId: string): Promise<void> {
  try {
    await client.call("POST", `${path}/runs/${runId}/cancel`);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "not_found") throw error;
  }
}
