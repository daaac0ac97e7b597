export interface Windows {
  /** Counts one for `who`. 0 when it was within the limit; else it is not counted, and the seconds until the next one is. */
  count(who: string): number;
  /** The seconds until the next one would be within the limit; 0 for now. Counts nothing. */
  wait(who: string): number;
}

const MAX_REMEMBERED = 100_000;

interface Window {
  endsAt: number;
  counted: number;
}

/**
 * At most `most` in each window of so many seconds, which begins with the first: exact to count by hand, as limits by the
 * minute are. `now` gives seconds of a clock that never steps.
 */
export function createWindows(
  now: () => number,
  { seconds, most }: { seconds: number; most: number },
  maxRemembered = MAX_REMEMBERED,
): Windows {
  /** In the order in which they began, which is the order in which they end. */
  const windows = new Map<string, Window>();

  function forgetEnded(): void {
    const at = now();
    for (const [who, { endsAt }] of windows) {
      if (endsAt > at && windows.size < maxRemembered) return;
      windows.delete(who);
    }
  }

  function current(who: string): Window | undefined {
    const window = windows.get(who);
    return window && window.endsAt > now() ? window : undefined;
  }

  const waitOf = (window: Window | undefined): number =>
    window === undefined || window.counted < most ? 0 : window.endsAt - now();

  return {
    count(who) {
      const window = current(who);
      if (window === undefined) {
        forgetEnded();
        windows.delete(who);
        windows.set(who, { endsAt: now() + seconds, counted: 1 });
        return 0;
      }
      const wait = waitOf(window);
      if (wait === 0) window.counted++;
      return wait;
    },
    wait: (who) => waitOf(current(who)),
  };
}
