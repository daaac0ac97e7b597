import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRetention, oldRows } from "../../src/storage/retention.ts";
import { openStore, type Store } from "../../src/storage/store.ts";
import { DAY, type HandClock, handClock } from "../lib/hand-clock.ts";

let dataDir: string;
let store: Store;
let clock: HandClock;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-retention-"));
  store = openStore(dataDir);
  clock = handClock(1_000 * DAY);
  store.sqlite.run("CREATE TABLE notes (id INTEGER PRIMARY KEY, owner TEXT, kept INTEGER, at INTEGER)");
});
afterEach(() => {
  store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const add = (count: number, atMs: number, keeps = 0) =>
  store.transaction(() => {
    const insert = store.sqlite.prepare("INSERT INTO notes (owner, kept, at) VALUES (?, ?, ?)");
    for (let at = 0; at < count; at++) insert.run(`o${at % 3}`, keeps, atMs);
  });
const ids = () => store.sqlite.query("SELECT id FROM notes ORDER BY id").values().flat() as number[];
const owners: string[][] = [];
const rule = () =>
  oldRows(store.sqlite, {
    table: "notes",
    key: "id",
    start: -1,
    age: "at",
    only: "kept = 0",
    owner: { column: "owner", told: (some) => void owners.push([...some].sort()) },
  });
const life = (keptMs: number | null = 10 * DAY) => ({ kind: "notes", keptMs, slice: rule() });

describe("what has reached the end of its life", () => {
  test("goes to the millisecond, with its owners told, and what is kept for another reason is passed over", async () => {
    owners.length = 0;
    add(3, clock.now() - 10 * DAY - 1);
    add(2, clock.now() - 11 * DAY, 1);
    add(1, clock.now() - 10 * DAY - 1);
    add(2, clock.now() - 10 * DAY);
    const retention = createRetention(store, clock);
    await retention.prune(life());
    expect(ids()).toEqual([4, 5, 7, 8]);
    expect(owners).toEqual([["o0", "o1", "o2"]]);
    expect(retention.removed().get("notes")).toBe(4);
    clock.advance(1);
    await retention.prune(life());
    expect(ids()).toEqual([4, 5]);
    expect(retention.removed().get("notes")).toBe(6);
  });

  test("stays where it is to be kept for ever", async () => {
    add(3, 0);
    await createRetention(store, clock).prune(life(null));
    expect(ids()).toHaveLength(3);
  });

  test("goes in many commits of a bounded number of rows, with a pause after each", async () => {
    add(5_000, 0);
    const { commitSoon } = store;
    const removed: number[] = [];
    let left = 5_000;
    const counted = {
      commitSoon: (async (...work: Parameters<typeof commitSoon>) => {
        const result = await commitSoon(...work);
        removed.push(left - ids().length);
        left = ids().length;
        return result;
      }) as typeof commitSoon,
    };
    let pauses = 0;
    await createRetention(counted, clock, async () => void pauses++).prune(life());
    expect(ids()).toEqual([]);
    expect(Math.max(...removed)).toBeLessThanOrEqual(1_024);
    expect(removed.length).toBeGreaterThan(4);
    expect(pauses).toBe(removed.length - 1);
  });

  test("is found behind rows of a time when the clock was ahead", async () => {
    add(10, clock.now() + 400 * DAY);
    add(500, 0);
    await createRetention(store, clock).prune(life());
    expect(ids()).toHaveLength(10);
  });

  test("is not looked for behind the young ones: what a pass reads does not grow with what is kept", () => {
    add(300, 0);
    add(20_000, clock.now());
    const slice = rule();
    const seen: unknown[] = [];
    for (let after: number | string | null = null; ; ) {
      const { removed, next } = store.transaction(() => slice(clock.now() - DAY, after, 100));
      seen.push(removed);
      if (next === null) break;
      after = next;
    }
    expect(seen).toEqual([100, 100, 100, 0]);
  });
});

test("no further slice starts once it is stopped, and the next process goes on", async () => {
  add(5_000, 0);
  const retention = createRetention(store, clock, async () => retention.stop());
  await retention.prune(life());
  const left = ids().length;
  expect(left).toBeGreaterThan(3_000);
  expect(left).toBeLessThan(5_000);
  await createRetention(store, clock).prune(life());
  expect(ids()).toEqual([]);
});

test("a slice that fails removes nothing, and says so", async () => {
  add(100, 0);
  store.sqlite.run("CREATE TRIGGER no BEFORE DELETE ON notes WHEN OLD.id = 50 BEGIN SELECT raise(ABORT, 'full'); END");
  await expect(createRetention(store, clock).prune(life())).rejects.toThrow("full");
  expect(ids()).toHaveLength(100);
});
