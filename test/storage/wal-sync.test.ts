import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  type fdatasync,
  fdatasyncSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createWalSync } from "../../src/storage/wal-sync.ts";

let folder: string;
let path: string;
/** The syncs that the disk has been asked for, oldest first; each is ended by its test. */
let asked: ((error: Error | null) => void)[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "roost-wal-"));
  path = join(folder, "roost.db-wal");
  writeFileSync(path, "");
  asked = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

const calls = {
  fdatasync: ((_file: number, ended: (error: Error | null) => void) => void asked.push(ended)) as typeof fdatasync,
  fdatasyncSync,
};
/** An empty file beside it. */
const another = (): string => {
  writeFileSync(`${path}.other`, "");
  return `${path}.other`;
};
const outcomes = async (...syncs: Promise<void>[]) => (await Promise.allSettled(syncs)).map(({ status }) => status);
const descriptors = () =>
  readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return readlinkSync(join("/proc/self/fd", fd)) === path;
    } catch {
      return false; // the listing's own, closed by now
    }
  }).length;

test("the real disk is asked, and answers", async () => {
  const wal = createWalSync(path);
  await Promise.all([wal.sync(), wal.sync()]);
  wal.close();
});

test("those who ask while a sync is under way share the next one", async () => {
  const wal = createWalSync(path, calls);
  const syncs = [wal.sync(), wal.sync(), wal.sync()];
  expect(asked.length).toBe(1);
  asked[0]?.(null);
  expect(asked.length).toBe(2);
  asked[1]?.(null);
  expect(await outcomes(...syncs)).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
  expect(asked.length).toBe(2);
  wal.close();
});

test("after a sync that failed none succeeds: not those who wait, and not those who come later", async () => {
  const wal = createWalSync(path, calls);
  const syncs = [wal.sync(), wal.sync()];
  asked[0]?.(new Error("EIO"));
  syncs.push(wal.sync());
  expect(await outcomes(...syncs)).toEqual(["rejected", "rejected", "rejected"]);
  expect(asked.length).toBe(1);
  wal.close();
});

test.each([
  ["removed", () => rmSync(path)],
  ["moved", () => renameSync(path, `${path}.moved`)],
  ["replaced", () => renameSync(another(), path)],
])("a file that was %s keeps nothing, though the disk takes it", async (_, happen) => {
  const wal = createWalSync(path);
  await wal.sync();
  happen();
  await expect(wal.sync()).rejects.toThrow("the write-ahead log could not be synced");
  wal.close();
});

test("closing answers those who wait, and leaves the file to the sync that is under way", async () => {
  const wal = createWalSync(path, calls);
  const syncs = [wal.sync(), wal.sync()];
  wal.close();
  await syncs[1];
  expect(descriptors()).toBe(1);
  asked[0]?.(null);
  await syncs[0];
  expect(descriptors()).toBe(0);
});
