import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";

const LOOK_EVERY_MS = 1_000;
const RECHECK_EVERY_NS = 10_000_000_000n;

export interface PaymentTimerParts {
  clock: Clock;
  log: Log;
  /** Looks again at the claims whose time has come. */
  retryClaims(stop: AbortSignal): Promise<void>;
  /** Looks again at what is credited and not final. */
  recheck(stop: AbortSignal): Promise<void>;
  /** A second where absent. */
  lookEveryMs?: number;
}

export interface PaymentTimer {
  /** One look: at the claims that are due, and every ten seconds at the credited payments. */
  tick(): Promise<void>;
  /** Does so every second from now on. */
  run(): void;
  /** Ends that; resolves when the looks that were under way have ended. */
  stop(): Promise<void>;
}

/** What becomes of payments when nobody asks: claims that can be credited at last, transfers that are final or gone. */
export function createPaymentTimer(parts: PaymentTimerParts): PaymentTimer {
  const { clock, log, retryClaims, recheck, lookEveryMs = LOOK_EVERY_MS } = parts;
  const stopping = new AbortController();
  /** Each ends by itself: what hangs on one network holds up nothing else. */
  const underWay = new Set<Promise<void>>();
  let look: Promise<void> | null = null;
  let lastRecheckNs = clock.monotonicNs();
  let timer: Timer | undefined;

  function begin(work: (stop: AbortSignal) => Promise<void>): Promise<void> {
    const one = work(stopping.signal)
      .catch((err) => log.error({ err }, "payments could not be looked at; it is tried again"))
      .finally(() => underWay.delete(one));
    underWay.add(one);
    return one;
  }

  async function tick(): Promise<void> {
    look ??= begin(retryClaims).finally(() => {
      look = null;
    });
    const works = [look];
    const nowNs = clock.monotonicNs();
    if (nowNs - lastRecheckNs >= RECHECK_EVERY_NS) {
      lastRecheckNs = nowNs;
      works.push(begin(recheck));
    }
    await Promise.all(works);
  }

  return {
    tick,
    run() {
      timer = setInterval(() => void tick(), lookEveryMs);
      timer.unref();
    },
    async stop() {
      stopping.abort();
      clearInterval(timer);
      await Promise.all(underWay);
    },
  };
}
