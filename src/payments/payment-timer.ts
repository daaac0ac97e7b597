import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";

const CHECK_EVERY_MS = 1_000;
const RECHECK_EVERY_NS = 10_000_000_000n;

export interface PaymentTimerParts {
  clock: Clock;
  log: Log;
  /** Checks the claims that are due. */
  retryClaims(stop: AbortSignal): Promise<void>;
  /** Rechecks payments that are credited but not final. */
  recheck(stop: AbortSignal): Promise<void>;
  /** A second where absent. */
  checkEveryMs?: number;
}

export interface PaymentTimer {
  /** Checks claims that are due, and every ten seconds also credited payments. */
  tick(): Promise<void>;
  /** Starts ticking every second. */
  run(): void;
  /** Stops ticking; resolves when the checks in progress have ended. */
  stop(): Promise<void>;
}

/** Background checks: credits claims that become valid, and follows credited transfers until they are final or gone. */
export function createPaymentTimer(parts: PaymentTimerParts): PaymentTimer {
  const { clock, log, retryClaims, recheck, checkEveryMs = CHECK_EVERY_MS } = parts;
  const stopping = new AbortController();
  /** Works run independently: one that hangs on a network holds up no other. */
  const inProgress = new Set<Promise<void>>();
  let look: Promise<void> | null = null;
  let lastRecheckNs = clock.monotonicNs();
  let timer: Timer | undefined;

  function begin(work: (stop: AbortSignal) => Promise<void>): Promise<void> {
    const one = work(stopping.signal)
      .catch((err) => log.error({ err }, "checking payments failed; it will be retried"))
      .finally(() => inProgress.delete(one));
    inProgress.add(one);
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
      timer = setInterval(() => void tick(), checkEveryMs);
      timer.unref();
    },
    async stop() {
      stopping.abort();
      clearInterval(timer);
      await Promise.all(inProgress);
    },
  };
}
