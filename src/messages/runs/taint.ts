import { eq, sql } from "drizzle-orm";
import { prepared } from "../../storage/prepared.ts";
import type { Db } from "../../storage/store.ts";
import { taintedRuns } from "../schema.ts";
import type { ActiveRun } from "./active-runs.ts";

/**
 * Which runs have read what a stranger may have written, themselves or in what an earlier run left behind
 * (docs/contract/runtime.md, Taint). The marks are the host's: nothing that a model writes sets or clears one. Messages and
 * summaries have marks of their own.
 */
export interface Taint {
  /** From now on the run is tainted, and what it says will be. Call it in a transaction. */
  mark(run: ActiveRun): void;
  /** The same for a run that waits, and is in no memory. */
  markWaiting(runId: string): void;
  isMarked(runId: string): boolean;
  /** A run that is over: what it has said is marked instead. Call it in a transaction. */
  forget(runId: string): void;
}

export function createTaint(db: Db): Taint {
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

  return {
    mark({ run: { runId }, progress }) {
      progress.isTainted = true;
      insert.run({ runId });
    },
    markWaiting: (runId) => void insert.run({ runId }),
    isMarked: (runId) => find.get({ runId }) !== undefined,
    forget: (runId) => void remove.run({ runId }),
  };
}
