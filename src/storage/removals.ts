import type { Log } from "../lib/log.ts";
import { createBackgroundWork, rest } from "./background-work.ts";
import type { Store } from "./store.ts";

/**
 * What was deleted; `history` is what a conversation held that was cleared, `trash` what an earlier process left of an
 * instance's folders.
 */
export type RemovalKind = "instance" | "agent" | "conversation" | "history" | "trash";

/**
 * Clears one part of it away, a slice at each step. Rows: a step is a transaction of its own, and a later process begins
 * anew; so whatever is left must be found again. Files: a step waits for the disk.
 */
export type ClearRows = (id: string) => Iterator<unknown>;
export type ClearFiles = (id: string) => AsyncIterator<unknown>;

export type ClearingStep =
  | { rows: ClearRows }
  | { files: ClearFiles }
  | { each: RemovalKind; first(id: string): string | null };

/** The parts of each kind, in the order they are cleared: children first, since nothing may be left to a cascade. */
export type ClearingPlan = Readonly<Record<RemovalKind, readonly ClearingStep[]>>;

export interface Removals {
  /** Has it cleared away, now and after a crash. Call it in the transaction from which on nobody sees it any more. */
  add(kind: RemovalKind, id: string): void;
  /** Begins with what an earlier process left. What is added before is cleared from here on. */
  run(plan: ClearingPlan): void;
  /** Once nothing is left to be cleared. */
  settled(): Promise<void>;
  /** Ends after the slice in progress; the next start goes on. */
  stop(): Promise<void>;
}

export interface RemovalSettings {
  /** Between two slices, of which the one before took so long: the time of everybody else. */
  pause?: (tookMs: number) => Promise<void>;
  /** After a slice that failed, as on a full disk. */
  retryMs?: number;
}

interface Removal {
  removal_id: number;
  kind: RemovalKind;
  id: string;
}

const RETRY_MS = 5_000;

/**
 * Clears away what was deleted: off the request that did it, in slices, one thing at a time. A request only marks; so it
 * costs the same whatever a tenant has stored, and nobody waits behind it.
 */
export function createRemovals(store: Store, log: Log, settings: RemovalSettings = {}): Removals {
  const { pause = rest, retryMs = RETRY_MS } = settings;
  const { sqlite } = store;
  let plan: ClearingPlan | null = null;

  const next = (after = 0) =>
    sqlite
      .query<Removal, [number]>(
        "SELECT removal_id, kind, id FROM removals WHERE removal_id > ? ORDER BY removal_id LIMIT 1",
      )
      .get(after);

  async function inSlices(next: () => Promise<IteratorResult<unknown>>): Promise<void> {
    while (!work.isStopped()) {
      const startedMs = performance.now();
      if ((await next()).done) return;
      await pause(performance.now() - startedMs);
    }
  }

  async function clear(steps: ClearingPlan, kind: RemovalKind, id: string): Promise<void> {
    for (const step of steps[kind]) {
      if ("each" in step) {
        for (let child = step.first(id); child !== null && !work.isStopped(); child = step.first(id)) {
          await clear(steps, step.each, child);
        }
      } else if ("rows" in step) {
        const slices = step.rows(id);
        await inSlices(() => store.commitSoon(() => slices.next(), "process"));
      } else {
        const slices = step.files(id);
        await inSlices(() => slices.next());
      }
      if (work.isStopped()) return;
    }
  }

  async function clearOne(steps: ClearingPlan, { removal_id, kind, id }: Removal): Promise<void> {
    await clear(steps, kind, id);
    if (work.isStopped()) return;
    await store.commitSoon(() => sqlite.run("DELETE FROM removals WHERE removal_id = ?", [removal_id]), "process");
  }

  /** What cannot be cleared away holds up nothing else. Throws what the first that failed has thrown. */
  async function clearAll(steps: ClearingPlan): Promise<void> {
    const failures: unknown[] = [];
    for (let removal = next(); removal !== null && !work.isStopped(); removal = next(removal.removal_id)) {
      await clearOne(steps, removal).catch(
        (failure: unknown) => void (failures.length === 0 && failures.push(failure)),
      );
      await pause(0);
    }
    if (failures.length > 0) throw failures[0];
  }

  const work = createBackgroundWork({
    isLeft: () => next() !== null,
    workOff: async () => (plan === null ? undefined : clearAll(plan)),
    onFailure: (err) => log.error({ err }, "what was deleted could not be cleared away; it is tried again"),
    retryMs,
  });

  return {
    add(kind, id) {
      store.transaction(() => sqlite.run("INSERT INTO removals (kind, id) VALUES (?, ?)", [kind, id]));
      // Its answer goes out first.
      store.afterCommit(work.wakeSoon);
    },
    run(steps) {
      plan = steps;
      work.run();
    },
    settled: work.settled,
    stop: work.stop,
  };
}

export interface RowsOf {
  table: string;
  /** The column that says whose the rows are, and the one that tells them apart. */
  by: string;
  key: string;
  /** A key that sorts before all others: `""`, or -1. */
  before: string | number;
  /** Rows of one slice: the fewer, the larger they may be. */
  atOnce: number;
  /** Which of them go, all where it is absent. An SQL condition. */
  only?: string;
}

/** Slices that remove rows, in the order of their keys. `last` is run in the transaction that removes the last ones. */
export function clearRows(
  { sqlite }: Pick<Store, "sqlite">,
  rows: RowsOf,
  last = (_id: string): void => {},
): ClearRows {
  const { table, by, key, before, atOnce, only = "TRUE" } = rows;
  const left = `FROM ${table} WHERE ${by} = ?1 AND ${key} > ?2 AND ${only}`;
  return function* (id) {
    // What was kept is read over once, not at each slice.
    let after = before;
    for (;;) {
      const keys = sqlite
        .query<{ key: string | number }, [string, string | number]>(
          `SELECT ${key} AS key ${left} ORDER BY ${key} LIMIT ${atOnce + 1}`,
        )
        .all(id, after);
      const end = keys.slice(0, atOnce).at(-1)?.key;
      if (end !== undefined) {
        sqlite.query(`DELETE ${left} AND ${key} <= ?3`).run(id, after, end);
        after = end;
      }
      if (keys.length <= atOnce) {
        last(id);
        return;
      }
      yield;
    }
  };
}
