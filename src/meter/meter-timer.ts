import { hourOf, msToNextHour } from "../lib/calendar.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Store } from "../storage/store.ts";
import type { Meter } from "./meter.ts";

const ALL_EVERY_NS = 10_000_000_000n;
const CHECK_EVERY_MS = 1_000;
const ACCOUNTS_PER_COMMIT = 100;

export interface MeterTimer {
  /** Settles every account that is due or suspended, or all of them after ten seconds or at the end of the hour. */
  tick(): Promise<void>;
  /** Starts ticking by itself. */
  run(): void;
  /** Stops ticking, and settles every account for the last time. */
  stop(): Promise<void>;
}

/** Reads the meters every ten seconds, and when an account runs out of funds or is suspended (docs/contract/billing.md, Meter). */
export function createMeterTimer(
  meter: Meter,
  store: Store,
  clock: Clock,
  log: Log,
  checkEveryMs: number = CHECK_EVERY_MS,
): MeterTimer {
  let lastAllNs = clock.monotonicNs();
  let lastHour = hourOf(clock.now());
  let timer: Timer | undefined;
  /** The time of the next check, by `performance.now()`; null before `run` and during a check. */
  let nextCheckMs: number | null = null;
  let stopped = false;
  let ticking: Promise<void> = Promise.resolve();

  async function settle(accountIds: readonly string[]): Promise<void> {
    for (let at = 0; at < accountIds.length; at += ACCOUNTS_PER_COMMIT) {
      const some = accountIds.slice(at, at + ACCOUNTS_PER_COMMIT);
      // Requests are served between two commits.
      await store.commitSoon(() => some.forEach(settleOne), "full");
    }
  }

  /** An account that cannot be settled keeps its reading for the next time, and holds up no other. */
  function settleOne(accountId: string): void {
    try {
      meter.settle(accountId);
    } catch (err) {
      // If SQLite has rolled back the whole commit, as on a full disk, the other accounts fail with it.
      if (!store.sqlite.inTransaction) throw err;
      log.error({ err, accountId }, "settling an account failed; it will be retried");
    }
  }

  async function tick(): Promise<void> {
    const nowNs = clock.monotonicNs();
    const hour = hourOf(clock.now());
    const all = nowNs - lastAllNs >= ALL_EVERY_NS || hour !== lastHour;
    const isDue = (accountId: string): boolean => {
      const dueNs = meter.dueNs(accountId);
      // Suspended by another process, which cannot stop its instances.
      return (dueNs !== null && dueNs <= nowNs) || meter.isSuspended(accountId);
    };
    await settle(all ? meter.accountIds() : meter.accountIds().filter(isDue));
    // Only after success, so that a failure is retried within a second, not ten seconds later.
    if (!all) return;
    lastAllNs = nowNs;
    lastHour = hour;
  }

  /** The time until an account is due; at most a second, since another process may have changed a balance. */
  function delayMs(): number {
    const nowNs = clock.monotonicNs();
    const dueTimes = meter.accountIds().map((accountId) => meter.dueNs(accountId));
    const soonest = dueTimes.reduce<number>(
      (least, dueNs) => (dueNs === null ? least : Math.min(least, Number(dueNs - nowNs) / 1e6)),
      msToNextHour(clock.now()),
    );
    return Math.min(checkEveryMs, Math.max(1, Math.ceil(soonest)));
  }

  function arm(afterMs: number): void {
    if (stopped) return;
    nextCheckMs = performance.now() + afterMs;
    timer = setTimeout(() => {
      nextCheckMs = null;
      ticking = tick().then(
        () => arm(delayMs()),
        (err) => {
          log.error({ err }, "metering failed; it will be retried");
          arm(checkEveryMs);
        },
      );
    }, afterMs);
    timer.unref();
  }

  meter.listen({
    exhausted() {},
    runwayShort() {},
    dueSoon(inNs) {
      const afterMs = Number(inNs) / 1e6;
      if (nextCheckMs === null || performance.now() + afterMs >= nextCheckMs) return;
      clearTimeout(timer);
      arm(afterMs);
    },
  });

  return {
    tick,
    run: () => arm(delayMs()),
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await ticking;
      // A failure costs the host the last readings, but must not stop the shutdown.
      await settle(meter.accountIds()).catch((err) => log.error({ err }, "the last readings could not be committed"));
    },
  };
}
