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
}

interface Kept {
  rows: RecentMessage[];
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

  function keep(conversationId: string, rows: RecentMessage[]): void {
    let bytes = 0;
    for (const { shortText } of rows) bytes += MESSAGE_BYTES + (shortText?.length ?? 0);
    total += bytes;
    kept.set(conversationId, { rows, bytes });
    for (const oldest of kept.keys()) {
      if (total <= keptBytes) break;
      forget(oldest);
    }
  }

  /** Oldest first. */
  function newest(conversationId: string): RecentMessage[] {
    const known = kept.get(conversationId);
    forget(conversationId);
    const rows =
      (known && extended(conversationId, known.rows)) ?? queries.recent(conversationId, WINDOW_MESSAGES).reverse();
    keep(conversationId, rows);
    return rows;
  }

  /** With the messages since; undefined if there are too many to be sure that none is missing. */
  function extended(conversationId: string, rows: RecentMessage[]): RecentMessage[] | undefined {
    const last = rows.at(-1);
    if (!last) return undefined;
    const since = queries.since(conversationId, last.messageSeq, WINDOW_MESSAGES);
    if (since.length === WINDOW_MESSAGES) return undefined;
    return [...rows, ...since].slice(-WINDOW_MESSAGES);
  }

  return {
    forget,
    read(run) {
      const rows = newest(run.conversationId);
      const replies = new Map(rows.filter(({ role }) => role === "agent").map((row) => [row.runId, row]));
      const turns: TurnOutline[] = [];
      for (const row of rows) {
        if (row.role === "agent") continue;
        turns.push(turnOf("user", row, queries));
        if (row.messageId === run.messageId) return turns;
        const reply = replies.get(row.runId);
        if (reply && reply.bytes > 0) turns.push(turnOf("assistant", reply, queries));
      }
      // The run's message is older than the window only if many more have been written since; it is answered alone.
      const own = queries.message(run.messageId);
      return own ? [{ role: "user", bytes: Buffer.byteLength(own.text), read: () => own.text }] : [];
    },
  };
}

const turnOf = (
  role: TurnOutline["role"],
  { messageSeq, bytes, shortText }: RecentMessage,
  queries: MessageQueries,
): TurnOutline => ({ role, bytes, read: () => shortText ?? queries.text(messageSeq) });
