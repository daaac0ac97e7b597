import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { openStore, type Store } from "../../src/storage/store.ts";
import { createWriteCheck, type WriteCheck } from "../../src/storage/write-check.ts";
import { canMount, mounted } from "../support/mounted.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "roost-write-check-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const FULL = "the host's disk is full";

test.skipIf(!canMount)("a full disk is found out by a write, and so is room on it", () => {
  const script = [process.execPath, resolve(import.meta.dir, "fill-disk.ts"), folder];
  const { stdout, stderr } = Bun.spawnSync([...mounted("size=8m", folder), ...script]);
  expect([stdout.toString(), stderr.toString()]).toEqual([JSON.stringify([null, null, FULL, FULL, null]), ""]);
});

function withStore(work: (store: Store, check: WriteCheck, pass: (ms: number) => void) => Promise<void>) {
  return async () => {
    let now = 0;
    const store = openStore(folder);
    const check = createWriteCheck(store, () => now);
    await work(store, check, (ms) => {
      now += ms;
    });
    store.close();
  };
}
const framesOf = (store: Store) => store.sqlite.query("PRAGMA wal_checkpoint(NOOP)").values()[0]?.[1] as number;
const fullError = () => Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });

test(
  "many probes cost one write in ten seconds, and it changes nothing",
  withStore(async (store, check, pass) => {
    const version = store.sqlite.query("PRAGMA user_version").values();
    const before = framesOf(store);
    await Promise.all(Array.from({ length: 50 }, () => check.refusal()));
    const once = framesOf(store);
    expect(once).toBeGreaterThan(before);
    pass(9_999);
    expect([await check.refusal(), framesOf(store)]).toEqual([null, once]);
    pass(1);
    expect([await check.refusal(), framesOf(store)]).toEqual([null, once + 1]);
    expect(store.sqlite.query("PRAGMA user_version").values()).toEqual(version);
  }),
);

test(
  "a request that met a full disk counts at once, without a write, and no other failure does",
  withStore(async (store, check, pass) => {
    expect(await check.refusal()).toBeNull();
    const frames = framesOf(store);
    check.failed(new Error("anything"));
    check.failed(undefined);
    expect(await check.refusal()).toBeNull();
    check.failed(fullError());
    expect([await check.refusal(), framesOf(store)]).toEqual([FULL, frames]);
    pass(10_000);
    expect(await check.refusal()).toBeNull();
  }),
);
