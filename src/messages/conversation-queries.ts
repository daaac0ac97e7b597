import { and, asc, desc, eq, sql } from "drizzle-orm";
import { prepared } from "../storage/prepared.ts";
import type { Db } from "../storage/store.ts";
import { type Conversation, conversations, type OriginType } from "./schema.ts";

/** Where a page of conversations starts: after the one with this last activity (ms). */
export interface ActivityMark {
  updatedAt: number;
  conversationId: string;
}

/** Every conversation comes after this mark. */
export const NEWEST: ActivityMark = { updatedAt: Number.MAX_SAFE_INTEGER, conversationId: "" };

/** The prepared queries of conversations. */
export function conversationQueries(db: Db) {
  const p = sql.placeholder;
  const { conversationId, agentId, isDefault, state, originType, updatedAt } = conversations;
  const byId = prepared(db, () =>
    db
      .select()
      .from(conversations)
      .where(eq(conversationId, p("conversationId"))),
  );
  // Written exactly as in the partial index's condition, or SQLite would not use the index.
  const isOther = sql`${state} = 'open' AND ${isDefault} = 0`;
  const ofOrigin = and(eq(agentId, p("agentId")), isOther, eq(originType, p("origin")));
  const page = prepared(db, () =>
    db
      .select()
      .from(conversations)
      .where(and(ofOrigin, sql`(${updatedAt}, ${conversationId}) < (${p("updatedAt")}, ${p("conversationId")})`))
      .orderBy(desc(updatedAt), desc(conversationId))
      .limit(p("limit")),
  );
  const count = prepared(db, () =>
    db
      .select({ count: sql<number>`count(*)` })
      .from(conversations)
      .where(and(eq(agentId, p("agentId")), isOther)),
  );
  const copying = prepared(db, () =>
    db.select({ conversationId }).from(conversations).where(sql`${state} = 'copying'`),
  );

  const countOf = prepared(db, () => db.select({ count: sql<number>`count(*)` }).from(conversations).where(ofOrigin));
  const oldest = prepared(db, () =>
    db.select().from(conversations).where(ofOrigin).orderBy(asc(updatedAt), asc(conversationId)).limit(1),
  );
  const oldestAtRest = prepared(db, () =>
    db
      .select()
      .from(conversations)
      .where(
        and(
          ofOrigin,
          sql`NOT EXISTS (SELECT 1 FROM runs WHERE runs.agent_id = conversations.agent_id
            AND runs.conversation_id = conversations.conversation_id
            AND (runs.status = 'queued' OR runs.status = 'running' OR runs.status = 'waiting'))`,
        ),
      )
      .orderBy(asc(updatedAt), asc(conversationId))
      .limit(1),
  );
  const answering = prepared(db, () =>
    db
      .select()
      .from(conversations)
      .where(
        and(
          eq(agentId, p("agentId")),
          eq(conversations.originId, p("originId")),
          // Written exactly as in the partial index's condition.
          sql`${originType} = 'agent'`,
          sql`${state} = 'open'`,
        ),
      )
      .limit(1),
  );

  return {
    insert: (row: typeof conversations.$inferInsert): Conversation =>
      db.insert(conversations).values(row).returning().get(),
    find: (id: string): Conversation | undefined => byId.get({ conversationId: id }),
    /** Those of one origin besides the default one, latest activity first. */
    page: (agentId: string, origin: OriginType, after: ActivityMark, limit: number): Conversation[] =>
      page.all({ agentId, origin, ...after, limit }),
    /** How many are visible besides the default one. The next three look at the same ones, of one origin. */
    count: (agentId: string): number => count.get({ agentId })?.count ?? 0,
    countOf: (agentId: string, origin: OriginType): number => countOf.get({ agentId, origin })?.count ?? 0,
    /** The one of this origin whose last activity is the longest ago. */
    oldest: (agentId: string, origin: OriginType): Conversation | undefined => oldest.get({ agentId, origin }),
    /** The same of those that have no unfinished run. */
    oldestAtRest: (agentId: string, origin: OriginType): Conversation | undefined =>
      oldestAtRest.get({ agentId, origin }),
    /** The visible one in which this agent answers another agent's conversation. */
    answering: (agentId: string, originId: string): Conversation | undefined => answering.get({ agentId, originId }),
    setTitle: (id: string, text: string | null, now: number) =>
      void db
        .update(conversations)
        .set({ title: text, updatedAt: sql`max(${updatedAt}, ${now})` })
        .where(eq(conversationId, id))
        .run(),
    setState: (id: string, to: Conversation["state"]) =>
      void db.update(conversations).set({ state: to }).where(eq(conversationId, id)).run(),
    /** Hides its messages, and its runs up to the agent's last event. Their rows are deleted later. */
    clear: (id: string, now: number) =>
      void db.run(sql`UPDATE conversations SET message_count = 0, updated_at = max(updated_at, ${now}),
        compaction_failures = 0, compaction_failed_at = 0,
        cleared_event_id = (SELECT last_event_id FROM agents WHERE agent_id = conversations.agent_id),
        cleared_message_seq = max(cleared_message_seq,
          coalesce((SELECT max(message_seq) FROM messages WHERE conversation_id = ${id}), 0))
        WHERE conversation_id = ${id}`),
    /** The visible ones, the default one first, then latest activity first. */
    allOf: (id: string): Conversation[] =>
      db
        .select()
        .from(conversations)
        .where(and(eq(agentId, id), sql`${state} = 'open'`))
        .orderBy(desc(isDefault), desc(updatedAt), desc(conversationId))
        .all(),
    /** Forks that are still being copied; after a start, those that an earlier process left unfinished. */
    copying: (): string[] => copying.all().map((row) => row.conversationId),
  };
}

export type ConversationQueries = ReturnType<typeof conversationQueries>;
