import { createCommitPace } from "./commit-pace.ts";

/** When what waits for a shared commit is committed. */
export interface CommitSchedule {
  /** At the end of this turn of the event loop, or a little later where commits take too much of its time. */
  soon(): void;
  /** Records how long a commit held the thread. */
  spend(ms: number): void;
  /** Until `release` nothing is committed: what was asked for comes then. */
  hold(): void;
  release(): void;
}

export function createCommitSchedule(commit: () => void): CommitSchedule {
  const pace = createCommitPace();
  let isDue = false;
  let isHeld = false;
  let isAwaited = false;

  function soon(): void {
    if (isHeld) isAwaited = true;
    if (isHeld || isDue) return;
    isDue = true;
    const delayMs = pace.delayMs();
    if (delayMs === 0) setImmediate(due);
    else setTimeout(due, delayMs);
  }

  function due(): void {
    isDue = false;
    if (isHeld) isAwaited = true;
    else commit();
  }

  return {
    soon,
    spend: pace.spend,
    hold() {
      isHeld = true;
    },
    release() {
      isHeld = false;
      if (isAwaited) soon();
      isAwaited = false;
    },
  };
}
