/** Work that requests leave behind, done in slices; what a process does not finish, the next one does. */
export interface BackgroundWork {
  /** Starts, with what an earlier process left. Nothing is done before. */
  run(): void;
  /** Call it after committing more work. Starts in a later turn of the event loop, so the request is answered first. */
  wakeSoon(): void;
  /** True from `stop` on: no further slice starts. */
  isStopped(): boolean;
  /** Resolves when no work is left, or at once while nothing is done anyway. */
  settled(): Promise<void>;
  /** Stops after the slice in progress. */
  stop(): Promise<void>;
}

export interface BackgroundParts {
  hasWork(): boolean;
  /** Works until nothing is left, or until it is stopped. */
  drain(): Promise<void>;
  /** Called for an error thrown by `drain`, which is tried again after `retryMs`. */
  onFailure(error: unknown): void;
  retryMs: number;
}

/** A pause is a multiple of the slice before it, so that requests are served as fast as on a host without such work. */
const MIN_PAUSE_MS = 2;
const PAUSE_FACTOR = 2;
const MAX_PAUSE_MS = 50;

/** Pauses after a slice that took so many milliseconds. */
export const pauseAfter = (tookMs: number): Promise<void> =>
  Bun.sleep(Math.min(Math.max(MIN_PAUSE_MS, PAUSE_FACTOR * tookMs), MAX_PAUSE_MS));

export function createBackgroundWork({ hasWork, drain, onFailure, retryMs }: BackgroundParts): BackgroundWork {
  let running = false;
  let stopped = false;
  let work: Promise<void> | null = null;
  let retry: ReturnType<typeof setTimeout> | undefined;
  /** Set from a failure until the work is tried again. */
  let pause: PromiseWithResolvers<void> | null = null;

  function endPause(): void {
    clearTimeout(retry);
    pause?.resolve();
    pause = null;
  }

  function wake(): void {
    if (stopped || !running || work !== null) return;
    endPause();
    work = drain()
      .catch((error: unknown) => {
        if (stopped) return;
        onFailure(error);
        pause = Promise.withResolvers();
        retry = setTimeout(wake, retryMs);
        retry.unref();
      })
      .finally(() => {
        work = null;
      });
  }

  return {
    run() {
      running = true;
      wake();
    },
    wakeSoon: () => void setTimeout(wake, 0).unref(),
    isStopped: () => stopped,
    async settled() {
      while (!stopped && running && (work !== null || hasWork())) {
        if (pause === null) wake();
        await (work ?? pause?.promise);
      }
    },
    async stop() {
      stopped = true;
      endPause();
      await work;
    },
  };
}
