import type { TurnOutline } from "../../runtime/prompt-room.ts";
import type { MessageQueries, RecentMessage } from "../queries.ts";
import type { Run } from "../schema.ts";

/** How far back a conversation is looked at for a prompt; of those, the texts that fit the model's context are read. */
const WINDOW_MESSAGES = 100;

/** The turns up to and including the run's own message, in the order they were answered; no long text is read yet. */
export function readWindow(queries: MessageQueries, run: Run): TurnOutline[] {
  const rows = queries.recent(run.conversationId, WINDOW_MESSAGES).reverse();
  const replies = new Map(rows.filter(({ role }) => role === "agent").map((row) => [row.runId, row]));
  const turns: TurnOutline[] = [];
  for (const row of rows) {
    if (row.role === "agent") continue;
    turns.push(turnOf("user", row, queries));
    if (row.messageId === run.messageId) return turns;
    const reply = replies.get(row.runId);
    if (reply && reply.bytes > 0) turns.push(turnOf("assistant", reply, queries));
  }
  // The run's message is older than the window only when hundreds were written behind it; it is answered alone.
  const own = queries.message(run.messageId);
  return own ? [{ role: "user", bytes: Buffer.byteLength(own.text), read: () => own.text }] : [];
}

const turnOf = (
  role: TurnOutline["role"],
  { messageSeq, bytes, shortText }: RecentMessage,
  queries: MessageQueries,
): TurnOutline => ({ role, bytes, read: () => shortText ?? queries.text(messageSeq) });
