import { and, asc, desc, eq, gt, lt, max, type SQL, sql } from "drizzle-orm";
import type { OutputForm } from "../models/engine.ts";
import { tokensOf } from "../runtime/tokens.ts";
import { placeholdersOf, placeholdersOfRow } from "../storage/columns.ts";
import { prepared } from "../storage/prepared.ts";
import type { Db } from "../storage/store.ts";
import { conversations, type Message, messages, type OverStatus, type Run, runOutputs, runs } from "./schema.ts";

/** The prepared queries of messages and runs. */
export function messageQueries(db: Db) {
  const p = sql.placeholder;
  const unfinishedOfAgent = sql`${runs.agentId} = ${p("agentId")} AND ${UNFINISHED}`;
  /** Without those from before the instance's last stop: they are being cancelled, though not all in one commit. */
  const inTurnOfAgent = sql`${unfinishedOfAgent} AND ${runs.stops} = (SELECT stops FROM instances
    WHERE instance_id = (SELECT instance_id FROM agents WHERE agent_id = ${p("agentId")}))`;
  /** Numbers only grow, also where the newest message of all was removed. */
  const nextSeq = sql`(SELECT 1 + max(highest_seq, coalesce((SELECT max(message_seq) FROM messages), 0))
    FROM removed_messages)`;
  const newMessage = { ...placeholdersOfRow(messages), messageSeq: nextSeq };
  const insertMessage = prepared(db, () => db.insert(messages).values(newMessage));
  const insertRun = prepared(db, () => db.insert(runs).values(placeholdersOfRow(runs)));
  const runById = prepared(db, () =>
    db
      .select()
      .from(runs)
      .where(eq(runs.runId, p("runId"))),
  );
  const messageById = prepared(db, () =>
    db
      .select()
      .from(messages)
      .where(eq(messages.messageId, p("messageId"))),
  );
  const replyTo = prepared(db, () =>
    db
      .select()
      .from(messages)
      .where(
        and(
          eq(messages.conversationId, p("conversationId")),
          eq(messages.inReplyTo, p("messageId")),
          // A reply comes soon after its message; without this, the whole conversation would be searched.
          gt(messages.messageSeq, sql`(SELECT message_seq FROM messages WHERE message_id = ${p("messageId")})`),
        ),
      )
      .orderBy(asc(messages.messageSeq))
      .limit(1),
  );
  const inTurn = prepared(db, () => db.select().from(runs).where(inTurnOfAgent));
  const unfinishedOfConversation = sql`${runs.agentId} = (SELECT agent_id FROM conversations WHERE conversation_id =
    ${p("conversationId")}) AND ${runs.conversationId} = ${p("conversationId")} AND ${UNFINISHED}`;
  const unfinishedIn = prepared(db, () =>
    db.select().from(runs).where(unfinishedOfConversation).orderBy(asc(runs.firstEventId)),
  );
  /** A cleared run is there until its row is removed, and seen by nobody. */
  const isSeen = sql`${runs.firstEventId} > coalesce((SELECT cleared_event_id FROM conversations AS c
    WHERE c.conversation_id = ${runs.conversationId}), 0)`;
  const page = (whose: SQL) =>
    prepared(db, () =>
      db
        .select()
        .from(runs)
        .where(and(whose, eq(runs.status, p("status")), OVER, lt(runs.firstEventId, p("before")), isSeen))
        .orderBy(desc(runs.firstEventId))
        .limit(p("limit")),
    );
  const runsOfConversation = page(sql`${runs.conversationId} = ${p("conversationId")}`);
  const runsOfOthers = page(sql`${runs.agentId} = ${p("agentId")} AND ${OF_OTHERS}`);
  const unfinishedOf = prepared(db, () =>
    db.select().from(runs).where(unfinishedOfAgent).orderBy(asc(runs.firstEventId)),
  );
  const stoppedRuns = prepared(db, () =>
    db
      .select()
      .from(runs)
      .where(
        sql`${runs.runId} IN (SELECT run_id FROM runs INDEXED BY unfinished_runs
          WHERE ${UNFINISHED} AND agent_id IN (SELECT agent_id FROM agents WHERE instance_id = ${p("instanceId")})
            AND stops < (SELECT stops FROM instances WHERE instance_id = ${p("instanceId")})
          LIMIT ${p("limit")})`,
      ),
  );
  const startRun = prepared(db, () =>
    db
      .update(runs)
      .set({ status: "running", ...placeholdersOf(STARTING) })
      .where(eq(runs.runId, p("runId"))),
  );
  const setProgress = prepared(db, () =>
    db
      .update(runs)
      .set(placeholdersOf(PROGRESS))
      .where(eq(runs.runId, p("runId"))),
  );
  const endRun = prepared(db, () =>
    db
      .update(runs)
      .set(placeholdersOf(ENDING))
      .where(eq(runs.runId, p("runId"))),
  );
  /** Messages up to here were cleared: they are hidden until housekeeping deletes their rows. */
  const cleared = sql`(SELECT cleared_message_seq FROM conversations WHERE conversation_id = ${p("conversationId")})`;
  const ofConversation = and(eq(messages.conversationId, p("conversationId")), gt(messages.messageSeq, cleared));
  const { messageSeq, messageId, runId, role, text, tokens, tainted, originType } = messages;
  const bytes = sql<number>`octet_length(${text})`;
  // SQLite uses only one lower bound of an index: with two, a late page would read all rows before it.
  const afterMark = (order: Order) =>
    order === "asc"
      ? and(eq(messages.conversationId, p("conversationId")), gt(messageSeq, sql`max(${p("after")}, ${cleared})`))
      : and(ofConversation, lt(messageSeq, p("after")));
  const inOrder = (order: Order) => (order === "asc" ? asc : desc)(messageSeq);
  const pages = inBothOrders((order) =>
    prepared(db, () => db.select().from(messages).where(afterMark(order)).orderBy(inOrder(order)).limit(p("limit"))),
  );
  const sizes = inBothOrders((order) =>
    prepared(db, () =>
      db.select({ bytes }).from(messages).where(afterMark(order)).orderBy(inOrder(order)).limit(p("limit")),
    ),
  );
  // A text's length is in its row's header: a long one is not put together for it.
  const outline = {
    messageSeq,
    messageId,
    runId,
    role,
    tokens,
    tainted,
    originType,
    bytes,
    stepTokens: sql<number | null>`(SELECT tokens FROM message_steps AS s WHERE s.message_id = messages.message_id)`,
    shortText: sql<string | null>`CASE WHEN ${bytes} <= ${sql.raw(String(SHORT_TEXT_BYTES))} THEN ${text} END`,
  };
  const recent = prepared(db, () =>
    db.select(outline).from(messages).where(ofConversation).orderBy(desc(messages.messageSeq)).limit(p("limit")),
  );
  const since = prepared(db, () =>
    db
      .select(outline)
      .from(messages)
      .where(and(eq(messages.conversationId, p("conversationId")), gt(messageSeq, p("after"))))
      .orderBy(asc(messageSeq))
      .limit(p("limit")),
  );

  const first = prepared(db, () =>
    db.select({ messageSeq, messageId }).from(messages).where(afterMark("asc")).orderBy(asc(messageSeq)).limit(1),
  );
  const nthBefore = prepared(db, () =>
    db
      .select({ messageSeq })
      .from(messages)
      .where(and(ofConversation, lt(messageSeq, p("before"))))
      .orderBy(desc(messageSeq))
      .limit(1)
      .offset(p("count")),
  );
  const messageBySeq = prepared(db, () =>
    db
      .select()
      .from(messages)
      .where(eq(messageSeq, p("messageSeq"))),
  );
  const clearedEvents = prepared(db, () =>
    db
      .select({ id: conversations.clearedEventId })
      .from(conversations)
      .where(eq(conversations.conversationId, p("conversationId"))),
  );

  const outputOf = prepared(db, () =>
    db
      .select({ output: runOutputs.output })
      .from(runOutputs)
      .where(eq(runOutputs.runId, p("runId"))),
  );

  return {
    insertMessage: (row: NewMessageRow) => void insertMessage.run({ ...row, tokens: tokensOf(row.text) }),
    insertRun: (row: Run) => void insertRun.run(row),
    /** The form of its answer, while the run is unfinished. */
    outputOf: (runId: string): OutputForm | null => outputOf.get({ runId })?.output ?? null,
    setOutput: (runId: string, output: OutputForm) =>
      void db.update(runOutputs).set({ output }).where(eq(runOutputs.runId, runId)).run(),
    run: (runId: string): Run | undefined => runById.get({ runId }),
    /** The number of the newest message of all; 0 if there is none. */
    lastMessage: (): number =>
      db
        .select({ last: max(messageSeq) })
        .from(messages)
        .get()?.last ?? 0,
    message: (messageId: string): Message | undefined => messageById.get({ messageId }),
    /** The oldest visible one. */
    first: (conversationId: string): Pick<Message, "messageSeq" | "messageId"> | undefined =>
      first.get({ conversationId, after: 0 }),
    reply: (conversationId: string, messageId: string): Message | undefined =>
      replyTo.get({ conversationId, messageId }),
    /** The agent's unfinished runs in the order of their turns, without those from before its instance's last stop. */
    inTurn: (agentId: string): Run[] => inTurn.all({ agentId }).sort(byTurn),
    /** The place of the message that so many others lie between and `before`; 0 if there are not as many. */
    placeBefore: (conversationId: string, before: number, count: number): number =>
      nthBefore.get({ conversationId, before, count })?.messageSeq ?? 0,
    /** Newest first. */
    recent: (conversationId: string, limit: number): RecentMessage[] => recent.all({ conversationId, limit }),
    /** After this one, oldest first. */
    since: (conversationId: string, after: number, limit: number): RecentMessage[] =>
      since.all({ conversationId, after, limit }),
    messageAt: (messageSeq: number): Message | undefined => messageBySeq.get({ messageSeq }),
    startRun: (runId: string, start: Pick<Run, (typeof STARTING)[number]>) => void startRun.run({ runId, ...start }),
    setProgress: (runId: string, progress: Pick<Run, (typeof PROGRESS)[number]>) =>
      void setProgress.run({ runId, ...progress }),
    endRun: (runId: string, change: Pick<Run, (typeof ENDING)[number]>) => void endRun.run({ runId, ...change }),
    /** In the order of arrival. */
    unfinishedOf: (agentId: string): Run[] => unfinishedOf.all({ agentId }),
    unfinishedIn: (conversationId: string): Run[] => unfinishedIn.all({ conversationId }),
    /** A conversation's runs that are over in one way and began before this place in the log, newest first. */
    runsOf: (conversationId: string, status: OverStatus, before: number, limit: number): Run[] =>
      runsOfConversation.all({ conversationId, status, before, limit }),
    /** The same of all the agent's conversations but its default one. */
    runsOfOthers: (agentId: string, status: OverStatus, before: number, limit: number): Run[] =>
      runsOfOthers.all({ agentId, status, before, limit }),
    /** Unfinished runs from before the instance's last stop. */
    stoppedIn: (instanceId: string, limit: number): Run[] => stoppedRuns.all({ instanceId, limit }),
    /** Agents with a run in progress first, then those with queued runs. Runs that wait for a decision do not count. */
    agentsWithUnfinished: (): Pick<Run, "agentId" | "instanceId">[] =>
      db
        .select({ agentId: runs.agentId, instanceId: runs.instanceId })
        .from(runs)
        // Without statistics, SQLite would read all runs if the index were not named.
        .where(
          sql`${runs.runId} IN (SELECT run_id FROM runs INDEXED BY unfinished_runs
            WHERE ${UNFINISHED} AND status <> 'waiting')`,
        )
        .groupBy(runs.agentId)
        .orderBy(desc(max(runs.status)), asc(runs.agentId))
        .all(),
    page: (conversationId: string, order: Order, after: number | null, limit: number): Message[] =>
      pages[order].all({ conversationId, after: after ?? START[order], limit }),
    /** The same messages' lengths in UTF-8, without reading their texts. */
    sizes: (conversationId: string, order: Order, after: number | null, limit: number): number[] =>
      sizes[order].all({ conversationId, after: after ?? START[order], limit }).map(({ bytes }) => bytes),
    isCleared: (run: Pick<Run, "conversationId" | "firstEventId">): boolean =>
      run.firstEventId <= (clearedEvents.get(run)?.id ?? 0),
  };
}

export type Order = "asc" | "desc";
/** Before all messages, in either order. */
const START: Record<Order, number> = { asc: 0, desc: Number.MAX_SAFE_INTEGER };
/** A message with its text, if that is short; `bytes` is the text's length in UTF-8. */
export type RecentMessage = Pick<
  Message,
  "messageSeq" | "messageId" | "runId" | "role" | "tokens" | "tainted" | "originType"
> & {
  bytes: number;
  shortText: string | null;
  /** Of the steps before an answer; null if there were none. */
  stepTokens: number | null;
};
/**
 * Those in progress first, then in order of arrival: by their place in the log, because ids follow the wall clock,
 * which may be set back. They are few, and sorting them here takes a third of the time that SQLite's temporary table
 * takes.
 */
const byTurn = (a: Run, b: Run): number =>
  Number(a.status === "queued") - Number(b.status === "queued") || a.firstEventId - b.firstEventId;

export type NewMessageRow = Omit<Message, "messageSeq" | "tokens">;
export type MessageQueries = ReturnType<typeof messageQueries>;

const PROGRESS = [
  "model",
  "steps",
  "promptTokens",
  "completionTokens",
  "cachedTokens",
  "cost",
] as const satisfies (keyof Run)[];
const STARTING = ["startedAt", "model", "steps"] as const satisfies (keyof Run)[];
const ENDING = [
  "status",
  "finishedAt",
  "errorCode",
  "errorMessage",
  "retryAt",
  "waitingKind",
  "waitingId",
  ...PROGRESS,
] as const satisfies (keyof Run)[];

/** Select unfinished runs, and those that are over, in the words of their partial indexes. */
const UNFINISHED = sql.raw("(status = 'queued' OR status = 'running' OR status = 'waiting')");
const OVER = sql.raw("(status = 'completed' OR status = 'failed' OR status = 'cancelled')");
/** Of conversations other than the default one, in the words of the index that has them by their agent. */
const OF_OTHERS = sql.raw("conversation_id <> replace(agent_id, 'agt_', 'conv_')");

/** In UTF-8. Most messages are shorter, and reading many of them in vain is cheap. */
const SHORT_TEXT_BYTES = 2048;

const inBothOrders = <T>(make: (order: Order) => T): Record<Order, T> => ({ asc: make("asc"), desc: make("desc") });
