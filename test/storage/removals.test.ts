import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog } from "../../src/lib/log.ts";
import {
  type ClearingPlan,
  clearRows,
  createRemovals,
  type Removals,
  type RowsOf,
} from "../../src/storage/removals.ts";
import { openStore, type Store } from "../../src/storage/store.ts";

const log = await createLog("silent", "json");
let dataDir: string;
let store: Store;

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-removals-"));
  store = openStore(dataDir);
  store.transaction(() => {
    store.sqlite.run("CREATE TABLE things (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, kind TEXT NOT NULL)");
    store.sqlite.run("CREATE INDEX things_by_owner ON things (owner, id)");
  });
});
afterEach(async () => {
  // A retry that is due later would meet a closed database, in the middle of another test.
  await Promise.all(started.splice(0).map((removals) => removals.stop()));
  store.close();
  rmSync(dataDir, { recursive: true });
});

const started: Removals[] = [];
function startRemovals(options?: Parameters<typeof createRemovals>[2]): Removals {
  const removals = createRemovals(store, log, options);
  started.push(removals);
  return removals;
}

const THINGS: RowsOf = { table: "things", by: "owner", key: "id", before: -1, batch: 100 };
const nothing: ClearingPlan = { instance: [], agent: [], conversation: [], history: [], trash: [] };
const planOf = (rows = THINGS, last?: () => void): ClearingPlan => ({
  ...nothing,
  agent: [{ rows: clearRows(store, rows, last) }],
});

function fill(owner: string, count: number, kind = "a"): void {
  store.transaction(() => {
    const add = store.sqlite.prepare("INSERT INTO things (owner, kind) VALUES (?, ?)");
    for (let at = 0; at < count; at++) add.run(owner, kind);
  });
}
const count = (where = "TRUE") =>
  store.sqlite.query<{ n: number }, []>(`SELECT count(*) AS n FROM things WHERE ${where}`).get()?.n ?? -1;

test("rows are removed a slice at a time, and other work runs between two slices", async () => {
  fill("ada", 1_050);
  fill("eve", 3);
  const left: number[] = [];
  const removals = startRemovals({
    async pause() {
      left.push(count("owner = 'ada'"));
      await store.commitSoon(() => fill("bob", 1), "process");
    },
  });
  store.transaction(() => removals.add("agent", "ada"));
  removals.run(planOf());
  await removals.settled();
  expect(left.slice(0, 10)).toEqual([950, 850, 750, 650, 550, 450, 350, 250, 150, 50]);
  expect([count("owner = 'ada'"), count("owner = 'eve'")]).toEqual([0, 3]);
  expect(count("owner = 'bob'")).toBe(left.length);
});

test("what a stop interrupted continues at the next start, in the order of deletion", async () => {
  fill("ada", 500);
  fill("eve", 500);
  let pauses = 0;
  const first = startRemovals({
    async pause() {
      if (++pauses === 2) void first.stop();
    },
  });
  for (const owner of ["ada", "eve"]) store.transaction(() => first.add("agent", owner));
  first.run(planOf());
  await first.settled();
  await first.stop();
  expect([count("owner = 'ada'"), count("owner = 'eve'")]).toEqual([300, 500]);
  const second = startRemovals({ pause: async () => {} });
  second.run(planOf());
  await second.settled();
  expect([count(), store.sqlite.query("SELECT * FROM removals").all()]).toEqual([0, []]);
});

test("only one thing is removed at a time, whatever is added meanwhile", async () => {
  for (const owner of ["ada", "eve"]) fill(owner, 300);
  const seen: string[] = [];
  const removals = startRemovals({
    async pause() {
      if (seen.length === 0) store.transaction(() => removals.add("agent", "eve"));
      seen.push(`${count("owner = 'ada'")} ${count("owner = 'eve'")}`);
    },
  });
  store.transaction(() => removals.add("agent", "ada"));
  removals.run(planOf());
  await removals.settled();
  expect(seen).toEqual(["200 300", "100 300", "0 300", "0 200", "0 100", "0 0"]);
});

test("a deletion that was rolled back removes nothing", async () => {
  fill("ada", 1);
  const removals = startRemovals();
  removals.run(planOf());
  const change = () =>
    store.transaction(() => {
      removals.add("agent", "ada");
      throw new Error("no");
    });
  expect(change).toThrow("no");
  await removals.settled();
  expect(count()).toBe(1);
});

test("a slice that fails is retried, and later deletions do not wait for it", async () => {
  fill("ada", 250);
  fill("eve", 250);
  const order: string[] = [];
  let tries = 0;
  const removals = startRemovals({ pause: async () => {}, retryMs: 0 });
  const steps = clearRows(store, THINGS);
  removals.run({
    ...nothing,
    agent: [
      {
        *rows(id) {
          order.push(id);
          if (id === "ada" && ++tries < 3) throw new Error("the folder is another user's");
          yield* { [Symbol.iterator]: () => steps(id) };
        },
      },
    ],
  });
  store.transaction(() => {
    for (const owner of ["ada", "eve"]) removals.add("agent", owner);
  });
  while (count() > 0) await new Promise((resolve) => setImmediate(resolve));
  await removals.settled();
  expect([order, count()]).toEqual([["ada", "eve", "ada", "ada"], 0]);
});

test("rows that stay are scanned once, and `last` runs in the last slice's transaction", async () => {
  for (let at = 0; at < 4; at++) {
    fill("ada", 150, "kept");
    fill("ada", 150, "told");
  }
  const lasts: [left: number, inTransaction: boolean][] = [];
  const last = () => void lasts.push([count("kind = 'told'"), store.sqlite.inTransaction]);
  const removals = startRemovals({ pause: async () => {} });
  store.transaction(() => removals.add("agent", "ada"));
  removals.run(planOf({ ...THINGS, only: "kind = 'told'" }, last));
  await removals.settled();
  expect(lasts).toEqual([[0, true]]);
  expect([count("kind = 'told'"), count("kind = 'kept'")]).toEqual([0, 600]);
});

test("children are removed before what contains them", async () => {
  const order: string[] = [];
  const children = ["a1", "a2"];
  const noting = (name: string) => ({
    *rows(id: string) {
      order.push(`${name} ${id}`);
      if (children[0] === id) children.shift();
      yield;
    },
  });
  const removals = startRemovals({ pause: async () => {} });
  store.transaction(() => removals.add("instance", "i1"));
  removals.run({
    ...nothing,
    instance: [{ each: "agent", first: () => children[0] ?? null }, noting("instance")],
    agent: [noting("agent")],
  });
  await removals.settled();
  expect(order).toEqual(["agent a1", "agent a2", "instance i1"]);
});
