import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { closeSync, fdatasync, fstatSync, mkdtempSync, openSync, readlinkSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Checkpoints, createCheckpoints, type Progress } from "../../src/storage/checkpoints.ts";
import { openStore, type Store } from "../../src/storage/store.ts";

/** What SQLite and the operating system were asked for, in order. */
type Step =
  | { kind: "copied"; progress: Progress }
  | { kind: "syncing log" | "syncing" | "synced" | "commits held" | "commits released" };

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-checkpoints-"));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

function open(mayEnd = Promise.resolve()) {
  const path = join(dataDir, "some.db");
  const sqlite = new Database(path, { create: true, strict: true });
  for (const pragma of ["journal_mode = WAL", "synchronous = NORMAL", "wal_autocheckpoint = 0"])
    sqlite.run(`PRAGMA ${pragma}`);
  sqlite.run("CREATE TABLE rows (id INTEGER PRIMARY KEY, data BLOB)");
  const steps: Step[] = [];
  const logFile = openSync(`${path}-wal`, "r+");
  /** Where the log was synced. */
  const logFiles: number[] = [];
  const checkpoints: Checkpoints = createCheckpoints(
    {
      path,
      logFile,
      leaveTo: () => {},
      lose: () => {},
      progress: () => sqlite.query<Progress, []>("PRAGMA wal_checkpoint(NOOP)").get() as Progress,
      commits: {
        hold: () => steps.push({ kind: "commits held" }),
        release: () => steps.push({ kind: "commits released" }),
      },
      checkpoint() {
        const progress = sqlite.query<Progress, []>("PRAGMA wal_checkpoint(PASSIVE)").get() as Progress;
        steps.push({ kind: "copied", progress });
        return progress;
      },
    },
    {
      fdatasync: ((file: number, done: (error: NodeJS.ErrnoException | null) => void) => {
        const isLog = readlinkSync(`/proc/self/fd/${file}`).endsWith("-wal");
        if (isLog) {
          steps.push({ kind: "syncing log" });
          logFiles.push(file);
          return fdatasync(file, done);
        }
        steps.push({ kind: "syncing" });
        fdatasync(file, async (error) => {
          await mayEnd;
          steps.push({ kind: "synced" });
          done(error);
        });
      }) as typeof fdatasync,
    },
  );
  const write = (bytes = 200_000) => {
    sqlite.run("INSERT INTO rows (data) VALUES (randomblob(?))", [bytes]);
    checkpoints.committed();
  };
  const close = () => {
    checkpoints.close();
    sqlite.close();
    closeSync(logFile);
  };
  return { path, logFiles, sqlite, steps, checkpoints, write, close };
}
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

test.skipIf(process.platform !== "linux")(
  "while somebody writes, the log is copied but for its newest frames; commits wait for the last copy, and it begins anew",
  async () => {
    const { steps, write, close } = open();
    const kinds = () => steps.map(({ kind }) => kind);
    const copies = () => steps.flatMap((step) => (step.kind === "copied" ? [step.progress] : []));
    const isHeld = () => kinds().lastIndexOf("commits held") > kinds().lastIndexOf("commits released");
    const isAnew = () => copies().some(({ log }, at, all) => log < (all[at - 1]?.log ?? 0));
    while (!isAnew()) {
      if (!isHeld()) write();
      await nextTurn();
    }
    close();
    const [held, released] = [kinds().lastIndexOf("commits held"), kinds().lastIndexOf("commits released")];
    expect(kinds().slice(held - 1, released + 1)).toEqual([
      "synced",
      "commits held",
      "syncing log",
      "copied",
      "syncing",
      "synced",
      "commits released",
    ]);
    for (const [at, step] of steps.entries()) {
      if (step.kind !== "copied") continue;
      const isLast = steps[at - 2]?.kind === "commits held";
      expect(step.progress.checkpointed === step.progress.log).toBe(isLast);
    }
  },
);

test.skipIf(process.platform !== "linux")(
  "a log of which everything was copied, because nothing was written meanwhile, begins anew only once that is on disk",
  async () => {
    const held = Promise.withResolvers<void>();
    const { sqlite, steps, checkpoints, write, close } = open(held.promise);
    write(4_000_000);
    while (!steps.some(({ kind }) => kind === "syncing")) {
      checkpoints.committed();
      await nextTurn();
    }
    const copied = steps.find(({ kind }) => kind === "copied");
    if (copied?.kind !== "copied") throw new Error("nothing was copied");
    const { log, checkpointed } = copied.progress;
    expect(checkpointed).toBe(log);
    const frames = () => sqlite.query<Progress, []>("PRAGMA wal_checkpoint(PASSIVE)").get()?.log;
    write();
    expect(frames()).toBeGreaterThan(log);
    held.resolve();
    while (!steps.some(({ kind }) => kind === "synced")) await nextTurn();
    await nextTurn();
    frames();
    write();
    expect(frames()).toBeLessThan(log * 2);
    close();
  },
);

test.skipIf(process.platform !== "linux")(
  "however little was written before, the log is copied as soon as much is written",
  async () => {
    const { steps, checkpoints, write, close } = open();
    const began = performance.now();
    const until = async (kind: Step["kind"]) => {
      while (!steps.some((step) => step.kind === kind)) {
        checkpoints.committed();
        await nextTurn();
      }
      steps.length = 0;
    };
    write(4_000_000);
    await until("synced");
    // A little, for longer than it took to copy much.
    const quietUntil = 2 * performance.now() - began + 100;
    for (write(100); performance.now() < quietUntil; await nextTurn()) checkpoints.committed();
    expect(steps).toEqual([]);
    write(4_000_000);
    expect(steps).toEqual([{ kind: "syncing log" }]);
    await until("synced");
    close();
  },
);

test.skipIf(process.platform !== "linux")(
  "the log is synced where it stays open, although another connection of this process ends meanwhile",
  async () => {
    // The other one's files have the lower numbers.
    const gap = [0, 1, 2].map(() => openSync(import.meta.path, "r"));
    const { path, logFiles, write, close } = open();
    gap.forEach(closeSync);
    const other = new Database(path, { readonly: true });
    other.query("SELECT count(*) FROM rows").get();
    while (logFiles.length === 0) {
      write();
      await nextTurn();
    }
    other.close();
    const { ino } = statSync(`${path}-wal`);
    for (const file of logFiles) expect(fstatSync(file).ino).toBe(ino);
    close();
  },
);

test.skipIf(process.platform !== "linux")(
  "a store leaves nothing to SQLite's own checkpoints, and all is there when it is opened again",
  async () => {
    let store: Store = openStore(dataDir);
    store.sqlite.run("CREATE TABLE rows (id INTEGER PRIMARY KEY, data BLOB)");
    const left = () => Object.values(store.sqlite.query("PRAGMA wal_autocheckpoint").get() ?? {})[0];
    const before = left();
    let rows = 0;
    const write = () => store.sqlite.run("INSERT INTO rows (data) VALUES (randomblob(100000))");
    for (; left() === before || rows < 500; rows++) await store.commitSoon(write, "process");
    store.close();
    store = openStore(dataDir);
    expect(store.sqlite.query("SELECT count(*) AS rows FROM rows").get()).toEqual({ rows });
    store.close();
  },
);
