import { expect, test } from "bun:test";
import fc from "fast-check";
import { createLedger, type Entry, type Ledger } from "../../src/ledger/ledger.ts";
import { systemClock } from "../../src/lib/clock.ts";
import type { Store } from "../../src/storage/store.ts";
import { openGround } from "../support/route-harness.ts";

const sumOf = (store: Store, where: string) =>
  BigInt(
    store.sqlite.query<{ sum: number | null }, []>(`SELECT sum(amount) AS sum FROM postings ${where}`).get()?.sum ?? 0,
  );

const balanceOf = (ledger: Ledger, accountId: string) => ledger.accountBalance(accountId).balance;

/** What the ledger itself guarantees; the other rules of the books (findImbalance) need payments and meters too. */
function checkLedger(store: Store, ledger: Ledger, accountIds: string[]): void {
  const uneven = "SELECT entry_id FROM postings GROUP BY entry_id HAVING sum(amount) <> 0 OR count(*) < 2";
  expect(store.sqlite.query(uneven).all()).toEqual([]);
  for (const accountId of accountIds) {
    const cached = balanceOf(ledger, accountId);
    expect(cached).toBe(sumOf(store, `WHERE ledger_account = 'customer:${accountId}'`));
    expect(cached >= 0n).toBe(true);
  }
}

test("an account opens with its credit, posted on both sides", async () => {
  await using ground = openGround();
  const ledger = createLedger(ground.store, systemClock);
  const { accountId } = ground.account();
  ledger.open(accountId, 10_000_000n, "invite");
  expect(balanceOf(ledger, accountId)).toBe(10_000_000n);
  expect(sumOf(ground.store, "WHERE ledger_account = 'grants'")).toBe(-10_000_000n);
  checkLedger(ground.store, ledger, [accountId]);
});

test("an account that opens with nothing has a balance of zero and no entry", async () => {
  await using ground = openGround();
  const ledger = createLedger(ground.store, systemClock);
  const { accountId } = ground.account();
  ledger.open(accountId, 0n, "invite");
  expect(balanceOf(ledger, accountId)).toBe(0n);
  expect(ground.store.sqlite.query("SELECT * FROM journal_entries").all()).toEqual([]);
});

test("a credit above the exact maximum is refused and changes nothing; payments may exceed it", async () => {
  await using ground = openGround();
  const ledger = createLedger(ground.store, systemClock);
  const { accountId } = ground.account();
  const most = 999_999_999_999_999n;
  ledger.open(accountId, most - 1n, "invite");
  const credit = (amount: bigint) =>
    ledger.post({ type: "credit", accountId, amount, against: "grants", note: "more" });
  expect(() => credit(2n)).toThrow("an account holds at most 999999999.999999 USDC");
  credit(1n);
  ledger.post({ type: "top_up", accountId, amount: 1n, against: "clearing:base" });
  expect(balanceOf(ledger, accountId)).toBe(most + 1n);
  checkLedger(ground.store, ledger, [accountId]);
});

test("an entry that would take more than the balance changes nothing", async () => {
  await using ground = openGround();
  const ledger = createLedger(ground.store, systemClock);
  const { accountId } = ground.account();
  ledger.open(accountId, 5n, "invite");
  expect(() =>
    ledger.post({
      type: "usage",
      usage: { instanceId: "inst_1", hour: 1 },
      accountId,
      amount: -6n,
      against: "revenue",
    }),
  ).toThrow();
  expect(balanceOf(ledger, accountId)).toBe(5n);
  ledger.post({ type: "usage", usage: { instanceId: "inst_1", hour: 1 }, accountId, amount: -5n, against: "revenue" });
  expect(balanceOf(ledger, accountId)).toBe(0n);
  checkLedger(ground.store, ledger, [accountId]);
});

test("an account without a balance cannot be posted to", async () => {
  await using ground = openGround();
  const ledger = createLedger(ground.store, systemClock);
  const { accountId } = ground.account();
  expect(() => ledger.post({ type: "credit", accountId, amount: 5n, against: "grants" })).toThrow();
  expect(ground.store.sqlite.query("SELECT * FROM postings").all()).toEqual([]);
});

test("whatever is posted, entries sum to zero, cached balances equal their sums, and none is negative", async () => {
  await using ground = openGround();
  const { store } = ground;
  const ledger = createLedger(store, systemClock);
  const people = [ground.account().accountId, ground.account().accountId];
  for (const accountId of people) ledger.open(accountId, 1_000n, "invite");
  const entry: fc.Arbitrary<Entry> = fc.record({
    type: fc.constantFrom("top_up", "credit", "reversal"),
    accountId: fc.constantFrom(...people),
    amount: fc.bigInt({ min: -800n, max: 800n }),
    against: fc.constantFrom("revenue", "grants", "clearing:base"),
  });
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 8 }), (entries) => {
      store.sqlite.run("BEGIN");
      for (const one of entries) {
        const before = balanceOf(ledger, one.accountId);
        const allowed = one.amount !== 0n && before + one.amount >= 0n;
        if (allowed) ledger.post(one);
        else expect(() => ledger.post(one)).toThrow();
        expect(balanceOf(ledger, one.accountId)).toBe(allowed ? before + one.amount : before);
      }
      checkLedger(store, ledger, people);
      store.sqlite.run("ROLLBACK");
    }),
    { numRuns: 20_000 },
  );
});
