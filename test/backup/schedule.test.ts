import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { openFoundation } from "../../src/app/foundation.ts";
import { createBackup } from "../../src/backup/create.ts";
import { type Destination, locate, openDestination } from "../../src/backup/destination.ts";
import { createBackupSchedule, readTrial, type ScheduleParts } from "../../src/backup/schedule.ts";
import { verifyBackup } from "../../src/backup/verify.ts";

const HOUR = 60 * 60 * 1000;
const DAY = 24 * HOUR;
const NEVER = new Promise<never>(() => {});
const SILENT = { info() {}, warn() {}, error() {} };

let dataDir: string;
let now = 0;
let mails: string[];
let checks: number;
/** What stands in the way of making one. */
let obstacle: string | null;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-schedule-"));
  openFoundation({ dataDir }).store.close();
  now = Date.parse("2026-03-01T00:00:00Z");
  mails = [];
  checks = 0;
  obstacle = null;
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const folder = () => join(dataDir, "backups");
const names = () =>
  readdirSync(folder())
    .filter((name) => /^roost-.*\.tar\.zst$/.test(name))
    .sort();

const schedule = (changes: Partial<ScheduleParts> = {}) =>
  createBackupSchedule({
    dataDir,
    everyMs: DAY,
    keep: 3,
    isEncrypted: false,
    destination: openDestination(folder()),
    clock: { now: () => now },
    log: SILENT,
    signal: new AbortController().signal,
    async make(path) {
      if (obstacle !== null) throw new Error(obstacle);
      await createBackup({ dataDir, ...locate(path), withKeys: false, passphrase: null });
    },
    async check(path) {
      checks += 1;
      const archive = Bun.file(path);
      await verifyBackup(dataDir, { archive, size: archive.size, passphrase: null });
    },
    tell: async (subject) => void mails.push(subject),
    ...changes,
  });

/** Ticks once an hour. */
async function pass(hours: number, one: { tick(): Promise<void> }): Promise<void> {
  for (let hour = 0; hour < hours; hour++) {
    now += HOUR;
    await one.tick();
  }
}

test("one is made at once, then at each interval, and only the newest are kept", async () => {
  writeFileSync(join(dataDir, "roost.toml"), "");
  const one = schedule();
  await one.tick();
  expect(names()).toEqual(["roost-20260301T000000Z.tar.zst"]);
  await pass(5 * 24, one);
  expect(names()).toEqual(["20260304", "20260305", "20260306"].map((day) => `roost-${day}T000000Z.tar.zst`));
  expect(one.figures()).toMatchObject({ made: 6, failed: 0, isOverdue: false, newestMs: now });
});

test("a restart makes none that is not due, and catches up one that is", async () => {
  await schedule().tick();
  now += DAY - 1;
  await schedule().tick();
  expect(names()).toHaveLength(1);
  now += 10 * DAY;
  await schedule().tick();
  expect(names()).toHaveLength(2);
});

test("backups from when the clock was ahead neither put off the next ones nor take their places", async () => {
  const one = schedule({ check: async () => {} });
  now += 365 * DAY;
  await pass(3 * 24, one);
  expect(names()).toHaveLength(3);
  now -= 368 * DAY;
  await pass(3 * 24, one);
  expect(names()).toEqual(["20260301", "20260302", "20260303"].map((day) => `roost-${day}T010000Z.tar.zst`));
  expect(one.figures()).toMatchObject({ failed: 0, isOverdue: false, newestMs: Date.parse("2026-03-03T01:00:00Z") });
});

test("a failure while the clock was ahead puts off neither the next backup nor the next mail", async () => {
  obstacle = "the disk is full";
  now += 365 * DAY;
  const one = schedule();
  await one.tick();
  expect(mails).toEqual(["A backup of Roost failed"]);
  now -= 365 * DAY;
  await one.tick();
  expect(one.figures()).toMatchObject({ failed: 2, isOverdue: true });
  expect(mails).toHaveLength(2);
  obstacle = null;
  await pass(1, one);
  expect(one.figures()).toMatchObject({ made: 1, isOverdue: false });
});

test("one that is being made for far too long is overdue, and told", async () => {
  const held = Promise.withResolvers<void>();
  const one = schedule({ make: () => held.promise });
  const first = one.tick();
  now += 2 * DAY;
  const second = one.tick();
  while (mails.length === 0) await new Promise((resolve) => setImmediate(resolve));
  expect(mails).toEqual(["A backup of Roost is overdue"]);
  expect(one.figures()).toMatchObject({ isOverdue: true });
  held.resolve();
  await Promise.all([first, second]);
});

test("files that the schedule has not made are never removed", async () => {
  const one = schedule();
  await one.tick();
  const own = ["mine.tar.zst", "before-migration-from-1-x.db", "roost-2026.tar.zst"];
  for (const name of own) writeFileSync(join(folder(), name), "mine");
  await pass(6 * 24, one);
  expect(readdirSync(folder())).toEqual(expect.arrayContaining(own));
});

test("the newest is restored for a trial at first and then once a week", async () => {
  const one = schedule();
  await one.tick();
  expect(checks).toBe(1);
  await pass(7 * 24 - 1, one);
  expect(checks).toBe(1);
  await pass(1, schedule());
  expect(checks).toBe(2);
});

test("a failure is counted, told once a day, tried again each hour, and forgotten when one succeeds", async () => {
  obstacle = "the disk is full";
  const one = schedule();
  await one.tick();
  await one.tick();
  expect(one.figures()).toMatchObject({ made: 0, failed: 1 });
  await pass(23, one);
  expect(one.figures().failed).toBe(24);
  expect(mails).toEqual(["A backup of Roost failed"]);
  await pass(14, one);
  expect(one.figures().isOverdue).toBe(true);
  expect(mails).toHaveLength(2);
  obstacle = null;
  await pass(1, one);
  expect(one.figures()).toMatchObject({ made: 1, isOverdue: false });
});

test("a backup that cannot be restored is told, and tried no more until there is another", async () => {
  const one = schedule();
  await one.tick();
  const [name = ""] = names();
  writeFileSync(join(folder(), name), "damaged");
  rmSync(join(folder(), "trial.json"));
  await pass(3, one);
  expect(one.figures()).toMatchObject({ bad: 1 });
  expect(mails).toEqual(["A backup of Roost failed"]);
  await pass(24, one);
  expect(checks).toBe(3);
  expect(one.figures()).toMatchObject({ bad: 1, checked: 2 });
});

test("what the stop of the server ends has not failed", async () => {
  const stopping = new AbortController();
  const one = schedule({
    signal: stopping.signal,
    async make() {
      stopping.abort();
      throw new Error("its process was ended");
    },
  });
  await one.tick();
  expect(one.figures().failed).toBe(0);
  expect(mails).toEqual([]);
});

test("a trial restore that the stop of the server ends says nothing of the backup, and the next start tries again", async () => {
  const stopping = new AbortController();
  const one = schedule({
    signal: stopping.signal,
    async check() {
      stopping.abort();
      throw new Error("its process was ended");
    },
  });
  await one.tick();
  expect(one.figures()).toMatchObject({ made: 1, failed: 0, bad: 0 });
  expect(readTrial(dataDir)).toBeNull();
  await schedule().tick();
  expect(readTrial(dataDir)).toMatchObject({ failure: null });
});

test.each(["list", "remove"] as const)(
  "the stop of the server does not wait for a place of backups that does not answer: %s",
  async (call) => {
    const stopping = new AbortController();
    const hang = () => {
      setImmediate(() => stopping.abort());
      return NEVER;
    };
    const destination: Destination = { ...openDestination(folder()), [call]: hang };
    const one = schedule({ destination, keep: 0, signal: stopping.signal });
    await one.tick();
    expect(stopping.signal.aborted).toBe(true);
    expect(one.figures().failed).toBe(0);
    expect(mails).toEqual([]);
  },
);

test("a place of backups that does not answer for a minute fails the backup, and the next tick tries again", async () => {
  const place = openDestination(folder());
  const lists = [() => NEVER, place.list];
  const destination = { ...place, list: () => (lists.shift() ?? place.list)() };
  const one = schedule({ destination, patienceMs: 1 });
  await one.tick();
  expect(one.figures()).toMatchObject({ made: 0, failed: 1 });
  expect(mails).toEqual(["A backup of Roost failed"]);
  const patient = schedule({ destination });
  await patient.tick();
  expect(patient.figures()).toMatchObject({ made: 1, failed: 0 });
});

test("two ticks at once make one backup", async () => {
  const paths: string[] = [];
  const one = schedule({ make: async (path) => void paths.push(basename(path)) });
  await Promise.all([one.tick(), one.tick()]);
  expect(paths).toHaveLength(1);
});
