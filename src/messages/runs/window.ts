import type { TurnOutline } from "../../runtime/prompt-room.ts";
import type { MessageQueries, RecentMessage } from "../queries.ts";
import type { Run } from "../schema.ts";

/** How far back a conversation is looked at for a prompt; of those, the texts that fit the model's context are read. */
const WINDOW_MESSAGES = 100;
/** What is kept in memory of conversations, for all together: their short texts, and so much for each message. */
const KEPT_BYTES = 16 * 1024 * 1024;
const MESSAGE_BYTES = 512;

export interface Windows {
  /** To be called when the conversation is cleared. */
  forget(conversationId: string): void;
  /** The turns up to and including the run's own message, in the order they were answered; no long text is read yet. */
  read(run: Run): TurnOutline[];
  /** The first of the messages that were read last; null where that is not remembered. */
  startOf(conversationId: string): number | null;
}

interface Kept {
  rows: RecentMessage[];
  bytes: number;
}

/**
 * The newest messages of the conversations that were used last, so that a prompt reads what is new in its conversation
 * and not all of it. A message that has been written never changes.
 */
export function createWindows(queries: MessageQueries, keptBytes = KEPT_BYTES): Windows {
  /** The one used last comes last. */
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

  /** With what has been said since; undefined where that does not follow it. */
  function extended(conversationId: string, rows: RecentMessage[]): RecentMessage[] | undefined {
    const last = rows.at(-1);
    if (!last) return undefined;
    const since = queries.since(conversationId, last.messageSeq, WINDOW_MESSAGES);
    if (since.length === WINDOW_MESSAGES) return undefined;
    return [...rows, ...since].slice(-WINDOW_MESSAGES);
  }

  return {
    forget,
    startOf: (conversationId) => kept.get(conversationId)?.rows[0]?.messageSeq ?? null,
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
      // The run's message is older than the window only when hundreds were written after it; it is answered alone.
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
