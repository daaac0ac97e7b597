import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { openFoundation } from "../../src/app/foundation.ts";
import type { Mined } from "../../src/chain/chain.ts";
import { type Address, NETWORKS } from "../../src/chain/networks.ts";
import { createCredits } from "../../src/payments/credits.ts";
import { matchTransfers } from "../../src/payments/match-transfers.ts";
import { paymentQueries } from "../../src/payments/payment-queries.ts";
import type { Invoice } from "../../src/payments/schema.ts";
import { handClock } from "../lib/hand-clock.ts";

const RUNS = 20_000;
const RECIPIENT: Address = "0x00000000000000000000000000000000000000A1";
const STRANGER: Address = "0x00000000000000000000000000000000000000A2";
const PROOF = { network: "base" as const, txHash: `0x${"ab".repeat(32)}` };
const { chainId, asset } = NETWORKS.base;
const AMOUNTS = [1_000_001n, 2_000_002n, 3_000_003n];

const transfer = fc.record({
  token: fc.constantFrom(asset, STRANGER),
  to: fc.constantFrom(RECIPIENT, RECIPIENT, STRANGER),
  amount: fc.constantFrom(...AMOUNTS),
  from: fc.constant(STRANGER),
});
/** Presented by somebody, at some depth; or removed by a reorganisation. */
const event = fc.oneof(
  fc.record({ kind: fc.constant("present" as const), confirmations: fc.bigInt({ min: 1n, max: 14n }) }),
  fc.record({ kind: fc.constant("reverse" as const), at: fc.nat(2) }),
);

test("whatever is presented, replayed and reversed, each log is credited once, and a replay changes nothing", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-once-"));
  const { store, ledger, audit, accounts, clock } = openFoundation({ dataDir }, handClock());
  const rows = paymentQueries(store.db);
  const nothing = () => {};
  const invoices = { pay: nothing, unpay: nothing };
  const books = createCredits({ store, clock, ledger, audit, invoices, meter: { settle: nothing } });
  const { sqlite } = store;
  // One transaction for all runs, each a savepoint of it, to spare the disk.
  sqlite.run("BEGIN IMMEDIATE");
  try {
    const owners = ["ada", "bob"].map(
      (name) => accounts.create({ email: `${name}@example.com`, name, credit: 0n, note: "" }).accountId,
    );
    // The third amount belongs to nobody.
    const open = AMOUNTS.slice(0, 2).map((amount, at): Invoice => {
      const invoice = {
        invoiceId: `inv_${at}`,
        accountId: owners[at] ?? "",
        amount,
        payTo: RECIPIENT,
        createdAt: 0,
        expiresAt: 1,
      };
      sqlite.run(
        "INSERT INTO invoices (invoice_id, account_id, amount, status, created_at, expires_at) VALUES (?, ?, ?, 'open', 0, 1)",
        [invoice.invoiceId, invoice.accountId, Number(amount)],
      );
      return { ...invoice, status: "open", heads: '{"base":"5"}', paidAt: null };
    });
    const entries = sqlite.query<{ count: number }, []>("SELECT count(*) AS count FROM journal_entries");
    const own = () => rows.ofTransaction(chainId, PROOF.txHash);

    function present(mined: Mined): number {
      const matches = matchTransfers(mined, {
        network: "base",
        recipient: RECIPIENT,
        confirmations: 10,
        invoicesOf: (amount) => open.filter((invoice) => invoice.amount === amount),
        payments: own(),
        settled: null,
      });
      const due = matches.flatMap((match) => (match.kind === "due" ? [match.due] : []));
      for (const one of due) books.credit(PROOF, mined, one, "anybody");
      return due.length;
    }

    let credits = 0;
    fc.assert(
      fc.property(
        fc.array(transfer, { minLength: 1, maxLength: 4 }),
        fc.array(event, { minLength: 1, maxLength: 6 }),
        (sent, events) => {
          const transfers = sent.map((one, logIndex) => ({ ...one, logIndex }));
          const place = { blockNumber: 9n, blockHash: "0x9", blockTimeMs: 0, finalized: false, transfers };
          sqlite.run("SAVEPOINT run");
          for (const happening of events) {
            if (happening.kind === "present") {
              const mined = { ...place, confirmations: happening.confirmations };
              credits += present(mined);
              const before = entries.get()?.count;
              expect(present(mined)).toBe(0);
              expect(entries.get()?.count).toBe(before);
            } else {
              const standing = own().filter(({ status }) => status === "credited");
              const gone = standing[happening.at];
              if (gone) books.reverse("base", gone);
            }
            const standing = own().filter(({ status }) => status === "credited");
            expect(new Set(own().map(({ logIndex }) => logIndex)).size).toBe(own().length);
            for (const accountId of owners) {
              const all = standing.filter((payment) => payment.accountId === accountId);
              expect(ledger.accountBalance(accountId).balance).toBe(all.reduce((sum, { amount }) => sum + amount, 0n));
            }
          }
          sqlite.run("ROLLBACK TO run");
          sqlite.run("RELEASE run");
        },
      ),
      { numRuns: RUNS },
    );
    expect(credits).toBeGreaterThan(RUNS / 10);
  } finally {
    sqlite.run("ROLLBACK");
    store.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
});
