export interface CommitPace {
  /** How long the next commit should wait, in milliseconds; 0 for not at all. */
  delayMs(): number;
  /** Records how long a commit held the thread. */
  spend(ms: number): void;
}

/** The most of the thread's time that commits may take, on average. */
const MAX_SHARE = 0.5;
/** How much commit time an idle period saves up. */
const MAX_SAVED_MS = 25;
const MAX_DELAY_MS = 20;

/**
 * A commit blocks every request on this thread while SQLite writes (not while the disk syncs). However many durable
 * writes come, their commits take at most half of its time: beyond that they wait a little, so that more writes share one.
 */
export function createCommitPace(now: () => number = () => performance.now()): CommitPace {
  let saved = MAX_SAVED_MS;
  let at = now();

  function catchUp(): void {
    const time = now();
    saved = Math.min(MAX_SAVED_MS, saved + (time - at) * MAX_SHARE);
    at = time;
  }

  return {
    delayMs() {
      catchUp();
      return saved > 0 ? 0 : Math.min(MAX_DELAY_MS, -saved / MAX_SHARE);
    },
    spend(ms) {
      catchUp();
      // `catchUp` has already credited the time of the commit itself.
      saved -= ms;
    },
  };
}
