export interface FixedWindows {
  /** Counts one, or `cost`, and returns 0; or counts nothing beyond the limit and returns the seconds until the window ends. */
  count(key: string, cost?: number): number;
  /** The seconds until the next one would be counted; 0 for now. Counts nothing. */
  wait(key: string): number;
}

const MAX_WINDOWS = 100_000;

interface Window {
  endsAt: number;
  counted: number;
}

/**
 * At most `max` in each window of so many seconds, which starts with the first: a limit per minute that a caller can
 * count along with. `now` gives seconds of a monotonic clock.
 */
export function createFixedWindows(
  now: () => number,
  { seconds, max }: { seconds: number; max: number },
  maxWindows = MAX_WINDOWS,
): FixedWindows {
  /** In the order in which they end. */
  const windows = new Map<string, Window>();

  function forgetEnded(): void {
    const at = now();
    for (const [key, { endsAt }] of windows) {
      if (endsAt > at && windows.size < maxWindows) return;
      windows.delete(key);
    }
  }

  function current(key: string): Window | undefined {
    const window = windows.get(key);
    return window && window.endsAt > now() ? window : undefined;
  }

  const waitOf = (window: Window | undefined): number =>
    window === undefined || window.counted < max ? 0 : window.endsAt - now();

  return {
    count(key, cost = 1) {
      const window = current(key);
      if (window === undefined) {
        forgetEnded();
        windows.delete(key);
        windows.set(key, { endsAt: now() + seconds, counted: cost });
        return 0;
      }
      const wait = waitOf(window);
      if (wait === 0) window.counted += cost;
      return wait;
    },
    wait: (key) => waitOf(current(key)),
  };
}
