import { RoostError } from "./error.ts";
import { pause, type Requests } from "./requests.ts";
import type { components } from "./schema.ts";
import { readServerEvents } from "./server-events.ts";

export type AgentEvent = components["schemas"]["AgentEvent"];
/** An event of a run. */
export type RunEvent = Extract<AgentEvent, { runId: string }>;

/** The server pings every 15 s: after three missed pings the connection is dead. */
const MAX_SILENCE_MS = 45_000;
/** A connection that lasted this long counts as a success, even without an event. */
const MIN_HELD_MS = 10_000;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 10_000;

const ENDS: ReadonlySet<string> = new Set(["run.completed", "run.failed", "run.cancelled"]);

/** Whether this event is the last of its run. */
export const endsRun = ({ type }: { type: string }): boolean => ENDS.has(type);

/**
 * The events of a stream, over any number of connections: `open` opens the next one after the last event seen (null
 * before the first). Rethrows what the first `open` throws; later throws only if the server refuses, or stays away for
 * longer than the client's patience. `connected` is told when a connection is open, and when it broke and is to be continued.
 */
export async function* follow(
  { server, patienceMs }: Requests,
  open: (after: number | null) => Promise<Response>,
  after: number | null,
  signal: AbortSignal | undefined,
  connected: (is: boolean) => void = () => undefined,
): AsyncGenerator<AgentEvent, undefined> {
  let opened = false;
  let retryMs = FIRST_RETRY_MS;
  for (let awaySince: number | null = null; ; ) {
    let openedAt = Number.POSITIVE_INFINITY;
    try {
      const answer = await open(after);
      if (!answer.headers.get("content-type")?.startsWith("text/event-stream") || answer.body === null) {
        throw new RoostError("unexpected_answer", `${server} answered without an event stream`);
      }
      openedAt = Date.now();
      opened = true;
      connected(true);
      // Where a stream from now on begins: what happens while it is broken comes with the next one.
      after ??= lastEventId(answer);
      const told = (ms: number) => {
        retryMs = Math.min(ms, LONGEST_RETRY_MS);
      };
      for await (const { data } of readServerEvents(answer.body, MAX_SILENCE_MS, told)) {
        const event = JSON.parse(data) as AgentEvent;
        awaySince = null;
        after = event.id;
        yield event;
      }
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (!opened || !isAway(error)) throw error;
    }
    connected(false);
    if (Date.now() - openedAt > MIN_HELD_MS) awaySince = null;
    awaySince ??= Date.now();
    if (Date.now() - awaySince > patienceMs) {
      throw new RoostError("disconnected", "the connection broke, and the server cannot be reached any more");
    }
    await pause(retryMs, signal);
  }
}

const lastEventId = ({ headers }: Response): number | null => {
  const id = headers.get("last-event-id");
  return id === null ? null : Number(id);
};

/** What is no answer of the server's, or one that asks for another try. */
const isAway = (error: unknown): boolean =>
  !(error instanceof RoostError) ||
  error.code === "unreachable" ||
  error.code === "timeout" ||
  error.status === 429 ||
  error.status === 503;
