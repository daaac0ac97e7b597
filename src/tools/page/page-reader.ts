import { startThread } from "../../lib/open-files.ts";
import { createFairPlaces } from "../../limits/fair-places.ts";
import type { Page } from "./page.ts";
import type { PageReply, PageTask } from "./worker.ts";

/** Turns HTML into what an agent reads. */
export interface PageReader {
  /** Throws if the page cannot even be read as plain text, or the signal's reason. */
  read(accountId: string, html: string, url: string, signal: AbortSignal): Promise<Page>;
  close(): void;
}

/** Pages read at the same time, and of one account. */
const PLACES = { total: 2, maxPerOwner: 1, maxWaitingPerOwner: 64 };
/** How long a page may take to become plain text, and then to become readable; else the plain text has to do. */
const DEADLINES = { plainMs: 5_000, readableMs: 5_000 };
/** A thread without work ends after this. */
const IDLE_MS = 30_000;

/** In the binary the worker is an entry point of its own, beside the main one. */
const WORKER_ADDRESS = import.meta.url.includes("$bunfs")
  ? "./tools/page/worker.ts"
  : new URL("./worker.ts", import.meta.url).href;

export function createPageReader({ plainMs, readableMs } = DEADLINES): PageReader {
  const places = createFairPlaces(PLACES);
  /** Threads without work, each with the timer that ends it. */
  const idle = new Map<Worker, ReturnType<typeof setTimeout>>();
  const busy = new Set<Worker>();
  let tasks = 0;

  function take(): Worker {
    const [free] = idle.keys();
    const worker = free ?? startThread(WORKER_ADDRESS);
    clearTimeout(idle.get(worker));
    idle.delete(worker);
    busy.add(worker);
    return worker;
  }

  function end(worker: Worker): void {
    busy.delete(worker);
    idle.delete(worker);
    worker.terminate();
  }

  function rest(worker: Worker): void {
    busy.delete(worker);
    idle.set(worker, setTimeout(end, IDLE_MS, worker).unref());
  }

  /** The best that was read when the thread was done or its time was over. */
  async function readOn(worker: Worker, task: PageTask, signal: AbortSignal): Promise<Page | null> {
    let page: Page | null = null;
    const { promise, resolve, reject } = Promise.withResolvers<"done" | "ended">();
    const stop = () => resolve("ended");
    let timer = setTimeout(stop, plainMs);
    signal.addEventListener("abort", stop, { once: true });
    worker.onmessage = ({ data }: MessageEvent<PageReply>) => {
      if (data.id !== task.id) return;
      page = data.page ?? page;
      if (data.kind !== "plain") return resolve("done");
      clearTimeout(timer);
      timer = setTimeout(stop, readableMs);
    };
    worker.onerror = ({ message }) => reject(new Error(message));
    try {
      worker.postMessage(task);
      if ((await promise) === "done") rest(worker);
      else end(worker);
      signal.throwIfAborted();
      return page;
    } catch (error) {
      end(worker);
      throw error;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
    }
  }

  return {
    async read(accountId, html, url, signal) {
      const release = await places.take(accountId, signal);
      if (release === null) throw new Error("too many pages of this account wait to be read: try again later");
      try {
        const page = await readOn(take(), { id: ++tasks, html, url }, signal);
        if (page === null) throw new Error(`the page could not be read within ${plainMs / 1000} seconds`);
        return page;
      } finally {
        release();
      }
    },
    close() {
      for (const [worker, timer] of idle) {
        clearTimeout(timer);
        end(worker);
      }
      for (const worker of busy) end(worker);
    },
  };
}
