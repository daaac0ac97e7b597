import { desc, eq, gt, type SQL, sql } from "drizzle-orm";
import { prepared } from "../../storage/prepared.ts";
import type { Db } from "../../storage/store.ts";
import { messages, taintedRuns } from "../schema.ts";
import type { ActiveRun } from "./active-runs.ts";
import type { Windows } from "./window.ts";

/**
 * Which runs have read what a stranger may have written, themselves or in what an earlier run left behind
 * (docs/contract/runtime.md, Taint). The marks are the host's: nothing that a model writes sets or clears one.
 */
export interface Taint {
  /** From now on the run is tainted, and what it says will be. Call it in a transaction. */
  mark(run: ActiveRun): void;
  isMarked(runId: string): boolean;
  /** Call it after adding messages that are marked: from now on they are looked for. */
  expect(): void;
  /** A run that is over: what it has said is marked instead. Call it in a transaction. */
  forget(runId: string): void;
  /** Whether a tainted run has said something in the messages that were read last of this conversation. */
  ofWindow(conversationId: string): boolean;
}

export function createTaint(db: Db, windows: Pick<Windows, "startOf">): Taint {
  const p = sql.placeholder;
  const ofRun = eq(taintedRuns.runId, p("runId"));
  const insert = prepared(db, () =>
    db
      .insert(taintedRuns)
      .values({ runId: p("runId") })
      .onConflictDoNothing(),
  );
  const find = prepared(db, () => db.select().from(taintedRuns).where(ofRun));
  const remove = prepared(db, () => db.delete(taintedRuns).where(ofRun));
  const latest = prepared(db, () =>
    db
      .select({ messageSeq: messages.messageSeq })
      .from(messages)
      .where(sql`${messages.conversationId} = ${p("conversationId")} AND ${messages.tainted} = 1`)
      .orderBy(desc(messages.messageSeq))
      .limit(1),
  );
  const first = (table: typeof messages | typeof taintedRuns, which: SQL) =>
    db.select({ one: sql`1` }).from(table).where(which).limit(1).get();
  const tainted = sql`${messages.tainted} = 1 AND ${messages.conversationId} > ''`;
  /** Most hosts have nothing tainted, and their runs pay nothing for it. */
  let isAny = (first(taintedRuns, gt(taintedRuns.runId, "")) ?? first(messages, tainted)) !== undefined;

  return {
    mark({ run: { runId }, progress }) {
      isAny = true;
      progress.isTainted = true;
      insert.run({ runId });
    },
    expect() {
      isAny = true;
    },
    isMarked: (runId) => find.get({ runId }) !== undefined,
    forget: (runId) => void remove.run({ runId }),
    ofWindow(conversationId) {
      if (!isAny) return false;
      // Where it is not known what was read, all of the conversation counts.
      const start = windows.startOf(conversationId) ?? 0;
      return (latest.get({ conversationId })?.messageSeq ?? -1) >= start;
    },
  };
}
