/** What requests leave to be done behind them, one slice after the other, now and by the process that comes next. */
export interface BackgroundWork {
  /** Begins with what an earlier process left; before, nothing is done. */
  run(): void;
  /** There is more of it, once the transaction that says so has committed. Not in the turn of the request. */
  wakeSoon(): void;
  /** True from `stop` on: no further slice begins. */
  isStopped(): boolean;
  /** Once nothing is left. */
  settled(): Promise<void>;
  /** Ends after the slice in progress. */
  stop(): Promise<void>;
}

export interface BackgroundParts {
  isLeft(): boolean;
  /** Does all of it, until none is left or it is stopped. */
  workOff(): Promise<void>;
  /** It is tried again after `retryMs`. */
  onFailure(error: unknown): void;
  retryMs: number;
}

/** At least so long, and so many times as long as the slice: a host with much to do behind serves as well as any. */
const PAUSE_MS = 2;
const PAUSE_SHARE = 2;
const LONGEST_PAUSE_MS = 50;

/** A pause behind a slice that took so long (ms). */
export const rest = (tookMs: number): Promise<void> =>
  Bun.sleep(Math.min(Math.max(PAUSE_MS, PAUSE_SHARE * tookMs), LONGEST_PAUSE_MS));

export function createBackgroundWork({ isLeft, workOff, onFailure, retryMs }: BackgroundParts): BackgroundWork {
  let running = false;
  let stopped = false;
  let work: Promise<void> | null = null;
  let retry: ReturnType<typeof setTimeout> | undefined;

  function wake(): void {
    if (stopped || !running || work !== null) return;
    work = workOff()
      .catch((error: unknown) => {
        if (stopped) return;
        onFailure(error);
        clearTimeout(retry);
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
      while (!stopped && isLeft()) {
        wake();
        await (work ?? Promise.resolve());
      }
    },
    async stop() {
      stopped = true;
      clearTimeout(retry);
      await work;
    },
  };
}
