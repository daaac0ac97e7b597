import { type Life, oldRows } from "../storage/retention.ts";
import type { Store } from "../storage/store.ts";

/** How messages and runs come to the end of their life (docs/contract/operations.md, What is kept). */
export interface Aging {
  messages: Life["slice"];
  runs: Life["slice"];
}

/**
 * `forget` drops what is remembered of a conversation, once its messages are gone; `shortened` is told in the transaction in
 * which they go.
 */
export const createAging = (
  { sqlite, afterCommit }: Pick<Store, "sqlite" | "afterCommit">,
  forget: (conversationId: string) => void,
  shortened: (conversationId: string) => void,
): Aging => ({
  // In the order of their arrival here: copies of a fork, and what was imported, live as long as what came beside them.
  messages: oldRows(sqlite, {
    table: "messages",
    key: "message_seq",
    start: -1,
    age: "created_at",
    // A question waits for its answer, so that both go at once.
    only: `NOT EXISTS (SELECT 1 FROM runs
      WHERE runs.run_id = messages.run_id AND (finished_at IS NULL OR finished_at >= ?1))`,
    owner: {
      column: "conversation_id",
      told(conversations) {
        conversations.forEach(shortened);
        afterCommit(() => conversations.forEach(forget));
      },
    },
  }),
  runs: oldRows(sqlite, {
    table: "runs",
    key: "run_id",
    start: "",
    age: "coalesce(finished_at, created_at)",
    only: "status = 'completed' OR status = 'failed' OR status = 'cancelled'",
  }),
});
