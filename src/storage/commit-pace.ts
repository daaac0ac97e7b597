export interface CommitPace {
  /** How long the next commit should wait; 0 for not at all. Milliseconds. */
  delayMs(): number;
  /** Notes how long one has held the thread. */
  spent(ms: number): void;
}

/** Of the thread's time, at most, over more than a moment. */
const SHARE = 0.5;
/** What a quiet time saves up. */
const SAVED_MS = 25;
const LONGEST_DELAY_MS = 20;

/**
 * A commit waits for the disk, and with it everybody whose request is on this thread. However many writes come, commits
 * take no more than half of its time: beyond that they wait a little, and more writes share one.
 */
export function createCommitPace(now: () => number = () => performance.now()): CommitPace {
  let saved = SAVED_MS;
  let at = now();

  function catchUp(): void {
    const time = now();
    saved = Math.min(SAVED_MS, saved + (time - at) * SHARE);
    at = time;
  }

  return {
    delayMs() {
      catchUp();
      return saved > 0 ? 0 : Math.min(LONGEST_DELAY_MS, -saved / SHARE);
    },
    spent(ms) {
      catchUp();
      // The time it took has itself brought its share.
      saved -= ms;
    },
  };
}
