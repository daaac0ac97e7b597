import { createSliceTurns } from "../../limits/slices.ts";
import type { StoredEvent } from "../schema.ts";
import { endsRun, toFrame } from "./event.ts";
import type { EventReader } from "./event-reader.ts";

/** What a stream follows, after the cursor: the whole agent, one conversation, or one run until it ends. */
export interface Subscription {
  agentId: string;
  /** The account in whose turns the log is read for it. */
  owner: string;
  after: number;
  /** Also set for a run: its conversation. */
  conversationId: string | null;
  runId: string | null;
  /** Whether that run is over: the stream then ends with what the log has of it, if it has any. */
  isOver?: boolean;
}

export interface Hub {
  /** Sends committed events to the agent's streams. */
  publish(agentId: string, rows: StoredEvent[]): void;
  /**
   * Opens an event stream. It ends with its run, its agent, its client or the hub, or when the log cannot be read; `onEnd`
   * is called once, `onRead` with the bytes of all that is read of the log for it.
   */
  open(subscription: Subscription, onEnd?: () => void, onRead?: (bytes: number) => void): EventStream;
  /** The same, after an event that the open transaction has just written: nothing needs to be read for it. */
  openAhead: Hub["open"];
  /** Whether a stream of the agent is open. */
  isWatched(agentId: string): boolean;
  /** Ends the agent's streams, or those of one conversation, after what they have been sent. */
  end(agentId: string, conversationId?: string): void;
  endAll(): void;
  openStreams(): number;
}

export interface EventStream {
  body: ReadableStream<Uint8Array>;
  /** Resolves once the log has been read for it in its account's turn, or it has ended. Rejects if the log cannot be read. */
  begun: Promise<void>;
  /** Ends it, after what it has been sent. */
  end(): void;
}

type OpenParts = Parameters<Hub["open"]>;

interface Stream extends Subscription {
  onEnd: () => void;
  onRead: (bytes: number) => void;
  controller: ReadableStreamDefaultController<Uint8Array>;
  /** Until the log has been read for it. */
  beginning: PromiseWithResolvers<void> | null;
  /** True while nothing is missing up to `after`, so that the next committed event can be sent directly. */
  live: boolean;
  /** The set of streams that are pinged with this one. */
  pinged: Set<Stream>;
}

const PING_MS = 15_000;
/** Streams are pinged in groups, so that thousands of them never make one event loop turn long. */
const PING_TURNS = 30;
/** Buffered in memory for one slow reader; beyond that it is served from the log, at its own pace. */
const BUFFER_BYTES = 32 * 1024;
const AT_ONCE = { rows: 200, bytes: BUFFER_BYTES };

/**
 * When clients reconnect after the host stops: spread over four seconds, not all at once
 * (docs/contract/operations.md, Signals).
 */
const reconnectMs = () => 1_000 + Math.floor(Math.random() * 4_001);

const nextTurn = () => new Promise<void>((resolve) => void setImmediate(resolve));
const encoder = new TextEncoder();
const encode = (rows: StoredEvent[]) => encoder.encode(rows.map(toFrame).join(""));
const PING = encoder.encode(": ping\n\n");
const RETRY = encoder.encode("retry: 2000\n\n");

/**
 * Live streams over the event log. A stream has a cursor, not a queue: while its reader keeps up, it gets each event as
 * it is committed; when the reader falls behind, it continues from the log at its cursor. So memory is bounded, and a
 * slow stream works like a resumed one.
 */
export function createHub(
  read: EventReader["follow"],
  onFailure: (error: unknown, whose: Subscription) => void,
  pingMs = PING_MS,
  fairTurns = createSliceTurns(),
): Hub {
  const streamsOf = new Map<string, Set<Stream>>();
  const turns: Set<Stream>[] = Array.from({ length: PING_TURNS }, () => new Set());
  let turn = 0;
  let opened = 0;
  let count = 0;
  /** Streams that read the log, or wait for their account's turn to do so. */
  const reading = new Set<Stream>();

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
    count--;
    stream.beginning?.resolve();
    stream.onEnd();
  }

  function close(stream: Stream): void {
    remove(stream);
    stream.controller.close();
  }

  /** Sends events that are complete up to `upTo`. Ends a run's stream after its last event. Returns how many it sent. */
  function send(stream: Stream, rows: StoredEvent[], upTo: number, encoded?: Uint8Array): number {
    const { runId, conversationId, controller } = stream;
    stream.after = upTo;
    if (followsAll(stream)) {
      if (rows.length > 0) controller.enqueue(encoded ?? encode(rows));
      return rows.length;
    }
    const own = rows.filter((row) => (runId === null ? row.conversationId === conversationId : row.runId === runId));
    if (own.length > 0) controller.enqueue(encode(own));
    if (runId !== null && own.some((row) => endsRun(row.type))) close(stream);
    return own.length;
  }

  /** Reads the log until the reader's buffer is full or it has everything. Returns whether it is to go on by itself. */
  function catchUp(stream: Stream): boolean {
    while (!stream.live && isOpen(stream) && hasRoom(stream)) {
      const { agentId, after, conversationId } = stream;
      const found = read(agentId, after, AT_ONCE, conversationId);
      // The reader was too slow, and its next events are no longer kept. When it reconnects it gets 410.
      if (found === null) {
        close(stream);
        return false;
      }
      stream.onRead(found.rows.reduce((bytes, { data }) => bytes + Buffer.byteLength(data), 0));
      stream.live = found.isEnd;
      const sent = send(stream, found.rows, found.upTo);
      // Its reader had its last event already.
      if (found.isEnd && stream.isOver && isOpen(stream)) close(stream);
      // What it skips fills no buffer, so nothing else would end the loop before the log does.
      if (!found.isEnd && (sent === 0 || sent < found.rows.length)) return true;
    }
    return false;
  }

  /** The same. If the log cannot be read the stream ends, so that its client comes back for the rest. */
  function goOn(stream: Stream): boolean {
    try {
      const isSearching = catchUp(stream);
      stream.beginning?.resolve();
      stream.beginning = null;
      return isSearching;
    } catch (error) {
      // Before its first event, its client is told.
      if (stream.beginning) stream.beginning.reject(error);
      else onFailure(error, stream);
      close(stream);
      return false;
    }
  }

  /** Goes on in its account's turns, and while it searches, once in each turn of the event loop. */
  async function readOn(stream: Stream): Promise<void> {
    if (reading.has(stream)) return;
    reading.add(stream);
    for (let more = true, again = false; more; again = true) {
      if (again) await nextTurn();
      const turn = fairTurns.enter(stream.owner);
      if (turn) await turn;
      more = isOpen(stream) && fairTurns.spend(stream.owner, () => goOn(stream));
    }
    reading.delete(stream);
  }

  const followsAll = ({ conversationId, runId }: Subscription) => conversationId === null && runId === null;

  const isOpen = (stream: Stream) => streamsOf.get(stream.agentId)?.has(stream) === true;

  function open(isLive: boolean, ...[subscription, onEnd = () => {}, onRead = () => {}]: OpenParts): EventStream {
    let stream: Stream | undefined;
    const beginning = isLive ? null : Promise.withResolvers<void>();
    const body = new ReadableStream<Uint8Array>(
      {
        start(controller) {
          const pinged = turns[opened++ % PING_TURNS] ?? new Set();
          stream = { ...subscription, controller, beginning, live: isLive, pinged, onEnd, onRead };
          pinged.add(stream);
          const streams = streamsOf.get(stream.agentId) ?? new Set();
          streamsOf.set(stream.agentId, streams.add(stream));
          count++;
          controller.enqueue(RETRY);
          void readOn(stream);
        },
        pull: () => void (stream && readOn(stream)),
        cancel: () => stream && remove(stream),
      },
      { highWaterMark: BUFFER_BYTES, size: (chunk) => chunk?.byteLength ?? 0 },
    );
    return {
      body,
      begun: beginning?.promise ?? Promise.resolve(),
      end: () => void (stream && isOpen(stream) && close(stream)),
    };
  }

  return {
    publish(agentId, rows) {
      const streams = streamsOf.get(agentId);
      if (!streams) return;
      const firstId = rows[0]?.eventId ?? 0;
      let encoded: Uint8Array | undefined;
      for (const stream of streams) {
        // A stream that was opened between the commit and this call has already read these from the log.
        if (!stream.live || firstId <= stream.after) continue;
        if (!hasRoom(stream)) {
          stream.live = false;
        } else if (firstId > stream.after + 1) {
          // There is a gap before these: something was committed but not published, or was never kept.
          stream.live = false;
          void readOn(stream);
        } else {
          if (followsAll(stream)) encoded ??= encode(rows);
          send(stream, rows, rows.at(-1)?.eventId ?? stream.after, encoded);
        }
      }
    },
    open: (...parts) => open(false, ...parts),
    openAhead: (...parts) => open(true, ...parts),
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
          stream.controller.enqueue(encoder.encode(`retry: ${reconnectMs()}\n\n`));
          close(stream);
        }
      }
    },
    openStreams: () => count,
  };
}
