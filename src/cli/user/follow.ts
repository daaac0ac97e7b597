import { waitFor } from "../../lib/wait-for.ts";
import { type AgentEvent, endsRun } from "../../messages/events/event.ts";
import { Failure } from "../failure.ts";
import { type Client, Refusal, Unreachable } from "./client.ts";
import { readServerEvents } from "./sse.ts";

/** An event as the stream carries it (api.md section 5). */
export type StreamedEvent = AgentEvent & { id: number; createdAt: string };
export type RunEvent = Extract<StreamedEvent, { runId: string }>;

/** The server pings every 15 s: three missed pings are a dead connection. */
const SILENCE_MS = 45_000;
const RETRY_MS = 1000;
/** How long a server may be away, as for a restart, before a command gives up. */
const AWAY_MS = 60_000;
/** A connection that held this long was one, though no event came on it. */
const HELD_MS = 10_000;

type Open = (after: number | null) => Promise<ReadableStream<Uint8Array>>;

/**
 * The events of a stream over any number of connections: `open` gives the next one, behind the last event that was seen
 * (null before the first). Throws what `open` throws at once; later only when the server stays away.
 */
async function* resuming(open: Open, after: number | null, signal: AbortSignal): AsyncGenerator<StreamedEvent> {
  let heard = false;
  for (let awaySince: number | null = null; ; ) {
    let openedAt = Number.POSITIVE_INFINITY;
    try {
      const body = await open(after);
      openedAt = Date.now();
      heard = true;
      for await (const { data } of readServerEvents(body, SILENCE_MS)) {
        const event = JSON.parse(data) as StreamedEvent;
        awaySince = null;
        after = event.id;
        yield event;
      }
    } catch (error) {
      const away = !(error instanceof Failure) || error instanceof Unreachable;
      if (signal.aborted || !heard || !away) throw error;
    }
    if (Date.now() - openedAt > HELD_MS) awaySince = null;
    awaySince ??= Date.now();
    if (Date.now() - awaySince > AWAY_MS) {
      throw new Unreachable(
        "the connection broke, and the server stays away",
        "roost events INSTANCE AGENT shows what happened",
      );
    }
    await waitFor(RETRY_MS, signal);
  }
}

/** Everything that happens to an agent, until `signal`: behind the event `after`, or from now on. */
export function followAgent(
  client: Client,
  path: string,
  after: number | null,
  signal: AbortSignal,
): AsyncGenerator<StreamedEvent> {
  return resuming((last) => openEvents(client, path, last, signal), after, signal);
}

const openEvents = (client: Client, path: string, after: number | null, signal: AbortSignal) =>
  client.stream("GET", `${path}/events`, {
    headers: after === null ? {} : { "Last-Event-ID": String(after) },
    signal,
  });

export interface MessageInput {
  message: string;
  /** The agent's default conversation where none is named. */
  conversationId?: string | undefined;
}

/**
 * Sends a message and gives its run's events, to its last. A connection that breaks is taken up where it was: before the
 * first event by sending again under the same idempotency key, so that the message is never there twice.
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
  for await (const event of resuming(open, null, signal)) {
    if (!("runId" in event)) continue;
    runId ??= event.runId;
    if (event.runId !== runId) continue;
    yield event;
    if (endsRun(event.type)) return;
  }
}

/** Asks the server to end a run; one that has ended stays as it is. */
export async function cancelRun(client: Client, path: string, runId: string): Promise<void> {
  try {
    await client.call("POST", `${path}/runs/${runId}/cancel`);
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== "not_found") throw error;
  }
}
