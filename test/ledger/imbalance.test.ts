import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { findImbalance } from "../../src/ledger/imbalance.ts";
import { createLedger } from "../../src/ledger/ledger.ts";
import { HOUR, handClock, MINUTE } from "../lib/hand-clock.ts";
import { openGround } from "../support/route-harness.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";

const clock = handClock(Date.UTC(2026, 10, 21, 22, 50));
const HASH = `0x${"ab".repeat(32)}`;
let server: TestServer;
let owner: Person;
/** Runs; stopped; deleted after it ran. */
const ids = { running: "", stopped: "", deleted: "" };

/** A little of everything: usage over midnight, a price that changes, top-ups, one of them reversed. */
beforeAll(async () => {
  server = await startTestServer({ ROOST_IDLE_SECONDS: "1" }, { clock });
  owner = await server.signUp();
  const made = async (name: string) => (await owner.ask("POST", "/v1/instances", { name })).body.instanceId as string;
  for (const name of ["running", "stopped", "deleted"] as const) ids[name] = await made(name);
  for (let at = 0; at < 10; at++) {
    clock.advance(13 * MINUTE + 1);
    const { status } = await owner.ask("PATCH", "/v1/auth/me", { monthlyLimit: null });
    expect(status).toBe(200);
  }
  await owner.ask("POST", `/v1/instances/${ids.stopped}/stop`);
  await owner.ask("DELETE", `/v1/instances/${ids.deleted}`);
  await server.restart();
  clock.advance(HOUR / 7);
  topUp();
  // The meter is read twice, and holds an amount that is too small for an entry.
  for (const _ of ["the first of its hour is an entry", "the second is none"]) {
    await owner.ask("PATCH", "/v1/auth/me", { monthlyLimit: null });
    clock.advance(MINUTE);
  }
});
afterAll(() => server.stop());

/** Two transfers of one transaction; the first is reversed after a part of it was spent. */
function topUp(): void {
  const { store, ledger } = server.foundation;
  const { accountId } = owner;
  const transfer = { chainId: 8453, txHash: HASH };
  store.transaction(() => {
    const credited = [1_000_001n, 2_000_002n].map((amount) =>
      ledger.post({ type: "top_up", accountId, amount, against: "clearing:base", transfer }),
    );
    for (const [at, { transactionId }] of credited.entries()) {
      store.sqlite.run(
        `INSERT INTO payments (chain_id, tx_hash, log_index, block_number, block_hash, payer, amount, account_id,
           transaction_id, status, created_at) VALUES (8453, ?, ?, 1, '0x1', '0x2', ?, ?, ?, ?, 0)`,
        [HASH, at, at === 0 ? 1_000_001 : 2_000_002, accountId, transactionId, at === 0 ? "reversed" : "credited"],
      );
    }
    const against = [
      { ledgerAccount: `receivable:${accountId}`, amount: -1n },
      { ledgerAccount: "clearing:base", amount: 1_000_001n },
    ];
    ledger.post({ type: "reversal", accountId, amount: -1_000_000n, against, transfer });
    store.sqlite.run("UPDATE balances SET owed = 1 WHERE account_id = ?", [accountId]);
  });
}

test("books that were kept by the rules have no imbalance", () => {
  const { balance, unposted, owed } = server.foundation.ledger.accountBalance(owner.accountId);
  expect({ balance: balance > 0n, unposted: unposted > 0n, owed }).toEqual({ balance: true, unposted: true, owed: 1n });
  expect(findImbalance(server.foundation.store)).toBeNull();
});

test("nothing is reported while another process posts", async () => {
  await using ground = openGround();
  const { accountId } = ground.account();
  createLedger(ground.store, ground.clock).open(accountId, 1n, "");
  const poster = Bun.spawn([process.execPath, join(import.meta.dir, "poster.ts"), ground.dataDir, accountId], {
    stdin: "ignore",
    stdout: "pipe",
  });
  try {
    await poster.stdout.getReader().read();
    const entries = ground.store.sqlite.query<{ count: number }, []>("SELECT count(*) AS count FROM journal_entries");
    const countEntries = () => entries.get()?.count ?? 0;
    const before = countEntries();
    for (let looks = 0; looks < 100 || countEntries() < before + 100; looks++) {
      expect(findImbalance(ground.store)).toBeNull();
      // The snapshot of the reads ends with the turn.
      await new Promise((resolve) => setImmediate(resolve));
    }
  } finally {
    poster.kill("SIGKILL");
    await poster.exited;
  }
});

const NOTHING_KEPT = new Error("nothing of this is kept");

/** What is found after these changes, which are rolled back. */
function foundAfter(...changes: string[]): string | null {
  const { store } = server.foundation;
  let found: string | null = null;
  try {
    store.transaction(() => {
      for (const name of [
        "journal_is_append_only_update",
        "journal_is_append_only_delete",
        "postings_are_append_only_update",
        "postings_are_append_only_delete",
      ])
        store.sqlite.run(`DROP TRIGGER ${name}`);
      store.sqlite.run("PRAGMA defer_foreign_keys = ON");
      for (const change of changes) store.sqlite.run(change);
      found = findImbalance(store);
      throw NOTHING_KEPT;
    });
  } catch (error) {
    if (error !== NOTHING_KEPT) throw error;
  }
  return found;
}

const firstOf = (type: string) => `(SELECT min(entry_id) FROM journal_entries WHERE type = '${type}')`;

describe("each impossible state is found, with its id and its amount:", () => {
  const cases: [what: string, changes: string[], says: RegExp][] = [
    [
      "a posting that was changed",
      [`UPDATE postings SET amount = amount + 5 WHERE entry_id = ${firstOf("usage")} AND ledger_account = 'revenue'`],
      /^the ledger entry \d+ does not balance: it is off by 0\.000005$/,
    ],
    [
      "an entry without postings",
      [`DELETE FROM postings WHERE entry_id = ${firstOf("credit")}`],
      /^the ledger entry 1 does not balance/,
    ],
    [
      "a cached balance that is not the sum",
      ["UPDATE balances SET balance = balance + 1"],
      /^the balance of acct_\w+ is \d+\.\d{6}, but its postings sum to \d+\.\d{6}$/,
    ],
    [
      "a balance behind an entry that is not the sum so far",
      [`UPDATE journal_entries SET balance_after = balance_after - 3 WHERE entry_id = ${firstOf("usage")}`],
      /^the ledger entry \d+ says that the balance after it was/,
    ],
    [
      "a debt that no posting tells of",
      ["UPDATE balances SET owed = 7"],
      /owing 0\.000007, but its postings say 0\.000001$/,
    ],
    [
      "metered money that no meter has",
      ["UPDATE balances SET unposted = unposted + 1"],
      /^0\.\d{6} of acct_\w+ are recorded as metered, but its meters say/,
    ],
    [
      "a meter that its days do not explain",
      ["UPDATE meters SET accrued = accrued + 2 WHERE unposted > 0"],
      /^the meter of inst_\w+ shows/,
    ],
    [
      "a month that its days do not explain",
      ["UPDATE balances SET spent = spent + 4"],
      /^acct_\w+ is recorded as having spent 0\.\d{6} in its month, but its days cost 0\.\d{6}$/,
    ],
    [
      "a meter that holds usage of an instance that is not running",
      ["UPDATE instances SET status = 'stopped'"],
      /^the meter of inst_\w+ holds 0\.\d{6}, but the instance is not running$/,
    ],
    [
      "usage of a deleted instance that was never billed",
      ["INSERT INTO usage_days SELECT account_id, '2026-11-01', 'inst_gone', 3600000000000, 9 FROM balances"],
      /^the days of inst_gone cost 0\.000009, but 0\.000000 were billed/,
    ],
    [
      "a day that cost more than its time",
      ["UPDATE usage_days SET running_ns = running_ns / 2"],
      /^inst_\w+ on 2026-11-2\d cost 0\.\d{6}, more than the 0\.\d{6} of its time at that day's price$/,
    ],
    [
      "a day that cost more than its price",
      ["UPDATE prices SET price_per_hour = price_per_hour / 2"],
      /more than the 0\.\d{6} of its time at that day's price$/,
    ],
    [
      "a payment whose top-up is of another amount",
      ["UPDATE payments SET amount = amount + 1 WHERE log_index = 1"],
      /^the payment 2 is of 2\.000003, but its top-up credits 2\.000002$/,
    ],
    [
      "two payments of one top-up",
      [
        "INSERT INTO payments SELECT 3, 1, tx_hash, 3, block_number, block_hash, payer, amount, invoice_id, account_id, transaction_id, status, told, created_at FROM payments WHERE log_index = 1",
        "UPDATE payments SET chain_id = 8453 WHERE payment_id = 3",
      ],
      /^the top-up txn_\w+ belongs to several payments, 4\.000004 together$/,
    ],
    [
      "a reversal that the payment does not know of",
      ["UPDATE payments SET status = 'credited'"],
      /^the transaction 0x(ab){32} of chain 8453 is credited 2\.000002, but paid 3\.000003$/,
    ],
    [
      "a credit whose payment is gone",
      ["DELETE FROM payments WHERE log_index = 1"],
      /^the transaction 0x(ab){32} of chain 8453 is credited 2\.000002, but paid 0\.000000$/,
    ],
  ];
  for (const [what, changes, says] of cases) {
    test(what, () => {
      expect(foundAfter(...changes)).toMatch(says);
      expect(findImbalance(server.foundation.store)).toBeNull();
    });
  }

  test("SQLite itself refuses a balance below zero", () => {
    expect(() => foundAfter("UPDATE balances SET balance = -1")).toThrow(/CHECK/);
  });
});
