import { and, count, eq, sql } from "drizzle-orm";
import { prepared } from "../../storage/prepared.ts";
import type { Db } from "../../storage/store.ts";
import { type Run, runs, type SavedStep, savedJournals } from "../schema.ts";

export interface SavedJournal {
  upTo: number;
  steps: SavedStep[];
}

/** The prepared queries of runs that wait, or have waited. */
export function parkingQueries(db: Db) {
  const p = sql.placeholder;
  const readSaved = prepared(db, () =>
    db
      .select()
      .from(savedJournals)
      .where(eq(savedJournals.runId, p("runId"))),
  );
  const countWaiting = prepared(db, () =>
    db
      .select({ count: count() })
      .from(runs)
      .where(and(eq(runs.agentId, p("agentId")), eq(runs.status, "waiting"))),
  );
  return {
    journal(runId: string): SavedJournal | null {
      const { upTo = null, steps = null } = readSaved.get({ runId }) ?? {};
      return upTo === null || steps === null ? null : { upTo, steps };
    },
    waitingOf: (agentId: string): number => countWaiting.get({ agentId })?.count ?? 0,
    save(runId: string, state: Pick<Run, "status" | "waitingKind" | "waitingId">, journal: SavedJournal): void {
      db.update(runs).set(state).where(eq(runs.runId, runId)).run();
      db.update(savedJournals).set(journal).where(eq(savedJournals.runId, runId)).run();
    },
    /** Deletes the journal of a run that ends. */
    forget: (runId: string): void =>
      void db.update(savedJournals).set({ upTo: null, steps: null }).where(eq(savedJournals.runId, runId)).run(),
  };
}

export type ParkingQueries = ReturnType<typeof parkingQueries>;
