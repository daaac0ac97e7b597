import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";

const LOOK_EVERY_MS = 1_000;
const RECHECK_EVERY_NS = 10_000_000_000n;

export interface WatchingParts {
  clock: Clock;
  log: Log;
  /** Looks again at the claims whose time has come. */
  retryClaims(stop: AbortSignal): Promise<void>;
  /** Looks again at what is credited and not final. */
  recheck(stop: AbortSignal): Promise<void>;
}

export interface Watching {
  /** One look: at the claims that are due, and every ten seconds at the credited payments. */
  tick(): Promise<void>;
  /** Does so every second from now on. */
  run(): void;
  /** Ends that; resolves when the look that was under way has ended. */
  stop(): Promise<void>;
}

/** What becomes of payments when nobody asks: claims that can be credited at last, transfers that are final or gone. */
export function createWatching({ clock, log, retryClaims, recheck }: WatchingParts): Watching {
  const stopping = new AbortController();
  let lastRecheckNs = clock.monotonicNs();
  let timer: Timer | undefined;
  let ticking: Promise<void> = Promise.resolve();

  async function tick(): Promise<void> {
    const works = [retryClaims(stopping.signal)];
    const nowNs = clock.monotonicNs();
    if (nowNs - lastRecheckNs >= RECHECK_EVERY_NS) {
      lastRecheckNs = nowNs;
      works.push(recheck(stopping.signal));
    }
    const failures = (await Promise.allSettled(works)).filter(({ status }) => status === "rejected");
    for (const { reason: err } of failures as PromiseRejectedResult[]) {
      log.error({ err }, "payments could not be looked at; it is tried again");
    }
  }

  function arm(): void {
    if (stopping.signal.aborted) return;
    timer = setTimeout(() => {
      ticking = tick()
        .catch((err) => log.error({ err }, "payments could not be looked at; it is tried again"))
        .finally(arm);
    }, LOOK_EVERY_MS);
    timer.unref();
  }

  return {
    tick,
    run: arm,
    async stop() {
      stopping.abort();
      clearTimeout(timer);
      await ticking;
    },
  };
}
