import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import type { Caller } from "../../src/limits/caller.ts";
import { DAY, SECOND } from "../lib/hand-clock.ts";
import { checkBooks, HOURLY, type Metered, MORNING, openMetered } from "./metered.ts";

const RUNS = 20_000;
/** One micro-USDC, in the unit that accrual counts in. */
const MICRO = 3_600_000_000_000n;

let metered: Metered;
beforeAll(() => {
  metered = openMetered();
});
afterAll(() => metered[Symbol.asyncDispose]());

type Act =
  | { act: "wait" | "step"; ms: number }
  | { act: "settle" | "run" | "crash" }
  | { act: "start" | "stop" | "remove"; at: number }
  | { act: "credit"; amount: bigint }
  | { act: "limit"; limit: bigint | null }
  | { act: "suspend"; suspended: boolean }
  | { act: "undo"; acts: Act[] };

const waitMs = fc.oneof(
  fc.integer({ min: 0, max: 10 * SECOND }),
  fc.integer({ min: 0, max: 2 * DAY }),
  fc.double({ min: 0, max: 1, noNaN: true }),
);
const wait: fc.Arbitrary<Act> = fc.record({ act: fc.constant("wait"), ms: waitMs });
const change: fc.Arbitrary<Act> = fc.record({
  act: fc.constantFrom("start", "stop", "stop", "remove"),
  at: fc.nat({ max: 2 }),
});
const settle: fc.Arbitrary<Act> = fc.record({ act: fc.constantFrom("settle", "settle", "run") });
const step: fc.Arbitrary<Act> = fc.record({
  act: fc.constant("step"),
  ms: fc.integer({ min: -60 * DAY, max: 60 * DAY }),
});
const crash: fc.Arbitrary<Act> = fc.record({ act: fc.constant("crash") });
const undo = (some: fc.Arbitrary<Act>): fc.Arbitrary<Act> =>
  fc.record({ act: fc.constant("undo"), acts: fc.array(some, { minLength: 1, maxLength: 4 }) });
const means: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ act: fc.constant("credit" as const), amount: fc.bigInt({ min: 1n, max: 100_000n }) }),
  fc.record({ act: fc.constant("limit" as const), limit: fc.option(fc.bigInt({ min: 0n, max: 200_000n })) }),
  fc.record({ act: fc.constant("suspend" as const), suspended: fc.boolean() }),
);

/**
 * An instance as docs/contract/billing.md, Meter, has it, in exact numbers: nanoseconds × price, committed and since
 * the last reading.
 */
interface Expected {
  running: boolean;
  read: bigint;
  unread: bigint;
}
type Model = Map<string, Expected>;
const copyOf = (model: Model): Model => new Map([...model].map(([id, expected]) => [id, { ...expected }]));

function read(expected: Expected): void {
  expected.read += expected.unread;
  expected.unread = 0n;
}

class Undone extends Error {}

/** Runs `work`, then undoes everything, in the database and in memory. */
function takeBack(work: () => void): void {
  try {
    metered.store.transaction(() => {
      work();
      throw new Undone();
    });
  } catch (error) {
    if (!(error instanceof Undone)) throw error;
  }
}

/** Performs one action, on the server and on the model of it. */
function play(payer: Caller, model: Model, act: Act, limits: { limit: bigint | null; suspended: boolean }): void {
  const { clock, ledger, meter } = metered;
  const { accountId } = payer;
  const timeOf = <T>(work: () => T): void => {
    const before = clock.monotonicNs();
    work();
    const costs = (clock.monotonicNs() - before) * HOURLY;
    for (const expected of model.values()) if (expected.running) expected.unread += costs;
  };
  const one = (at: number): [string, Expected] | undefined => [...model][at % Math.max(1, model.size)];
  const readAll = () => [...model.values()].filter(({ running }) => running).forEach(read);
  switch (act.act) {
    case "wait":
      timeOf(() => clock.advance(act.ms));
      return;
    case "step":
      clock.step(act.ms);
      return;
    case "settle":
      meter.settle(accountId);
      readAll();
      return;
    case "run":
      if (model.size < 3) model.set(metered.run(payer), { running: true, read: 0n, unread: 0n });
      return;
    case "crash":
      metered.crash();
      for (const expected of model.values()) expected.unread = 0n;
      return;
    case "credit":
      ledger.post({ type: "credit", accountId, amount: act.amount, against: "grants", note: "more" });
      return;
    case "limit":
      limits.limit = act.limit;
      metered.setTerms(payer, { monthlyLimit: limits.limit, suspended: limits.suspended });
      meter.limitChanged(accountId);
      readAll();
      return;
    case "suspend":
      limits.suspended = act.suspended;
      metered.setTerms(payer, { monthlyLimit: limits.limit, suspended: limits.suspended });
      return;
    case "undo": {
      const before = { ...limits };
      const undone = copyOf(model);
      timeOf(() =>
        takeBack(() => {
          for (const inner of act.acts) play(payer, undone, inner, limits);
        }),
      );
      Object.assign(limits, before);
      metered.setTerms(payer, { monthlyLimit: limits.limit, suspended: limits.suspended });
      return;
    }
    default: {
      const [instanceId, expected] = one(act.at) ?? [];
      if (instanceId === undefined || expected === undefined) return;
      metered[act.act](instanceId);
      if (act.act === "start" && expected.running) return;
      read(expected);
      expected.running = act.act === "start";
      if (act.act === "remove") model.delete(instanceId);
    }
  }
}

/** Plays each run on the same open database, and undoes it. */
function property(
  acts: fc.Arbitrary<Act>,
  credit: bigint,
  check: (payer: Caller, model: Model, act: Act) => void,
): void {
  let number = 0;
  fc.assert(
    fc.property(fc.array(acts, { minLength: 2, maxLength: 9 }), (some) => {
      metered.clock.step(MORNING - metered.clock.now());
      takeBack(() => {
        const payer = metered.account(credit);
        const model: Model = new Map();
        const limits = { limit: null, suspended: false };
        for (const act of [{ act: "run" } as const, ...some]) {
          play(payer, model, act, limits);
          check(payer, model, act);
        }
        checkBooks(metered);
      });
      number++;
      expect(metered.meter.accountIds()).toEqual([]);
    }),
    { numRuns: RUNS },
  );
  expect(number).toBe(RUNS);
}

const costOf = ({ read, unread }: Expected): bigint => (read + unread) / MICRO;

test("whatever happens, an instance has cost the floor of its uptime × price, at every moment", () => {
  const acts = fc.oneof(
    { weight: 6, arbitrary: wait },
    { weight: 4, arbitrary: change },
    { weight: 3, arbitrary: settle },
    { weight: 2, arbitrary: step },
    { weight: 1, arbitrary: undo(fc.oneof(wait, change, settle, step)) },
    { weight: 1, arbitrary: crash },
  );
  property(acts, 10n ** 12n, ({ accountId }, model) => {
    for (const [instanceId, expected] of model) expect(metered.meter.costOf(instanceId)).toBe(costOf(expected));
    const running = [...model.values()].filter((expected) => expected.running).length;
    expect(metered.meter.runningInstances(accountId)).toBe(running);
  });
});

test("however it ends, nothing is billed beyond the uptime, the balance or the limit, and what is left may run", () => {
  const acts = fc.oneof(
    { weight: 6, arbitrary: wait },
    { weight: 3, arbitrary: change },
    { weight: 4, arbitrary: settle },
    { weight: 2, arbitrary: means },
    { weight: 1, arbitrary: undo(fc.oneof(wait, change, settle, means)) },
  );
  property(acts, 50_000n, ({ accountId }, model, { act }) => {
    const { meter, instances } = metered;
    for (const [instanceId, expected] of model) {
      const instance = instances.find(instanceId);
      const isCounted = meter.unread(instanceId) !== undefined;
      expect(isCounted).toBe(instance?.status === "running");
      if (expected.running && !isCounted) {
        expect(["settle", "limit"]).toContain(act);
        const { statusReason } = instance ?? {};
        expect(["insufficient_balance", "monthly_limit", "suspended"]).toContain(statusReason ?? "");
        if (statusReason === "insufficient_balance") expect(meter.balanceOf(accountId)).toBe(0n);
        if (statusReason === "monthly_limit") expect(() => meter.requireUnderLimit(accountId)).toThrow();
        expected.running = false;
        read(expected);
      }
      expect(meter.costOf(instanceId) <= costOf(expected)).toBe(true);
    }
    if (act === "settle" && meter.runningInstances(accountId) > 0) {
      expect(meter.balanceOf(accountId) > 0n).toBe(true);
      meter.requireUnderLimit(accountId);
    }
  });
});
