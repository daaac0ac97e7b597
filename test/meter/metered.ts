import { expect } from "bun:test";
import { createInstances, type Instances } from "../../src/instances/instances.ts";
import { findImbalance } from "../../src/ledger/imbalance.ts";
import { createLedger, type Ledger } from "../../src/ledger/ledger.ts";
import type { Caller } from "../../src/limits/caller.ts";
import type { Terms } from "../../src/meter/funds.ts";
import { createMeter, type Meter } from "../../src/meter/meter.ts";
import type { RunwayWarning, StopReason } from "../../src/meter/runway.ts";
import type { Store } from "../../src/storage/store.ts";
import { type HandClock, handClock } from "../lib/hand-clock.ts";
import { ampleQuotas } from "../support/quotas.ts";
import { openGround } from "../support/route-harness.ts";

export const HOURLY = 30_000n;
/** The morning of the 15th, so that no day, month or hour ends by accident. */
export const MORNING = Date.UTC(2026, 10, 15, 9, 30);

/** Instances on a meter, on a real database, with a clock moved by hand. */
export interface Metered extends AsyncDisposable {
  store: Store;
  clock: HandClock;
  ledger: Ledger;
  readonly meter: Meter;
  readonly instances: Instances;
  /** What was reported to the accounts, in order. */
  told: ({ accountId: string; stopped: StopReason } | ({ accountId: string } & RunwayWarning))[];
  account(credit: bigint): Caller;
  setTerms(caller: Caller, terms: Partial<Terms>): void;
  /** A new instance, running. */
  run(caller: Caller): string;
  start(instanceId: string): void;
  stop(instanceId: string): void;
  remove(instanceId: string): void;
  /** The process dies and another one starts: what was not committed is lost. */
  crash(pricePerHour?: bigint): void;
}

export function openMetered(pricePerHour = HOURLY, startMs = MORNING): Metered {
  const clock = handClock(startMs);
  const ground = openGround(clock);
  const { store } = ground;
  const ledger = createLedger(store, clock);
  const terms = new Map<string, Terms>();
  const told: Metered["told"] = [];
  const nothing = () => {};

  function begin(price: bigint): { meter: Meter; instances: Instances } {
    const meter = createMeter({
      store,
      clock,
      ledger,
      pricePerHour: price,
      termsOf: (accountId) => terms.get(accountId) ?? { monthlyLimit: null, suspended: false },
    });
    const instances = createInstances({
      store,
      clock,
      requireLaunch: async () => {},
      meter,
      createFolder: nothing,
      quotas: ampleQuotas(store),
      removals: { add: nothing },
    });
    meter.listen({
      exhausted: (accountId, stopped) => void told.push({ accountId, stopped }),
      runwayShort: (accountId, warning) => void told.push({ accountId, ...warning }),
    });
    meter.resume(instances.allRunning());
    return { meter, instances };
  }

  let current = begin(pricePerHour);
  const found = (instanceId: string) => {
    const instance = current.instances.find(instanceId);
    if (!instance) throw new Error(`there is no instance ${instanceId}`);
    return instance;
  };

  return {
    store,
    clock,
    ledger,
    get meter() {
      return current.meter;
    },
    get instances() {
      return current.instances;
    },
    told,
    account(credit) {
      const caller = ground.account();
      ledger.open(caller.accountId, credit, "invite");
      return caller;
    },
    setTerms: ({ accountId }, { monthlyLimit = null, suspended = false }) =>
      void terms.set(accountId, { monthlyLimit, suspended }),
    run: (caller) => current.instances.create(caller, "one").instanceId,
    start: (instanceId) => void current.instances.start(found(instanceId)),
    stop: (instanceId) => void current.instances.stop(found(instanceId)),
    remove: (instanceId) => current.instances.remove(found(instanceId)),
    crash(price = pricePerHour) {
      current = begin(price);
    },
    [Symbol.asyncDispose]: () => ground[Symbol.asyncDispose](),
  };
}

/** Every rule of the books holds. */
export function checkBooks({ store }: Pick<Metered, "store">): void {
  expect(findImbalance(store)).toBeNull();
}
