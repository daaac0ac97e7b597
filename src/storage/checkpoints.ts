import { Database } from "bun:sqlite";
import { fdatasync, readdirSync, readlinkSync, realpathSync } from "node:fs";
import type { CommitSchedule } from "./commit-schedule.ts";

/** Frames of the log, and how many of them are in the database. */
export interface Progress {
  log: number;
  checkpointed: number;
}

export interface CheckpointParts {
  path: string;
  /** A descriptor of the log that stays open until `close`: SQLite's own is gone with the connection that it is of. */
  logFile: number;
  /** `PRAGMA wal_checkpoint(PASSIVE)` on the writing connection, outside of a transaction, with nothing synced. */
  checkpoint(): Progress;
  /** `PRAGMA wal_checkpoint(NOOP)` there: some microseconds. */
  progress(): Progress;
  /** SQLite makes its own checkpoint only with so many frames. */
  leaveTo(frames: number): void;
  /** The commits of what may wait a little. */
  commits: Pick<CommitSchedule, "hold" | "release">;
  /** Called when the disk has not kept what was copied. */
  lose(reason: unknown): void;
}

export interface Checkpoints {
  /** Call it after each commit. Throws nothing. */
  committed(): void;
  close(): void;
}

/** The call of the operating system, which tests watch. */
const system = { fdatasync };

/** With so many that are not in the database they are copied, in some milliseconds. */
const FRAMES_AT_ONCE = 750;
/** With so many the log begins anew: 32 MiB. */
const FRAMES_OF_LOG = 8_000;
/** With so many SQLite makes its own checkpoint: 64 MiB. */
const MAX_FRAMES = 16_000;
/** Fewer are copied after the longer, and between two copies there is at least the shorter. */
const [MIN_WAIT_MS, MAX_WAIT_MS] = [25, 30_000];

/**
 * Copies the write-ahead log into the database while the host works, without waiting for the disk. SQLite's own checkpoint
 * syncs the log, and the database with all that it has copied, on the thread that serves everybody: for tenths of a second
 * on a busy disk. Here the operating system syncs in a thread of its own:
 *
 * 1. A reader is held: frames that are written later are not copied, and the log cannot begin anew meanwhile.
 * 2. The log is synced, as SQLite would do before it copies.
 * 3. At the next commit, what the reader has seen is copied, and then the database is synced.
 * 4. The reader lets go. When the log is long and the rest is little, commits wait while that is copied in the same way: with
 *    nothing left that is not in the database, the next one begins the log anew.
 *
 * Where this cannot be done, or is not fast enough, SQLite's own checkpoint is.
 */
export function createCheckpoints(
  { path, logFile, checkpoint, progress, leaveTo, commits, lose }: CheckpointParts,
  calls: typeof system = system,
): Checkpoints {
  let reader: Database | undefined;
  let file = -1;
  /** `off`: nothing can be synced here. `synced`: what the reader has seen may be copied. */
  let state: "idle" | "busy" | "synced" | "off" = "idle";
  /** Commits wait, so that the whole log is copied. */
  let isWhole = false;
  let endedAt = performance.now();

  /** Holds the reader. What is written from here on is not copied, and overwrites nothing of the log. */
  function hold(): void {
    state = "busy";
    if (!isLinkTo(file, path)) file = descriptorOf(path);
    if (file === -1) {
      state = "off";
      letGo();
      return;
    }
    if (reader === undefined) {
      reader = new Database(path, { readonly: true, strict: true });
      reader.run("PRAGMA cache_size = -64");
      leaveTo(MAX_FRAMES);
    }
    reader.run("BEGIN");
    reader.query("SELECT 1 FROM sqlite_schema").get();
    sync(logFile, () => {
      if (isWhole) attempt(copy);
      else state = "synced";
    });
  }

  function sync(descriptor: number, then: () => void): void {
    calls.fdatasync(descriptor, (error) => {
      if (state === "off") return;
      if (!error) return then();
      // The reader stays, so that the log keeps what the database may have lost.
      state = "off";
      lose(error);
      letGo();
    });
  }

  function letGo(): void {
    if (isWhole) commits.release();
    isWhole = false;
    if (state === "off") return;
    if (reader?.inTransaction) reader.run("COMMIT");
    state = "idle";
    endedAt = performance.now();
  }

  function copy(): void {
    checkpoint();
    sync(file, () => {
      const wasWhole = isWhole;
      letGo();
      if (!wasWhole) attempt(copyTheRest);
    });
  }

  /** Commits wait for it: while much is written, another copy comes first. */
  function copyTheRest(): void {
    const { log: frames, checkpointed } = progress();
    if (frames < FRAMES_OF_LOG || frames - checkpointed >= FRAMES_AT_ONCE) return;
    commits.hold();
    isWhole = true;
    hold();
  }

  /** By what was written rather than by time: a host that was quiet for long may write thousands in the next second. */
  function isTime(): boolean {
    const waitedMs = performance.now() - endedAt;
    if (waitedMs < MIN_WAIT_MS) return false;
    const { log: frames, checkpointed } = progress();
    return frames - checkpointed >= FRAMES_AT_ONCE || waitedMs >= MAX_WAIT_MS;
  }

  /** Without what cannot be done, as on a full disk, SQLite's own checkpoint comes instead. */
  function attempt(work: () => void): void {
    try {
      work();
    } catch {
      letGo();
    }
  }

  return {
    committed() {
      if (state === "idle" && isTime()) attempt(hold);
      if (state !== "synced") return;
      state = "busy";
      // Not in the turn of the commit, whose answers are to go out first.
      setImmediate(() => {
        if (state === "busy") attempt(copy);
      });
    },
    close() {
      state = "off";
      reader?.close();
    },
  };
}

/**
 * A descriptor of SQLite's own of the database: closing another one would drop its locks. It may be of another connection of
 * this process, and stays open all the same while one holds a lock. -1 where none can be found.
 */
function descriptorOf(path: string): number {
  try {
    return (
      readdirSync("/proc/self/fd")
        .map(Number)
        .find((file) => isLinkTo(file, path)) ?? -1
    );
  } catch {
    return -1;
  }
}

/** Whether it is still a descriptor of this file: the one that was found may have been another connection's. */
function isLinkTo(file: number, path: string): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${file}`) === realpathSync(path);
  } catch {
    return false;
  }
}
