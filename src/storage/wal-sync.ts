import { closeSync, fdatasync, fdatasyncSync, openSync } from "node:fs";

export interface WalSync {
  /** Resolves when all that was committed before the call is on disk. Rejects when the disk refuses. */
  sync(): Promise<void>;
  /** The same at once, for whoever waits; nothing may be asked of it afterwards. */
  close(): void;
}

interface Waiter {
  resolve: () => void;
  reject: (reason: unknown) => void;
}

/**
 * Brings SQLite's write-ahead log to the disk without holding the thread: a commit under `synchronous = NORMAL` has
 * written its frames to the file, and is as durable as one under FULL once the file is synced (FULL does nothing else).
 * One sync is under way at a time, and those who ask meanwhile share the next. The file stays the same one as long as
 * a connection is open, and SQLite holds no locks on it that closing it here could drop.
 */
export function createWalSync(path: string): WalSync {
  let file: number | undefined;
  let waiters: Waiter[] = [];
  let isBusy = false;

  const opened = () => {
    file ??= openSync(path, "r+");
    return file;
  };

  function next(): void {
    const served = waiters;
    waiters = [];
    isBusy = served.length > 0;
    if (!isBusy) return;
    fdatasync(opened(), (error) => {
      for (const { resolve, reject } of served) {
        if (error) reject(error);
        else resolve();
      }
      next();
    });
  }

  return {
    sync() {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      waiters.push({ resolve, reject });
      // With the commits of the same turn of the event loop.
      if (!isBusy) next();
      return promise;
    },
    close() {
      const served = waiters;
      waiters = [];
      if (served.length > 0) fdatasyncSync(opened());
      for (const { resolve } of served) resolve();
      if (file !== undefined && !isBusy) closeSync(file);
    },
  };
}
