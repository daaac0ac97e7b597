import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { createLedger, type Ledger } from "../../src/ledger/ledger.ts";
import {
  decodeCursor,
  encodeCursor,
  readStatement,
  type StatementCursor,
  type Transaction,
} from "../../src/ledger/statement.ts";
import type { DayUsage } from "../../src/meter/queries.ts";
import { hasOwned, readUsage, readUsageOf } from "../../src/meter/usage.ts";
import { plansOf } from "../support/query-plans.ts";
import { type Ground, openGround } from "../support/route-harness.ts";

let ground: Ground;
let ledger: Ledger;
beforeAll(() => {
  ground = openGround();
  ledger = createLedger(ground.store, ground.clock);
});
afterAll(() => ground[Symbol.asyncDispose]());

type Step =
  | { kind: "credit"; amount: number }
  | { kind: "usage"; instance: number; hour: number; amount: number }
  | { kind: "reversal"; amount: number };
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant("credit" as const), amount: fc.integer({ min: 1, max: 1_000 }) }),
  fc.record({
    kind: fc.constant("usage" as const),
    instance: fc.integer({ min: 1, max: 3 }),
    hour: fc.integer({ min: 1, max: 3 }),
    amount: fc.integer({ min: 1, max: 100 }),
  }),
  fc.record({ kind: fc.constant("reversal" as const), amount: fc.integer({ min: 1, max: 500 }) }),
);

/** What an account's journal should hold, as a plain list. */
interface Posted {
  transactionId: string;
  group: string | null;
  amount: bigint;
}

/** Makes the step in the ledger and in the list, as far as the balance allows. */
function post(accountId: string, journal: Posted[], done: Step): void {
  const balance = journal.reduce((sum, { amount }) => sum + amount, 0n);
  const wanted = BigInt(done.amount);
  if (done.kind === "credit") {
    const { transactionId } = ledger.post({ type: "credit", accountId, amount: wanted, against: "grants" });
    journal.push({ transactionId, group: null, amount: wanted });
  } else if (done.kind === "usage") {
    if (balance < wanted) return;
    const usage = { instanceId: `inst_${done.instance}`, hour: done.hour };
    const entry = ledger.post({ type: "usage", accountId, amount: -wanted, against: "revenue", usage });
    journal.push({ ...entry, group: `${done.instance} ${done.hour}`, amount: -wanted });
  } else {
    const taken = wanted < balance ? wanted : balance;
    const against = [
      { ledgerAccount: "clearing:base", amount: wanted },
      { ledgerAccount: `receivable:${accountId}`, amount: taken - wanted },
    ];
    const transfer = { chainId: 8453, txHash: `0x${"ab".repeat(32)}` };
    const { transactionId } = ledger.post({ type: "reversal", accountId, amount: -taken, against, transfer });
    journal.push({ transactionId, group: null, amount: -taken });
  }
}

type Line = Pick<Transaction, "transactionId" | "amount" | "balanceAfter">;

/** The statement by its definition: each group one line at its last posting, each line with the sum of it and all older. */
function statementOf(journal: readonly Posted[]): Line[] {
  const lines: Line[] = [];
  let balanceAfter = 0n;
  for (const [at, { transactionId, group }] of journal.entries()) {
    if (group !== null && journal.slice(at + 1).some((later) => later.group === group)) continue;
    const own = group === null ? journal.slice(at, at + 1) : journal.filter((entry) => entry.group === group);
    const amount = own.reduce((sum, part) => sum + part.amount, 0n);
    balanceAfter += amount;
    lines.unshift({ transactionId, amount, balanceAfter });
  }
  return lines;
}

const line = ({ transactionId, amount, balanceAfter }: Transaction): Line => ({ transactionId, amount, balanceAfter });

test("a statement's lines, sums and pages follow its definition, whatever is posted between the pages", () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 25 }),
      fc.array(step, { maxLength: 25 }),
      fc.integer({ min: 1, max: 4 }),
      (before, between, size) =>
        ground.store.transaction(() => {
          const [{ accountId }, { accountId: other }] = [ground.account(), ground.account()];
          ledger.open(accountId, 0n, "");
          ledger.open(other, 1_000_000n, "");
          const journal: Posted[] = [];
          for (const done of before) {
            post(accountId, journal, done);
            const usage = { instanceId: "inst_other", hour: 1 };
            ledger.post({ type: "usage", accountId: other, amount: -1n, against: "revenue", usage });
          }
          const expected = statementOf(journal);
          const paged: Line[] = [];
          let from: StatementCursor | null = null;
          const later = [...between];
          do {
            const lines = readStatement(ground.store.db, accountId, from, size);
            paged.push(...lines.map(line));
            const last: Transaction | undefined = lines.at(-1);
            from = last === undefined ? null : decodeCursor(encodeCursor(last.cursor));
            for (const done of later.splice(0, 3)) if (expected.length > 0) post(accountId, journal, done);
          } while (from !== null);
          expect(paged).toEqual(expected);
          expect(readStatement(ground.store.db, accountId, null, 100).map(line)).toEqual(statementOf(journal));
          expect(statementOf(journal)[0]?.balanceAfter ?? 0n).toBe(ledger.accountBalance(accountId).balance);
        }),
    ),
    { numRuns: 1_000 },
  );
});

test("a line shows its transfer, its instance and the time of its last posting", () => {
  const { accountId } = ground.account();
  ledger.open(accountId, 0n, "");
  const transfer = { chainId: 137, txHash: `0x${"cd".repeat(32)}` };
  ledger.post({ type: "top_up", accountId, amount: 5_000n, against: "clearing:polygon", transfer });
  ledger.post({
    type: "usage",
    accountId,
    amount: -5n,
    against: "revenue",
    usage: { instanceId: "inst_1", hour: 9 },
  });
  expect(readStatement(ground.store.db, accountId, null, 10)).toMatchObject([
    { type: "usage", instanceId: "inst_1", txHash: null, chainId: null, amount: -5n, balanceAfter: 4_995n },
    { type: "top_up", instanceId: null, ...transfer, amount: 5_000n, balanceAfter: 5_000n },
  ]);
});

test("text that is not a cursor is null", () => {
  for (const text of ["", "1.2", "1.2.x", "1.2.-3", "1.2.3.4", `${"9".repeat(16)}.1.1`])
    expect(decodeCursor(text)).toBeNull();
});

const addUsage = (accountId: string, day: string, instanceId: string) =>
  ground.store.transaction(() =>
    ground.store.sqlite.run("INSERT INTO usage_days VALUES (?, ?, ?, 1000000000, 7)", [accountId, day, instanceId]),
  );

test("usage is paged newest day first, for all instances or one, deleted or not", () => {
  const { db } = ground.store;
  const [{ accountId }, { accountId: other }] = [ground.account(), ground.account()];
  const days = ["2026-01-01", "2026-01-02", "2026-01-05", "2026-02-01"];
  for (const day of days) for (const id of ["inst_a", "inst_b"]) addUsage(accountId, day, id);
  addUsage(accountId, "2026-01-03", "inst_b");
  addUsage(other, "2026-01-02", "inst_c");
  const range = { from: "2026-01-02", to: "2026-01-31" };
  const read = (size: number, instanceId: string | null) => {
    const seen: string[] = [];
    for (let after: { day: string; instanceId: string } | null = null; ; ) {
      const rows: DayUsage[] =
        instanceId === null
          ? readUsage(db, accountId, range, after, size)
          : readUsageOf(db, accountId, instanceId, range, after, size);
      seen.push(...rows.map(({ day, instanceId: id }) => `${day} ${id}`));
      after = rows.at(-1) ?? null;
      if (after === null) return seen;
    }
  };
  const all = ["2026-01-05 inst_b", "2026-01-05 inst_a", "2026-01-03 inst_b", "2026-01-02 inst_b", "2026-01-02 inst_a"];
  for (const size of [1, 2, 3, 100]) {
    expect(read(size, null)).toEqual(all);
    expect(read(size, "inst_a")).toEqual(all.filter((row) => row.endsWith("_a")));
    expect(read(size, "inst_b")).toEqual(all.filter((row) => row.endsWith("_b")));
    expect(read(size, "inst_c")).toEqual([]);
  }
  expect(hasOwned(db, accountId, "inst_a")).toBe(true);
  expect(hasOwned(db, accountId, "inst_c")).toBe(false);
  expect(hasOwned(db, other, "inst_c")).toBe(true);
});

/** Only what was looked up is read: pages in their order, and for one instance the days of its account. */
const isSlowPage = (plan: string): boolean => /^SCAN|USE TEMP B-TREE/.test(plan);
const isSlowSearch = (plan: string): boolean => /^SCAN (?!days$)/.test(plan);

test("no page reads a whole history, before and after the planner knows the tables' sizes", () => {
  const { db, sqlite } = ground.store;
  const range = { from: "2026-01-01", to: "2026-12-31" };
  const pages = () => {
    readStatement(db, "acct", null, 10);
    readStatement(db, "acct", { upTo: 9, before: 5, balance: 0n }, 10);
    readUsage(db, "acct", range, null, 10);
    readUsage(db, "acct", range, { day: "2026-01-05", instanceId: "inst" }, 10);
  };
  const searches = () => {
    readUsageOf(db, "acct", "inst", range, null, 10);
    readUsageOf(db, "acct", "inst", range, { day: "2026-01-05", instanceId: "inst" }, 10);
    hasOwned(db, "acct", "inst");
  };
  for (const known of [false, true]) {
    if (known) ground.store.transaction(() => sqlite.run("ANALYZE"));
    expect(plansOf(ground.store, pages).length).toBeGreaterThan(8);
    expect(plansOf(ground.store, pages).filter(isSlowPage)).toEqual([]);
    expect(plansOf(ground.store, searches).filter(isSlowSearch)).toEqual([]);
  }
});
