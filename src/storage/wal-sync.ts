import { closeSync, fdatasync, fdatasyncSync, fstatSync, openSync, statSync } from "node:fs";

export interface WalSync {
  /** A descriptor of the file, open until `close`. */
  readonly file: number;
  /**
   * Resolves when all that was committed before the call is on disk. Rejects if the disk refuses, from then on always: the
   * kernel reports a failed write once, and a later sync would seem to have kept what is lost. Rejects too if the file is
   * no longer where it was: what is written to a removed file is gone with the process.
   */
  sync(): Promise<void>;
  /** Why nothing can be kept: the file is no longer where it was; null while it is. */
  displaced(): Error | null;
  /** Syncs at once for whoever waits. Nothing may be asked of it afterwards. */
  close(): void;
}

interface Waiter {
  resolve: () => void;
  reject: (reason: unknown) => void;
}

/** The calls of the operating system, which tests replace. */
const system = { fdatasync, fdatasyncSync };

/**
 * Brings SQLite's write-ahead log to the disk without holding the thread: a commit under `synchronous = NORMAL` has
 * written its frames to the file, and is as durable as one under FULL once the file is synced (FULL does nothing else).
 * One sync is under way at a time, and those who ask meanwhile share the next. The file exists, and stays the same one, as
 * long as a connection is open; SQLite holds no locks on it that closing it here could drop.
 */
export function createWalSync(path: string, calls: typeof system = system): WalSync {
  // Opened now: once there are connections, file descriptors may run out.
  const file = openSync(path, "r+");
  const { dev, ino } = fstatSync(file);
  let waiters: Waiter[] = [];
  let isBusy = false;
  let isClosed = false;
  let failure: Error | undefined;

  function displaced(): Error | null {
    try {
      const found = statSync(path);
      if (found.dev === dev && found.ino === ino) return null;
    } catch {} // it is not there
    return new Error(`${path} was moved or removed`);
  }

  function settle(served: Waiter[], error: unknown): void {
    if (error) failure ??= new Error("the write-ahead log could not be synced", { cause: error });
    for (const { resolve, reject } of served) {
      if (failure) reject(failure);
      else resolve();
    }
  }

  function next(): void {
    if (isClosed) {
      closeSync(file);
      return;
    }
    const served = waiters;
    waiters = [];
    if (failure) settle(served, failure);
    if (failure || served.length === 0) return;
    isBusy = true;
    calls.fdatasync(file, (error) => {
      isBusy = false;
      // Closing the database removes the file.
      settle(served, error ?? (isClosed ? null : displaced()));
      next();
    });
  }

  return {
    file,
    sync() {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      waiters.push({ resolve, reject });
      if (!isBusy) next();
      return promise;
    },
    displaced,
    close() {
      isClosed = true;
      const served = waiters;
      waiters = [];
      let refusal: unknown = null;
      try {
        if (served.length > 0) calls.fdatasyncSync(file);
      } catch (error) {
        refusal = error;
      }
      settle(served, refusal);
      // One that is under way still needs the file.
      if (!isBusy) closeSync(file);
    },
  };
}
