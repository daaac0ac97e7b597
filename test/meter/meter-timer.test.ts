import { afterEach, beforeEach, expect, test } from "bun:test";
import { createLog } from "../../src/lib/log.ts";
import { createMeterTimer, type MeterTimer } from "../../src/meter/meter-timer.ts";
import type { Store } from "../../src/storage/store.ts";
import { HOUR, SECOND } from "../lib/hand-clock.ts";
import { checkBooks, type Metered, MORNING, openMetered } from "./metered.ts";

let metered: Metered;
let metering: MeterTimer;
const log = await createLog("silent", "json");

beforeEach(() => {
  metered = openMetered();
  metering = createMeterTimer(metered.meter, metered.store, metered.clock, log);
});
afterEach(async () => {
  await metering.stop();
  checkBooks(metered);
  await metered[Symbol.asyncDispose]();
});

const committed = (instanceId: string) =>
  metered.store.sqlite
    .query<{ accrued: number }, [string]>("SELECT accrued FROM meters WHERE instance_id = ?")
    .get(instanceId)?.accrued;

test("every account is settled every ten seconds, however many there are", async () => {
  const running = Array.from({ length: 250 }, () => metered.run(metered.account(10_000_000n)));
  metered.clock.advance(SECOND);
  await metering.tick();
  metered.clock.advance(8 * SECOND);
  await metering.tick();
  expect(new Set(running.map(committed))).toEqual(new Set([8]));
  metered.clock.advance(SECOND);
  await metering.tick();
  expect(new Set(running.map(committed))).toEqual(new Set([83]));
});

test("a step of the wall clock neither advances nor delays the next settling", async () => {
  const instanceId = metered.run(metered.account(10_000_000n));
  metered.clock.step(-30 * 24 * HOUR);
  metered.clock.advance(10 * SECOND);
  await metering.tick();
  expect(committed(instanceId)).toBe(83);
});

test("the end of an hour settles, so that usage belongs to its hour", async () => {
  const instanceId = metered.run(metered.account(10_000_000n));
  const toEnd = HOUR - (MORNING % HOUR);
  metered.clock.advance(toEnd - 5 * SECOND);
  await metering.tick();
  metered.clock.advance(5 * SECOND);
  await metering.tick();
  metered.clock.advance(HOUR - 1);
  metered.stop(instanceId);
  const posted = metered.store.sqlite
    .query(
      "SELECT hour, sum(amount) AS amount FROM journal_entries JOIN postings USING (entry_id) WHERE ledger_account = 'revenue' GROUP BY hour",
    )
    .all();
  const hour = Math.floor(MORNING / HOUR);
  expect(posted).toEqual([
    { hour, amount: 15_000 },
    { hour: hour + 1, amount: 29_999 },
  ]);
});

test("an account is settled the moment its balance ends, the others at their time", async () => {
  const rich = metered.run(metered.account(10_000_000n));
  const poor = metered.run(metered.account(10n));
  metered.clock.advance(SECOND / 2);
  await metering.tick();
  metered.clock.advance(SECOND / 2 + 199);
  await metering.tick();
  expect(metered.instances.find(poor)?.status).toBe("running");
  metered.clock.advance(1);
  await metering.tick();
  expect(metered.instances.find(poor)?.statusReason).toBe("insufficient_balance");
  expect([committed(poor), committed(rich)]).toEqual([10, 4]);
});

test("an account that cannot be settled keeps its reading for the next time and delays no other", async () => {
  const broken = metered.account(10_000_000n);
  const instanceId = metered.run(broken);
  const other = metered.run(metered.account(10_000_000n));
  metered.clock.advance(10 * SECOND);
  metered.store.sqlite.run(`CREATE TEMP TRIGGER refuse BEFORE UPDATE ON meters WHEN new.instance_id = '${instanceId}'
    BEGIN SELECT raise(ABORT, 'refused'); END`);
  await metering.tick();
  expect([committed(instanceId), committed(other)]).toEqual([0, 83]);
  expect(metered.meter.costOf(instanceId)).toBe(83n);
  metered.store.sqlite.run("DROP TRIGGER refuse");
  metered.clock.advance(10 * SECOND);
  await metering.tick();
  expect([committed(instanceId), committed(other)]).toEqual([166, 166]);
});

test("what could not be committed is retried at the next check, not ten seconds later", async () => {
  const instanceId = metered.run(metered.account(10_000_000n));
  let fails = true;
  const { commitSoon } = metered.store;
  const store: Store = {
    ...metered.store,
    commitSoon: (work, durability) => (fails ? Promise.reject(new Error("busy")) : commitSoon(work, durability)),
  };
  const hindered = createMeterTimer(metered.meter, store, metered.clock, log);
  metered.clock.advance(10 * SECOND);
  await hindered.tick().catch(() => {});
  fails = false;
  metered.clock.advance(SECOND);
  await hindered.tick();
  expect(committed(instanceId)).toBe(91);
});

test("a full disk loses no reading: what was not committed is counted the next time", async () => {
  const payers = Array.from({ length: 5 }, () => metered.account(1_000_000_000n));
  const running = payers.flatMap((payer) => Array.from({ length: 40 }, () => metered.run(payer)));
  const { store } = metered;
  const { pages } =
    store.sqlite.query<{ pages: number }, []>("SELECT page_count AS pages FROM pragma_page_count").get() ?? {};
  store.sqlite.run(`PRAGMA max_page_count = ${pages}`);
  // The journal's entries and the rows of a new day need room.
  metered.clock.advance(15 * HOUR);
  await metering.tick().catch(() => {});
  expect(running.map(committed)).not.toEqual(running.map(() => 450_000));
  expect(running.map(metered.meter.costOf)).toEqual(running.map(() => 450_000n));
  store.sqlite.run("PRAGMA max_page_count = 1000000");
  metered.clock.advance(10 * SECOND);
  await metering.tick();
  expect(running.map(committed)).toEqual(running.map(() => 450_083));
});

test("the last settling is at the stop", async () => {
  const instanceId = metered.run(metered.account(10_000_000n));
  metering.run();
  metered.clock.advance(9 * SECOND);
  await metering.stop();
  expect(committed(instanceId)).toBe(75);
  await expect(metering.stop()).resolves.toBeUndefined();
});

test("while running, it settles what is due by itself", async () => {
  const poor = metered.run(metered.account(10n));
  const { promise: stopped, resolve } = Promise.withResolvers<void>();
  metered.meter.listen({ exhausted: () => metered.store.afterCommit(resolve), runwayShort() {} });
  metering.run();
  metered.clock.advance(10 * SECOND);
  await stopped;
  expect([committed(poor), metered.instances.find(poor)?.status]).toEqual([10, "stopped"]);
});

test("while running, it checks instances that have just been started long before its next regular check", async () => {
  metering = createMeterTimer(metered.meter, metered.store, metered.clock, log, HOUR);
  metering.run();
  const poor = metered.run(metered.account(1n));
  const { promise: stopped, resolve } = Promise.withResolvers<void>();
  metered.meter.listen({ exhausted: () => metered.store.afterCommit(resolve), runwayShort() {} });
  metered.clock.advance(SECOND);
  await stopped;
  expect(metered.instances.find(poor)?.status).toBe("stopped");
});

test("a suspended account's instances stop at the next check, and nobody else is settled for it", async () => {
  const [suspended, other] = [metered.account(10_000_000n), metered.account(10_000_000n)];
  const [own, others] = [metered.run(suspended), metered.run(other)];
  metered.clock.advance(10 * SECOND);
  await metering.tick();
  metered.setTerms(suspended, { suspended: true });
  metered.clock.advance(SECOND);
  await metering.tick();
  expect(metered.instances.find(own)).toMatchObject({ status: "stopped", statusReason: "suspended" });
  expect(metered.instances.find(others)?.status).toBe("running");
  expect([committed(own), committed(others)]).toEqual([91, 83]);
});
