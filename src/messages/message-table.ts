import { and, asc, desc, eq, gt, inArray, lt, sql } from "drizzle-orm";
import type { Db } from "../storage/store.ts";
import { type Message, messages, type Run, runs } from "./table.ts";

/** The prepared queries of messages and runs. */
export function messageQueries(db: Db) {
  const p = sql.placeholder;
  const unfinished = inArray(runs.status, ["queued", "running"]);
  const columns = { ...placeholders(messages) };
  const insertMessage = db
    .insert(messages)
    .values(columns as never)
    .returning()
    .prepare();
  const insertRun = db
    .insert(runs)
    .values(placeholders(runs) as never)
    .returning()
    .prepare();
  const runById = db
    .select()
    .from(runs)
    .where(eq(runs.runId, p("runId")))
    .prepare();
  const messageById = db
    .select()
    .from(messages)
    .where(eq(messages.messageId, p("messageId")))
    .prepare();
  const replyTo = db
    .select()
    .from(messages)
    .where(and(eq(messages.agentId, p("agentId")), eq(messages.inReplyTo, p("messageId"))))
    .prepare();
  const nextQueued = db
    .select()
    .from(runs)
    .where(and(eq(runs.agentId, p("agentId")), eq(runs.status, "queued")))
    .orderBy(asc(runs.runId))
    .limit(1)
    .prepare();
  const queued = db
    .select({ count: sql<number>`count(*)` })
    .from(runs)
    .where(and(eq(runs.agentId, p("agentId")), eq(runs.status, "queued")))
    .prepare();
  const recent = db
    .select()
    .from(messages)
    .where(eq(messages.agentId, p("agentId")))
    .orderBy(desc(messages.messageSeq))
    .limit(p("limit"))
    .prepare();

  return {
    insertMessage: (row: Omit<Message, "messageSeq">): Message =>
      insertMessage.get({ ...row, messageSeq: null } as never) as Message,
    insertRun: (row: Run): Run => insertRun.get(row as never) as Run,
    run: (runId: string): Run | undefined => runById.get({ runId }),
    message: (messageId: string): Message | undefined => messageById.get({ messageId }),
    reply: (agentId: string, messageId: string): Message | undefined => replyTo.get({ agentId, messageId }),
    nextQueued: (agentId: string): Run | undefined => nextQueued.get({ agentId }),
    countQueued: (agentId: string): number => queued.get({ agentId })?.count ?? 0,
    /** Newest first. */
    recent: (agentId: string, limit: number): Message[] => recent.all({ agentId, limit }),
    updateRun: (runId: string, change: Partial<Run>) =>
      void db.update(runs).set(change).where(eq(runs.runId, runId)).run(),
    unfinishedOf: (agentId: string): Run[] =>
      db
        .select()
        .from(runs)
        .where(and(eq(runs.agentId, agentId), unfinished))
        .orderBy(asc(runs.runId))
        .all(),
    unfinishedIn: (instanceId: string): Run[] =>
      db
        .select()
        .from(runs)
        .where(and(eq(runs.instanceId, instanceId), unfinished))
        .orderBy(asc(runs.runId))
        .all(),
    allUnfinished: (): Run[] => db.select().from(runs).where(unfinished).orderBy(asc(runs.runId)).all(),
    page(agentId: string, order: "asc" | "desc", after: number | null, limit: number): Message[] {
      const beyond = order === "asc" ? gt : lt;
      return db
        .select()
        .from(messages)
        .where(and(eq(messages.agentId, agentId), after === null ? undefined : beyond(messages.messageSeq, after)))
        .orderBy((order === "asc" ? asc : desc)(messages.messageSeq))
        .limit(limit)
        .all();
    },
    clear(agentId: string): void {
      db.delete(messages).where(eq(messages.agentId, agentId)).run();
      db.delete(runs).where(eq(runs.agentId, agentId)).run();
    },
  };
}

export type MessageQueries = ReturnType<typeof messageQueries>;

/** A placeholder for each column, so that an insert is prepared once. */
function placeholders(table: typeof messages | typeof runs): Record<string, unknown> {
  return Object.fromEntries(
    Object.keys(table)
      .filter((key) => key !== "enableRLS")
      .map((key) => [key, sql.placeholder(key)]),
  );
}
