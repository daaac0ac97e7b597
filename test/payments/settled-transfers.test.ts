import { expect, test } from "bun:test";
import { type Address, NETWORKS } from "../../src/chain/networks.ts";
import { matchTransfers } from "../../src/payments/match-transfers.ts";
import type { PaymentRow } from "../../src/payments/schema.ts";

const OURS: Address = "0x00000000000000000000000000000000000000A1";
const PAYER: Address = "0x00000000000000000000000000000000000000A2";
const OTHER: Address = "0x00000000000000000000000000000000000000A3";
const AMOUNT = 2_000_000n;

/** To whom a settled transfer is due, if a row has its place in the transaction already. */
function dueTo(row: Partial<PaymentRow>): string | undefined {
  const transfers = [{ token: NETWORKS.base.asset, from: PAYER, to: OURS, amount: AMOUNT, logIndex: 0 }];
  const mined = { blockNumber: 9n, blockHash: "0x1", blockTimeMs: 1, confirmations: 20n, finalized: null, transfers };
  const [match] = matchTransfers(mined as never, {
    network: "base",
    recipient: OURS,
    confirmations: 10,
    payments: [{ logIndex: 0, accountId: "acct_before", ...row } as PaymentRow],
    settled: { accountId: "acct_settled", payer: PAYER, amount: AMOUNT },
    invoicesOf: () => [],
  });
  return match?.kind === "due" ? match.due.accountId : match?.kind;
}

test("a settled transfer is credited, though it took the place of one whose credit was reversed", () => {
  expect(dueTo({ status: "reversed", payer: OTHER, amount: AMOUNT })).toBe("acct_settled");
  expect(dueTo({ status: "reversed", payer: PAYER, amount: 1n })).toBe("acct_settled");
});

test("a settled transfer that has its credit, or had it before a reorganisation, keeps its account", () => {
  expect(dueTo({ status: "credited", payer: PAYER, amount: AMOUNT })).toBe("paid");
  expect(dueTo({ status: "reversed", payer: PAYER, amount: AMOUNT })).toBe("acct_before");
});
