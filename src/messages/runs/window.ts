import type { TurnOutline } from "../../runtime/prompt-room.ts";
import type { MessageQueries, RecentMessage } from "../queries.ts";
import type { Run } from "../schema.ts";

/** How many of the newest messages a prompt considers; of those, the texts that fit the model's context are read. */
const WINDOW_MESSAGES = 100;
/** Memory for all conversations together: their short texts, and `MESSAGE_BYTES` for each message. */
const KEPT_BYTES = 16 * 1024 * 1024;
const MESSAGE_BYTES = 512;

export interface Windows {
  /** Call it when the conversation is cleared. */
  forget(conversationId: string): void;
  /**
   * The turns up to and including the run's own message, in the order they were answered. Long texts are read lazily.
   */
  read(run: Run): TurnOutline[];
  /** The first of the messages that were read last; null where that is not remembered. */
  startOf(conversationId: string): number | null;
}

/** A message as prompts show it. */
interface Row extends RecentMessage {
  turn: TurnOutline;
  /** The agent's answer to it, if it said anything. */
  reply?: TurnOutline;
  /** Whether it was announced here by a run elsewhere. */
  isAnnounced?: true;
}

/** How a prompt shows what was announced. */
const ANNOUNCED = "[Said by myself in the background, not to the person:]\n";

interface Kept {
  /** Oldest first. */
  rows: Row[];
  bytes: number;
}

/**
 * Caches the newest messages of recently used conversations, so that a prompt only reads what is new in its
 * conversation. It never goes stale: a message that has been written never changes.
 */
export function createWindows(queries: MessageQueries, keptBytes = KEPT_BYTES): Windows {
  /** Least recently used first. */
  const kept = new Map<string, Kept>();
  let total = 0;

  function forget(conversationId: string): void {
    total -= kept.get(conversationId)?.bytes ?? 0;
    kept.delete(conversationId);
  }

  function keep(conversationId: string, window: Kept): void {
    total += window.bytes;
    kept.set(conversationId, window);
    for (const oldest of kept.keys()) {
      if (total <= keptBytes) break;
      forget(oldest);
    }
  }

  function add(window: Kept, messages: readonly RecentMessage[]): Kept {
    const { rows } = window;
    for (const message of messages) {
      const row: Row = { ...message, turn: turnOf(message, queries) };
      if (row.role === "agent" && row.bytes > 0) {
        const asked = rows.findLast(({ role, runId }) => role === "user" && runId === row.runId);
        if (asked) asked.reply = row.turn;
        else if (queries.message(row.messageId)?.originType != null) announce(row);
      }
      rows.push(row);
      window.bytes += bytesOf(row);
    }
    for (const dropped of rows.splice(0, rows.length - WINDOW_MESSAGES)) window.bytes -= bytesOf(dropped);
    return window;
  }

  /** With the messages since it was kept; read anew if there are too many to be sure that none is missing. */
  function latest(conversationId: string): Row[] {
    const known = kept.get(conversationId);
    forget(conversationId);
    const last = known?.rows.at(-1);
    const since = known && last ? queries.since(conversationId, last.messageSeq, WINDOW_MESSAGES) : [];
    const follows = known && last && since.length < WINDOW_MESSAGES;
    const window = follows
      ? add(known, since)
      : add({ rows: [], bytes: 0 }, queries.recent(conversationId, WINDOW_MESSAGES).reverse());
    keep(conversationId, window);
    return window.rows;
  }

  return {
    forget,
    startOf: (conversationId) => kept.get(conversationId)?.rows[0]?.messageSeq ?? null,
    read(run) {
      const turns: TurnOutline[] = [];
      for (const { role, messageId, turn, reply, isAnnounced } of latest(run.conversationId)) {
        if (isAnnounced) turns.push(turn);
        if (role === "agent") continue;
        turns.push(turn);
        if (messageId === run.messageId) return turns;
        if (reply) turns.push(reply);
      }
      // The run's message is older than the window only if many more have been written since; it is answered alone.
      const own = queries.message(run.messageId);
      return own ? [{ role: "user", bytes: Buffer.byteLength(own.text), read: () => own.text }] : [];
    },
  };
}

function announce(row: Row): void {
  const { bytes, read, role } = row.turn;
  row.isAnnounced = true;
  row.turn = { role, bytes: bytes + ANNOUNCED.length, read: () => ANNOUNCED + read() };
}

const bytesOf = ({ shortText }: RecentMessage): number => MESSAGE_BYTES + (shortText?.length ?? 0);

const turnOf = ({ role, messageSeq, bytes, shortText }: RecentMessage, queries: MessageQueries): TurnOutline => ({
  role: role === "agent" ? "assistant" : "user",
  bytes,
  read: () => shortText ?? queries.text(messageSeq),
});
