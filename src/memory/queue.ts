import { and, asc, eq, gt, sql } from "drizzle-orm";
import { prepared } from "../storage/prepared.ts";
import type { Db } from "../storage/store.ts";
import { memoryQueue, memoryVectorsDue, type Queued } from "./schema.ts";

/**
 * What memories have yet to take in. Triggers of the database fill it with every message and file that is written, changed
 * or removed, of the agents whose memory is kept. Call what changes it in a transaction.
 */
export interface MemoryQueue {
  /** The first of the account after this one, in turn, of other agents than these; of this agent, if one is named. */
  next(afterAccount: string, except?: readonly string[]): Queued | undefined;
  nextOf(agentId: string): Queued | undefined;
  isEmpty(): boolean;
  /** Whether the source has changed since it was taken in. */
  isQueued(agentId: string, kind: Queued["kind"], source: string): boolean;
  /** It was taken in as it was then. */
  done(row: Queued): void;
  add(row: Omit<Queued, "changes">): void;
  /** From now on, the agent's memory is kept up to date. Returns false if it was already. */
  begin(accountId: string, agentId: string): boolean;
  /** Whether the agent's memory is kept up to date. */
  isKept(agentId: string): boolean;
  /** The agents of an account whose memory is kept up to date. */
  kept(accountId: string): string[];
  /** From now on, the agent's memory is kept no longer. */
  giveUp(agentId: string): void;
  /** Everything of an agent, from the beginning. */
  addAll(accountId: string, agentId: string): void;
  /** The same for every memory that is kept, or this one. Returns for how many. */
  addEveryone(agentId?: string): number;
  /** Queues a conversation, if its agent's memory is kept up to date. */
  addConversation(conversationId: string): void;
  /** Queues the agent's conversations. */
  addConversations(accountId: string, agentId: string): void;
  /**
   * Queues up to `limit` of the agent's files after this name, or from the beginning. Returns the last one; null if there
   * are no more.
   */
  addFiles(accountId: string, agentId: string, after: string, limit: number): string | null;
  vectors: {
    next(afterAccount: string): { accountId: string; agentId: string } | undefined;
    add(accountId: string, agentId: string): void;
    done(accountId: string, agentId: string): void;
  };
}

/** In place of a name, where everything is meant: no file has this name. */
export const BEGINNING = "*";

export function createMemoryQueue(db: Db): MemoryQueue {
  const p = sql.placeholder;
  const { accountId, kind, agentId, source } = memoryQueue;
  const first = prepared(db, () =>
    db
      .select()
      .from(memoryQueue)
      .where(and(gt(accountId, p("after")), sql`${agentId} NOT IN (SELECT value FROM json_each(${p("except")}))`))
      .orderBy(asc(accountId), asc(kind), asc(agentId), asc(source))
      .limit(1),
  );
  const ofAgent = prepared(db, () =>
    db
      .select()
      .from(memoryQueue)
      .where(eq(agentId, p("agentId")))
      .orderBy(asc(agentId), asc(kind), asc(source))
      .limit(1),
  );
  const one = and(
    eq(accountId, p("accountId")),
    eq(kind, p("kind")),
    eq(agentId, p("agentId")),
    eq(source, p("source")),
  );
  const drop = prepared(db, () => db.delete(memoryQueue).where(and(one, eq(memoryQueue.changes, p("changes")))));
  const find = prepared(db, () =>
    db
      .select({ source })
      .from(memoryQueue)
      .where(and(eq(agentId, p("agentId")), eq(kind, p("kind")), eq(source, p("source")))),
  );
  const insert = prepared(db, () =>
    db
      .insert(memoryQueue)
      .values({ accountId: p("accountId"), kind: p("kind"), agentId: p("agentId"), source: p("source") })
      .onConflictDoUpdate({
        target: [accountId, kind, agentId, source],
        set: { changes: sql`${memoryQueue.changes} + 1` },
      }),
  );
  const due = memoryVectorsDue;
  const dueAfter = prepared(db, () =>
    db
      .select()
      .from(due)
      .where(gt(due.accountId, p("after")))
      .orderBy(asc(due.accountId), asc(due.agentId))
      .limit(1),
  );
  const addDue = prepared(db, () =>
    db
      .insert(due)
      .values({ accountId: p("accountId"), agentId: p("agentId") })
      .onConflictDoNothing(),
  );
  const dropDue = prepared(db, () =>
    db.delete(due).where(and(eq(due.accountId, p("accountId")), eq(due.agentId, p("agentId")))),
  );
  const insertMemory = db.$client.query<never, [string, string]>(
    "INSERT INTO memories (agent_id, account_id) VALUES (?, ?) ON CONFLICT DO NOTHING",
  );
  const findMemory = db.$client.query<{ one: 1 }, [string]>("SELECT 1 AS one FROM memories WHERE agent_id = ?");
  const keptOf = db.$client.query<{ agentId: string }, [string]>(
    `SELECT agent_id AS agentId FROM instances JOIN agents USING (instance_id) JOIN memories USING (agent_id)
       WHERE instances.account_id = ? AND instances.removed_at IS NULL AND agents.removed_at IS NULL`,
  );
  const insertConversation = db.$client.query<never, [string]>(
    `INSERT INTO memory_queue (account_id, kind, agent_id, source)
       SELECT account_id, 'conversation', agent_id, conversation_id FROM conversations JOIN memories USING (agent_id)
         WHERE conversation_id = ?
       ON CONFLICT DO UPDATE SET changes = changes + 1`,
  );
  const giveUp = ["memories", "memory_queue", "memory_vectors_due"].map((table) =>
    db.$client.query<never, [string]>(`DELETE FROM ${table} WHERE agent_id = ?`),
  );
  const add = (row: Omit<Queued, "changes">) => insert.run({ ...row });
  const next = (after: string, except: readonly string[]) => first.get({ after, except: JSON.stringify(except) });

  return {
    next: (afterAccount, except = []) => next(afterAccount, except) ?? next("", except),
    nextOf: (agentId) => ofAgent.get({ agentId }),
    isEmpty: () => next("", []) === undefined,
    isQueued: (agentId, kind, source) => find.get({ agentId, kind, source }) !== undefined,
    done: (row) => drop.run({ ...row }),
    add,
    begin(accountId, agentId) {
      const { changes } = insertMemory.run(agentId, accountId);
      if (changes > 0) add({ accountId, kind: "all", agentId, source: BEGINNING });
      return changes > 0;
    },
    isKept: (agentId) => findMemory.get(agentId) !== null,
    kept: (accountId) => keptOf.all(accountId).map(({ agentId }) => agentId),
    giveUp(agentId) {
      for (const statement of giveUp) statement.run(agentId);
    },
    addAll: (accountId, agentId) => add({ accountId, kind: "all", agentId, source: BEGINNING }),
    addEveryone(agentId) {
      const { changes } = db.$client.run(
        `INSERT INTO memory_queue (account_id, kind, agent_id, source)
           SELECT account_id, 'all', agent_id, '*' FROM memories WHERE ?1 IS NULL OR agent_id = ?1
           ON CONFLICT DO UPDATE SET changes = changes + 1`,
        [agentId ?? null],
      );
      return changes;
    },
    addConversation(conversationId) {
      insertConversation.run(conversationId);
    },
    addConversations(accountId, agentId) {
      db.$client
        .query(
          `INSERT INTO memory_queue (account_id, kind, agent_id, source)
             SELECT ?1, 'conversation', agent_id, conversation_id FROM conversations WHERE agent_id = ?2 AND state = 'open'
             ON CONFLICT DO UPDATE SET changes = changes + 1`,
        )
        .run(accountId, agentId);
    },
    addFiles(accountId, agentId, last, limit) {
      const after = last === BEGINNING ? "" : last;
      const names = db.$client
        .query<{ name: string }, [string, string, number]>(
          "SELECT name FROM workspace_files WHERE agent_id = ? AND name > ? ORDER BY name LIMIT ?",
        )
        .all(agentId, after, limit);
      for (const { name } of names) add({ accountId, kind: "file", agentId, source: name });
      return names.length < limit ? null : (names.at(-1)?.name ?? null);
    },
    vectors: {
      next: (afterAccount) => dueAfter.get({ after: afterAccount }) ?? dueAfter.get({ after: "" }),
      add: (accountId, agentId) => addDue.run({ accountId, agentId }),
      done: (accountId, agentId) => dropDue.run({ accountId, agentId }),
    },
  };
}
