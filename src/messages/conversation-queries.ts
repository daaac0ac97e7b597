import { and, desc, eq, sql } from "drizzle-orm";
import { prepared } from "../storage/prepared.ts";
import type { Db } from "../storage/store.ts";
import { type Conversation, conversations, type OriginType } from "./schema.ts";

/** Where a page of conversations goes on: behind the one of this last activity (ms). */
export interface ActivityMark {
  updatedAt: number;
  conversationId: string;
}

/** Behind which all conversations are. */
export const NEWEST: ActivityMark = { updatedAt: Number.MAX_SAFE_INTEGER, conversationId: "" };

/** The prepared queries of conversations. */
export function conversationQueries(db: Db) {
  const p = sql.placeholder;
  const { conversationId, agentId, state, originType, updatedAt } = conversations;
  const byId = prepared(db, () =>
    db
      .select()
      .from(conversations)
      .where(eq(conversationId, p("conversationId"))),
  );
  const page = prepared(db, () =>
    db
      .select()
      .from(conversations)
      .where(
        and(
          eq(agentId, p("agentId")),
          // As it stands in the index's own condition.
          sql`${state} = 'open'`,
          eq(originType, p("origin")),
          sql`(${updatedAt}, ${conversationId}) < (${p("updatedAt")}, ${p("conversationId")})`,
        ),
      )
      .orderBy(desc(updatedAt), desc(conversationId))
      .limit(p("limit")),
  );
  const count = prepared(db, () =>
    db
      .select({ count: sql<number>`count(*)` })
      .from(conversations)
      .where(and(eq(agentId, p("agentId")), sql`${state} = 'open'`)),
  );
  const copying = prepared(db, () =>
    db.select({ conversationId }).from(conversations).where(sql`${state} = 'copying'`),
  );

  return {
    insert: (row: typeof conversations.$inferInsert): Conversation =>
      db.insert(conversations).values(row).returning().get(),
    find: (id: string): Conversation | undefined => byId.get({ conversationId: id }),
    /** Of one origin, the latest activity first. */
    page: (agentId: string, origin: OriginType, behind: ActivityMark, limit: number): Conversation[] =>
      page.all({ agentId, origin, ...behind, limit }),
    /** Those that are to be seen, the default one among them. */
    count: (agentId: string): number => count.get({ agentId })?.count ?? 0,
    setTitle: (id: string, text: string | null, now: number) =>
      void db
        .update(conversations)
        .set({ title: text, updatedAt: sql`max(${updatedAt}, ${now})` })
        .where(eq(conversationId, id))
        .run(),
    setState: (id: string, to: Conversation["state"]) =>
      void db.update(conversations).set({ state: to }).where(eq(conversationId, id)).run(),
    /** Hides what it holds: messages, and the runs up to the agent's last event. Their rows are cleared away later. */
    clear: (id: string, now: number) =>
      void db.run(sql`UPDATE conversations SET message_count = 0, updated_at = max(updated_at, ${now}),
        cleared_event_id = (SELECT last_event_id FROM agents WHERE agent_id = conversations.agent_id),
        cleared_message_seq = coalesce((SELECT max(message_seq) FROM messages WHERE conversation_id = ${id}), 0)
        WHERE conversation_id = ${id}`),
    /** Forks that an earlier process left unfinished. */
    copying: (): string[] => copying.all().map((row) => row.conversationId),
  };
}

export type ConversationQueries = ReturnType<typeof conversationQueries>;
