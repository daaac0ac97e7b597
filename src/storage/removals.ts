import type { Log } from "../lib/log.ts";
import { createBackgroundWork, pauseAfter } from "./background-work.ts";
import type { Store } from "./store.ts";

/**
 * What was deleted; `history` is what a cleared conversation held, `trash` what an earlier process left of an instance's
 * folders.
 */
export type RemovalKind = "instance" | "agent" | "conversation" | "history" | "trash";

/**
 * Removes one part of it, a slice at each step. Rows: each step is a transaction; a later process starts again from the
 * beginning, so the iterator must find whatever is left. Files: a step waits for the disk.
 */
export type ClearRows = (id: string) => Iterator<unknown>;
export type ClearFiles = (id: string) => AsyncIterator<unknown>;

export type ClearingStep =
  | { rows: ClearRows }
  | { files: ClearFiles }
  | { each: RemovalKind; first(id: string): string | null };

/** The parts of each kind in the order they are removed: children first, since a cascade would have no bound. */
export type ClearingPlan = Readonly<Record<RemovalKind, readonly ClearingStep[]>>;

export interface Removals {
  /** Queues it for removal, which survives a crash. Call it in the transaction that hides it from everybody. */
  add(kind: RemovalKind, id: string): void;
  /** Starts, with what an earlier process left. Nothing is removed before. */
  run(plan: ClearingPlan): void;
  /** Resolves when nothing is left to remove. */
  settled(): Promise<void>;
  /** Stops after the slice in progress; the next process goes on. */
  stop(): Promise<void>;
}

export interface RemovalSettings {
  /** Waits between two slices, given how long the first took, so that requests are served meanwhile. */
  pause?: (tookMs: number) => Promise<void>;
  /** How long to wait after a slice that failed, for example on a full disk. */
  retryMs?: number;
}

interface Removal {
  removal_id: number;
  kind: RemovalKind;
  id: string;
}

const RETRY_MS = 5_000;

/**
 * Removes deleted things after the request that deleted them, in slices, one thing at a time. The request only marks,
 * so it costs the same however much a tenant has stored, and blocks nobody.
 */
export function createRemovals(store: Store, log: Log, settings: RemovalSettings = {}): Removals {
  const { pause = pauseAfter, retryMs = RETRY_MS } = settings;
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

  /** Goes on after a failure, so that one thing holds up no other; then rethrows the first failure. */
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
    hasWork: () => next() !== null,
    drain: async () => (plan === null ? undefined : clearAll(plan)),
    onFailure: (err) => log.error({ err }, "removing deleted data failed; it will be retried"),
    retryMs,
  });

  return {
    add(kind, id) {
      store.transaction(() => sqlite.run("INSERT INTO removals (kind, id) VALUES (?, ?)", [kind, id]));
      // The request is answered first.
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
  /** The column that names the rows' owner, and the one that orders them. */
  by: string;
  key: string;
  /** A key that sorts before all others: `""` or -1. */
  before: string | number;
  /** Rows in one slice: few if they may be large. */
  batch: number;
  /** An SQL condition that selects the rows to remove; absent for all. */
  only?: string;
}

/** Removes rows in slices, in key order. Runs `last` in the transaction that removes the last ones. */
export function clearRows(
  { sqlite }: Pick<Store, "sqlite">,
  rows: RowsOf,
  last = (_id: string): void => {},
): ClearRows {
  const { table, by, key, before, batch, only = "TRUE" } = rows;
  const left = `FROM ${table} WHERE ${by} = ?1 AND ${key} > ?2 AND ${only}`;
  return function* (id) {
    // Rows that stay are scanned once, not again for each slice.
    let after = before;
    for (;;) {
      const keys = sqlite
        .query<{ key: string | number }, [string, string | number]>(
          `SELECT ${key} AS key ${left} ORDER BY ${key} LIMIT ${batch + 1}`,
        )
        .all(id, after);
      const end = keys.slice(0, batch).at(-1)?.key;
      if (end !== undefined) {
        sqlite.query(`DELETE ${left} AND ${key} <= ?3`).run(id, after, end);
        after = end;
      }
      if (keys.length <= batch) {
        last(id);
        return;
      }
      yield;
    }
  };
}
