import { hourOf, msToNextHour } from "../lib/calendar.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Store } from "../storage/store.ts";
import type { Meter } from "./meter.ts";

const ALL_EVERY_NS = 10_000_000_000n;
const LOOK_EVERY_MS = 1_000;
const ACCOUNTS_A_COMMIT = 100;

export interface MeterTimer {
  /** Settles every account that is due, all of them when ten seconds have passed or the hour has ended. */
  tick(): Promise<void>;
  /** Settles what is due from now on, without being asked. */
  run(): void;
  /** Ends that, and settles every account for the last time. */
  stop(): Promise<void>;
}

/** Reads the meters in time: every ten seconds, and at the moment an account has nothing left (billing.md, Meter). */
export function createMeterTimer(
  meter: Meter,
  store: Store,
  clock: Clock,
  log: Log,
  lookEveryMs: number = LOOK_EVERY_MS,
): MeterTimer {
  let lastAllNs = clock.monotonicNs();
  let lastHour = hourOf(clock.now());
  let timer: Timer | undefined;
  /** When the next look is, by the timer's own clock; null while nothing waits: before `run` and during a look. */
  let lookAtMs: number | null = null;
  let stopped = false;
  let ticking: Promise<void> = Promise.resolve();

  async function settle(accountIds: readonly string[]): Promise<void> {
    for (let at = 0; at < accountIds.length; at += ACCOUNTS_A_COMMIT) {
      const some = accountIds.slice(at, at + ACCOUNTS_A_COMMIT);
      // A commit for each hundred accounts, and requests in between.
      await store.commitSoon(() => some.forEach(settleOne), "full");
    }
  }

  /** One account that cannot be settled keeps its reading for the next time, and holds up no other. */
  function settleOne(accountId: string): void {
    try {
      meter.settle(accountId);
    } catch (err) {
      // Where SQLite has given up the whole commit, as on a full disk, the others fall with it.
      if (!store.sqlite.inTransaction) throw err;
      log.error({ err, accountId }, "the meter could not be settled; it is tried again");
    }
  }

  async function tick(): Promise<void> {
    const nowNs = clock.monotonicNs();
    const hour = hourOf(clock.now());
    const all = nowNs - lastAllNs >= ALL_EVERY_NS || hour !== lastHour;
    const isDue = (accountId: string): boolean => {
      const dueNs = meter.dueNs(accountId);
      return dueNs !== null && dueNs <= nowNs;
    };
    await settle(all ? meter.accountIds() : meter.accountIds().filter(isDue));
    // Only now: what could not be committed is tried again within a second, not ten later.
    if (!all) return;
    lastAllNs = nowNs;
    lastHour = hour;
  }

  /** Until something is due, but not for long: an account's end may have come nearer meanwhile. */
  function delayMs(): number {
    const nowNs = clock.monotonicNs();
    const dues = meter.accountIds().map((accountId) => meter.dueNs(accountId));
    const soonest = dues.reduce<number>(
      (least, dueNs) => (dueNs === null ? least : Math.min(least, Number(dueNs - nowNs) / 1e6)),
      msToNextHour(clock.now()),
    );
    return Math.min(lookEveryMs, Math.max(1, Math.ceil(soonest)));
  }

  function arm(afterMs: number): void {
    if (stopped) return;
    lookAtMs = performance.now() + afterMs;
    timer = setTimeout(() => {
      lookAtMs = null;
      ticking = tick().then(
        () => arm(delayMs()),
        (err) => {
          log.error({ err }, "metering failed; it is tried again");
          arm(lookEveryMs);
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
      if (lookAtMs === null || performance.now() + afterMs >= lookAtMs) return;
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
      // What cannot be committed now is not billed: no reason for the rest of the stop to fail.
      await settle(meter.accountIds()).catch((err) => log.error({ err }, "the last readings could not be committed"));
    },
  };
}
