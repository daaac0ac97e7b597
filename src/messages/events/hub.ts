import { createTurnBudget } from "../../lib/turn-budget.ts";
import type { StoredEvent } from "../schema.ts";
import { endsRun, toFrame } from "./event.ts";
import type { EventReader } from "./event-reader.ts";

/** Who listens to an agent: everything behind `after`, what belongs to one conversation, or to one run until it ends. */
export interface Subscription {
  agentId: string;
  after: number;
  /** Of the run too, where there is one. */
  conversationId: string | null;
  runId: string | null;
}

export interface Hub {
  /** Sends committed events to whoever listens. */
  publish(agentId: string, rows: StoredEvent[]): void;
  /** An event stream. It ends with its run, its agent, its client, or the hub; `onEnd` is called once. */
  open(subscription: Subscription, onEnd?: () => void): EventStream;
  /**
   * The same, for what comes after an event that the open transaction has just written: nothing needs to be read for it.
   */
  openAhead(subscription: Subscription, onEnd?: () => void): EventStream;
  /** Whether somebody follows the agent now. */
  isWatched(agentId: string): boolean;
  /** Ends the agent's streams, or those of one conversation, after what they were sent. */
  end(agentId: string, conversationId?: string): void;
  endAll(): void;
  openStreams(): number;
}

export interface EventStream {
  body: ReadableStream<Uint8Array>;
  /** Ends it, after what it was sent. */
  end(): void;
}

interface Stream extends Subscription {
  onEnd: () => void;
  controller: ReadableStreamDefaultController<Uint8Array>;
  /** True while every committed event up to `after` has been handed over, so the next one may be sent as it comes. */
  live: boolean;
  /** The set of streams that are pinged with this one. */
  pinged: Set<Stream>;
}

/** To look through what was cleared, for readers who see none of it, takes no more of a turn of the event loop. */
const SEARCH_MS = 2;

const PING_MS = 15_000;
/** Streams are pinged in turns, so that thousands of them never make one long turn of the event loop. */
const PING_TURNS = 30;
/** What may wait in memory for one slow reader; beyond it the reader is served from the log, at its own pace. */
const BUFFER_BYTES = 32 * 1024;
const AT_ONCE = { rows: 200, bytes: BUFFER_BYTES };

/**
 * When the clients of a host that stops come back: spread over four seconds, not all at once
 * (docs/contract/operations.md, Signals).
 */
const comeBackMs = () => 1_000 + Math.floor(Math.random() * 4_001);

const encoder = new TextEncoder();
const encode = (rows: StoredEvent[]) => encoder.encode(rows.map(toFrame).join(""));
const PING = encoder.encode(": ping\n\n");
const RETRY = encoder.encode("retry: 2000\n\n");

/**
 * Live streams over the event log. A stream holds a cursor, not a queue: while its reader keeps up it gets each event
 * as it is committed, and when the reader falls behind it reads the log again from its cursor. So memory is bounded,
 * and resuming is the same as being slow.
 */
export function createHub(read: EventReader["follow"], pingMs = PING_MS): Hub {
  const streamsOf = new Map<string, Set<Stream>>();
  const turns: Set<Stream>[] = Array.from({ length: PING_TURNS }, () => new Set());
  let turn = 0;
  let opened = 0;
  let count = 0;
  /** Streams that have found nothing yet of what they look for. */
  const searching = new Set<Stream>();
  let searchesNext = false;
  const searchTime = createTurnBudget(SEARCH_MS);

  const timer = setInterval(() => {
    turn = (turn + 1) % PING_TURNS;
    for (const stream of turns[turn] ?? []) if (hasRoom(stream)) stream.controller.enqueue(PING);
  }, pingMs / PING_TURNS);
  timer.unref();

  const hasRoom = (stream: Stream) => (stream.controller.desiredSize ?? 0) > 0;

  function remove(stream: Stream): void {
    const streams = streamsOf.get(stream.agentId);
    if (!streams?.delete(stream)) return;
    if (streams.size === 0) streamsOf.delete(stream.agentId);
    stream.pinged.delete(stream);
    searching.delete(stream);
    count--;
    stream.onEnd();
  }

  function close(stream: Stream): void {
    remove(stream);
    stream.controller.close();
  }

  /** Hands over events, of which none up to `upTo` is left out. Ends a run's stream behind its last event. */
  function send(stream: Stream, rows: StoredEvent[], upTo: number, encoded?: Uint8Array): void {
    const { runId, conversationId, controller } = stream;
    stream.after = upTo;
    if (hearsAll(stream)) {
      if (rows.length > 0) controller.enqueue(encoded ?? encode(rows));
      return;
    }
    const own = rows.filter((row) => (runId === null ? row.conversationId === conversationId : row.runId === runId));
    if (own.length > 0) controller.enqueue(encode(own));
    if (runId !== null && own.some((row) => endsRun(row.type))) close(stream);
  }

  /** Reads on from the log until the reader is full or has everything. */
  function catchUp(stream: Stream): void {
    while (!stream.live && isOpen(stream) && hasRoom(stream)) {
      const { agentId, after, conversationId } = stream;
      const found = read(agentId, after, AT_ONCE, conversationId);
      // Its reader was too slow for the log. It comes back, and is told that its cursor is not kept (410).
      if (found === null) {
        close(stream);
        return;
      }
      stream.live = found.isEnd;
      send(stream, found.rows, found.upTo);
      if (!found.isEnd && found.rows.length === 0) {
        searchOn(stream);
        return;
      }
    }
  }

  /** Leaves others their turn before more is looked through. */
  function searchOn(stream: Stream): void {
    searching.add(stream);
    if (!searchesNext) setImmediate(search);
    searchesNext = true;
  }

  function search(): void {
    searchesNext = false;
    for (const stream of [...searching]) {
      if (!searchTime.hasTime()) {
        searchOn(stream);
        break;
      }
      searching.delete(stream);
      searchTime.spend(() => catchUp(stream));
    }
  }

  const hearsAll = ({ conversationId, runId }: Subscription) => conversationId === null && runId === null;

  const isOpen = (stream: Stream) => streamsOf.get(stream.agentId)?.has(stream) === true;

  function open(subscription: Subscription, isLive: boolean, onEnd = () => {}): EventStream {
    let stream: Stream | undefined;
    const body = new ReadableStream<Uint8Array>(
      {
        start(controller) {
          const pinged = turns[opened++ % PING_TURNS] ?? new Set();
          stream = { ...subscription, controller, live: isLive, pinged, onEnd };
          pinged.add(stream);
          const streams = streamsOf.get(stream.agentId) ?? new Set();
          streamsOf.set(stream.agentId, streams.add(stream));
          count++;
          controller.enqueue(RETRY);
          catchUp(stream);
        },
        pull: () => stream && catchUp(stream),
        cancel: () => stream && remove(stream),
      },
      { highWaterMark: BUFFER_BYTES, size: (chunk) => chunk?.byteLength ?? 0 },
    );
    return { body, end: () => void (stream && isOpen(stream) && close(stream)) };
  }

  return {
    publish(agentId, rows) {
      const streams = streamsOf.get(agentId);
      if (!streams) return;
      const firstId = rows[0]?.eventId ?? 0;
      let encoded: Uint8Array | undefined;
      for (const stream of streams) {
        // A stream that was opened between a commit and its publishing has read these from the log.
        if (!stream.live || firstId <= stream.after) continue;
        if (!hasRoom(stream)) {
          stream.live = false;
        } else if (firstId > stream.after + 1) {
          // Something before these was committed and not published, or was never kept.
          stream.live = false;
          catchUp(stream);
        } else {
          if (hearsAll(stream)) encoded ??= encode(rows);
          send(stream, rows, rows.at(-1)?.eventId ?? stream.after, encoded);
        }
      }
    },
    open: (subscription, onEnd) => open(subscription, false, onEnd),
    openAhead: (subscription, onEnd) => open(subscription, true, onEnd),
    isWatched: (agentId) => streamsOf.has(agentId),
    end(agentId, conversationId) {
      for (const stream of [...(streamsOf.get(agentId) ?? [])]) {
        if (conversationId === undefined || stream.conversationId === conversationId) close(stream);
      }
    },
    endAll() {
      clearInterval(timer);
      for (const streams of [...streamsOf.values()]) {
        for (const stream of [...streams]) {
          stream.controller.enqueue(encoder.encode(`retry: ${comeBackMs()}\n\n`));
          close(stream);
        }
      }
    },
    openStreams: () => count,
  };
}
