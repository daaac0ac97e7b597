import type { Log } from "../lib/log.ts";
import { startThread } from "../lib/open-files.ts";
import type { Ask, Failure, FromIndex, Replies, ToIndex } from "./search/worker.ts";

/** The thread that keeps the indexes (search/worker.ts). It is started when it is needed, and ends when it has nothing to do. */
export interface SearchThread {
  /**
   * Throws `LostIndexError` if the agent has no index, `IndexTroubleError` if the thread is full, stuck or has ended or its disk
   * does not serve it, and another error if it cannot do what it is asked.
   */
  ask<A extends Ask>(ask: A): Promise<Replies[A["type"]]>;
  close(): void;
}

/** The agent's index is not there, or cannot be read: it has to be built. */
export class LostIndexError extends Error {}

/** The indexes, or this one, cannot be written or read at the moment, whatever is asked. */
export class IndexTroubleError extends Error {}

/** Requests to the thread that wait. */
const MAX_WAITING = 512;
const IDLE_MS = 120_000;
/** It answers each in slices of milliseconds: one that says nothing for so long never will. */
const STUCK_MS = 30_000;

/** In the binary the worker is an entry point of its own, beside the main one. */
const WORKER_ADDRESS = import.meta.url.includes("$bunfs")
  ? "./memory/search/worker.ts"
  : new URL("./search/worker.ts", import.meta.url).href;

export function createSearchThread(
  folder: string,
  log: Log,
  { address = WORKER_ADDRESS, stuckMs = STUCK_MS }: { address?: string; stuckMs?: number } = {},
): SearchThread {
  const waiting = new Map<number, { resolve: (reply: never) => void; reject: (error: Error) => void }>();
  let thread: Worker | null = null;
  let watch: ReturnType<typeof setTimeout> | undefined;
  let asked = 0;
  let closed = false;

  function end(why: string): void {
    clearTimeout(watch);
    thread?.terminate();
    thread = null;
    for (const { reject } of waiting.values()) reject(new IndexTroubleError(why));
    waiting.clear();
  }

  function start(): Worker {
    const started = startThread(address);
    started.onmessage = ({ data }: MessageEvent<FromIndex>) => {
      const one = waiting.get(data.id);
      waiting.delete(data.id);
      if (started === thread) watchOver();
      // The thread answers each question with its kind of reply; their ids are all that connects them.
      if ("reply" in data) one?.resolve(data.reply as never);
      else one?.reject(errorOf(data));
    };
    started.onerror = ({ message }) => started === thread && lose(message);
    started.postMessage({ folder } satisfies ToIndex);
    return started;
  }

  function lose(reason: string): void {
    log.error({ reason }, "the thread of the memory's indexes has ended");
    end("the memory's index could not be read");
  }

  /** From what it has said last, or from the first question. */
  function watchOver(): void {
    clearTimeout(watch);
    watch =
      waiting.size === 0
        ? setTimeout(() => end("idle"), IDLE_MS).unref()
        : setTimeout(() => lose("it was stuck"), stuckMs).unref();
  }

  return {
    ask<A extends Ask>(ask: A) {
      const { promise, resolve, reject } = Promise.withResolvers<Replies[A["type"]]>();
      if (closed || waiting.size >= MAX_WAITING) {
        reject(new IndexTroubleError(closed ? "the host is stopping" : "too much waits for the memory's index"));
        return promise;
      }
      try {
        thread ??= start();
      } catch (error) {
        reject(new IndexTroubleError("the thread of the memory's indexes could not be started", { cause: error }));
        return promise;
      }
      const id = ++asked;
      waiting.set(id, { resolve: resolve as (reply: never) => void, reject });
      if (waiting.size === 1) watchOver();
      thread.postMessage({ id, ask } satisfies ToIndex);
      return promise;
    },
    close() {
      closed = true;
      end("the host is stopping");
    },
  };
}

function errorOf({ error, isLost, isTrouble }: Failure): Error {
  if (isLost) return new LostIndexError(error);
  return isTrouble ? new IndexTroubleError(error) : new Error(error);
}
