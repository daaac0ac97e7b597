import { expect, test } from "bun:test";
import { pruneUsage } from "../../src/meter/old-usage.ts";
import { hasOwned } from "../../src/meter/usage.ts";
import { DAY, HOUR } from "../lib/hand-clock.ts";
import { checkBooks, openMetered } from "./metered.ts";

test("days of usage that are no longer kept leave the books balanced, and an instance its owner's", async () => {
  await using metered = openMetered();
  const { store, clock, meter } = metered;
  const payers = Array.from({ length: 3 }, () => metered.account(90_000_000n));
  const instances = payers.map((payer) => metered.run(payer));
  for (let day = 0; day < 70; day++) {
    clock.advance(DAY);
    for (const { accountId } of payers) meter.settle(accountId);
  }
  const [first = ""] = instances;
  metered.stop(first);
  metered.remove(first);
  const days = () => store.sqlite.query("SELECT DISTINCT day FROM usage_days ORDER BY day").values().flat();
  expect(days()).toHaveLength(71);

  const prune = pruneUsage(store.db);
  const slices: number[] = [];
  for (let after: number | string | null = null; ; ) {
    const { removed, next } = store.transaction(() => prune(clock.now() - 62 * DAY - HOUR, after, 5));
    slices.push(removed);
    if (next === null) break;
    after = next;
  }
  expect(Math.max(...slices)).toBeLessThanOrEqual(5);
  expect(days()).toHaveLength(63);
  checkBooks(metered);

  store.transaction(() => prune(clock.now() + 2 * DAY, null, 1_000));
  expect(days()).toEqual([]);
  const [payer, other] = payers;
  expect(hasOwned(store.db, payer?.accountId ?? "", first)).toBe(true);
  expect(hasOwned(store.db, other?.accountId ?? "", first)).toBe(false);
  expect(store.sqlite.query("SELECT count(*) FROM usage_before").values()).toEqual([[3]]);
});

test("the books of an account that has run nothing since then stay balanced when its days are removed", async () => {
  await using metered = openMetered();
  const { store, clock } = metered;
  const payer = metered.account(90_000_000n);
  const instance = metered.run(payer);
  clock.advance(3 * HOUR);
  metered.stop(instance);
  checkBooks(metered);

  clock.advance(100 * DAY);
  const prune = pruneUsage(store.db);
  store.transaction(() => prune(clock.now() - 62 * DAY, null, 1_000));
  expect(store.sqlite.query("SELECT * FROM usage_days").all()).toEqual([]);
  checkBooks(metered);
  expect(metered.meter.standingOf(payer.accountId).spentThisMonth).toBe(0n);
});
