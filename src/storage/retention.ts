import type { Database } from "bun:sqlite";
import type { Clock } from "../lib/clock.ts";
import { pauseAfter } from "./background-work.ts";
import type { Store } from "./store.ts";

/** Where in the order of its rows a pass continues; null at the beginning. */
export type Place = string | number | null;

/** What a slice has removed, and where the next one continues; null if nothing older is left. */
export interface Slice {
  removed: number;
  next: Place;
}

/** One kind of rows that does not live for ever. */
export interface Life {
  kind: string;
  /** How long, in milliseconds; null for ever, 0 where the room's own rule says when. */
  keptMs: number | null;
  /**
   * Removes rows whose life began before `before` (ms), among about `most` that come next. Called in a transaction; a
   * later process starts at the beginning again.
   */
  slice(before: number, after: Place, most: number): Slice;
  /** Selects when the life of the oldest row began (ms), by an index; absent where nothing shows that. */
  oldest?: string;
}

export interface Retention {
  /** Removes all rows of this kind that have reached the end of their life, in slices with requests in between. */
  prune(life: Life): Promise<void>;
  /** Rows removed by this process, by kind. */
  removed(): ReadonlyMap<string, number>;
  /** No further slice starts. */
  stop(): void;
}

/** What a slice may take of the thread; the number of its rows follows from that. */
const SLICE_MS = 4;
const FIRST_ROWS = 64;
const MIN_ROWS = 8;
const MAX_ROWS = 1_024;

export function createRetention(
  store: Pick<Store, "commitSoon">,
  clock: Pick<Clock, "now">,
  pause: (tookMs: number) => Promise<void> = pauseAfter,
): Retention {
  const counts = new Map<string, number>();
  let stopped = false;

  return {
    async prune({ kind, keptMs, slice }) {
      if (keptMs === null) return;
      const before = clock.now() - keptMs;
      let most = FIRST_ROWS;
      for (let place: Place = null, isEnd = false; !isEnd && !stopped; ) {
        const from: Place = place;
        let tookMs = 0;
        const { removed, next } = await store.commitSoon(() => {
          const began = performance.now();
          const done = slice(before, from, most);
          tookMs = performance.now() - began;
          return done;
        }, "process");
        counts.set(kind, (counts.get(kind) ?? 0) + removed);
        place = next;
        isEnd = next === null;
        if (tookMs > SLICE_MS) most = Math.max(MIN_ROWS, most >> 1);
        else if (tookMs < SLICE_MS / 2) most = Math.min(MAX_ROWS, most << 1);
        if (!isEnd) await pause(tookMs);
      }
    },
    removed: () => counts,
    stop() {
      stopped = true;
    },
  };
}

/** A slice of a room's own prune function, which removes at most so many rows and says whether there may be more. */
export function untilNone(sqlite: Database, prune: (most: number) => boolean): Life["slice"] {
  const changes = sqlite.query<{ rows: number }, []>("SELECT total_changes() AS rows");
  const rows = () => changes.get()?.rows ?? 0;
  return (_before, _after, most) => {
    const before = rows();
    const isMore = prune(most);
    return { removed: rows() - before, next: isMore ? 0 : null };
  };
}

export interface OldRows {
  table: string;
  /** The column, with an index, that has them in the order in which they came. */
  key: string;
  /** A key that sorts before all others: `""` or -1. */
  start: string | number;
  /** When a row's life begins: an SQL expression, in milliseconds. */
  age: string;
  /** An SQL condition that an old row must fulfil to go; `?1` is the time before which rows are old. */
  only?: string;
  /** The column that names the row's owner, and what to do, in the same transaction, with the owners of removed rows. */
  owner?: { column: string; told(owners: ReadonlySet<string>): void };
}

/** How many young rows in a row end a pass: some may have come while the wall clock was ahead. */
const YOUNG_ROWS = 64;

/** Removes old rows in the order in which they came, so that nothing but them is read, and no index of ages is needed. */
export function oldRows(sqlite: Database, { table, key, start, age, only = "TRUE", owner }: OldRows): Life["slice"] {
  const next = `SELECT ${key} AS key, (${age}) < ?1 AS isOld FROM ${table} WHERE ${key} > ?2 ORDER BY ${key} LIMIT ?3`;
  const remove = `DELETE FROM ${table} WHERE ${key} > ?2 AND ${key} <= ?3 AND (${age}) < ?1 AND (${only})
    RETURNING ${owner?.column ?? "NULL"} AS owner`;
  return (before, after, most) => {
    const from = after ?? start;
    const looked = Math.max(most, YOUNG_ROWS);
    const rows = sqlite
      .query<{ key: string | number; isOld: number }, [number, string | number, number]>(next)
      .all(before, from, looked);
    const last = rows[Math.min(most, rows.length) - 1];
    if (last === undefined || !rows.some(({ isOld }) => isOld)) return { removed: 0, next: null };
    const gone = sqlite
      .query<{ owner: string | null }, [number, string | number, string | number]>(remove)
      .all(before, from, last.key);
    if (owner && gone.length > 0) owner.told(new Set(gone.flatMap((row) => row.owner ?? [])));
    return { removed: gone.length, next: rows.length > most || rows.length === looked ? last.key : null };
  };
}
