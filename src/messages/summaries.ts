import { and, desc, eq, sql } from "drizzle-orm";
import type { Summary } from "../runtime/protocol.ts";
import { placeholdersOf, placeholdersOfRow } from "../storage/columns.ts";
import { prepared } from "../storage/prepared.ts";
import type { Db } from "../storage/store.ts";
import { conversations, type StoredSummary, summaries } from "./schema.ts";

/** How many summaries of a conversation are kept: a fork, or a larger model, may need an earlier one. */
const MAX_KEPT = 8;

export type Summaries = ReturnType<typeof createSummaries>;

/** What stands in prompts for the oldest messages of conversations. The messages themselves stay. */
export function createSummaries(db: Db) {
  const p = sql.placeholder;
  const ofConversation = eq(summaries.conversationId, p("conversationId"));
  const all = prepared(db, () => db.select().from(summaries).where(ofConversation).orderBy(desc(summaries.toSeq)));
  const insert = prepared(db, () => db.insert(summaries).values(placeholdersOfRow(summaries)));
  const remove = prepared(db, () => db.delete(summaries).where(ofConversation));
  const removeOne = prepared(db, () =>
    db.delete(summaries).where(and(ofConversation, eq(summaries.toSeq, p("toSeq")))),
  );
  const setFailures = prepared(db, () =>
    db
      .update(conversations)
      .set(placeholdersOf(["compactionFailures", "compactionFailedAt"]))
      .where(eq(conversations.conversationId, p("conversationId"))),
  );
  const nth = prepared(db, () =>
    db
      .select({ seq: sql<number>`message_seq` })
      .from(sql`messages`)
      .where(sql`conversation_id = ${p("conversationId")}`)
      .orderBy(sql`message_seq`)
      .limit(1)
      .offset(p("before")),
  );
  const of = (conversationId: string): StoredSummary[] => all.all({ conversationId });

  function add(row: StoredSummary): void {
    removeOne.run(row);
    insert.run(row);
    for (const { conversationId, toSeq } of of(row.conversationId).slice(MAX_KEPT)) {
      removeOne.run({ conversationId, toSeq });
    }
  }

  return {
    /** Those that are kept, the latest first: each stands for what the one after it does, too. */
    of,
    add,
    /** Nothing stands for the conversation's messages any more: they are no longer to be seen. */
    forget: (conversationId: string) => void remove.run({ conversationId }),
    /** Notes that summarising has failed so often in a row, and the newest message of the conversation then. */
    setFailures: (conversationId: string, compactionFailures: number, compactionFailedAt: number) =>
      void setFailures.run({ conversationId, compactionFailures, compactionFailedAt }),
    /**
     * Gives a copy of a conversation the latest summary that stands only for what was copied of it: its messages up to
     * `lastSeq`. Call it in a transaction.
     */
    copy(conversationId: string, lastSeq: number, copyId: string): void {
      const summary = of(conversationId).find(({ toSeq }) => toSeq <= lastSeq);
      if (summary === undefined) return;
      const seqOf = (place: number) => nth.get({ conversationId: copyId, before: place - 1 })?.seq;
      const [fromSeq, toSeq] = [seqOf(1), seqOf(summary.messages)];
      if (fromSeq !== undefined && toSeq !== undefined) add({ ...summary, conversationId: copyId, fromSeq, toSeq });
    },
  };
}

export const asSummary = ({ text, items, messages, tainted }: StoredSummary): Summary => ({
  text,
  items,
  messages,
  isTainted: tainted,
});
