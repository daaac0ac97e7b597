import { expect, test } from "bun:test";
import { type Address, NETWORKS } from "../../src/chain/networks.ts";
import { matchTransfers } from "../../src/payments/match-transfers.ts";
import type { Invoice } from "../../src/payments/schema.ts";

const NOW_OURS: Address = "0x00000000000000000000000000000000000000A1";
const BEFORE: Address = "0x00000000000000000000000000000000000000A2";
const AMOUNT = 1_000_001n;

/** The outcome of a transfer to one address if the invoice of its amount names another. */
function kindOf(to: Address, payTo: string): string | undefined {
  const invoice: Invoice = {
    invoiceId: "inv_1",
    accountId: "acct_1",
    amount: AMOUNT,
    status: "expired",
    heads: '{"base":"5"}',
    payTo,
    createdAt: 0,
    expiresAt: 1,
    paidAt: null,
  };
  const { asset } = NETWORKS.base;
  const transfers = [{ token: asset, from: BEFORE, to, amount: AMOUNT, logIndex: 0 }];
  const block = { blockNumber: 9n, blockHash: "0x1", blockTimeMs: 1, confirmations: 20n, finalized: null };
  const known = { network: "base", recipient: NOW_OURS, confirmations: 10, payments: [], settled: null } as const;
  return matchTransfers({ ...block, transfers } as never, { ...known, invoicesOf: () => [invoice] })[0]?.kind;
}

test("a transfer pays the invoice that names the address it went to, in upper or lower case", () => {
  expect(kindOf(NOW_OURS, NOW_OURS)).toBe("due");
  expect(kindOf(NOW_OURS, NOW_OURS.toLowerCase())).toBe("due");
  expect(kindOf(NOW_OURS, BEFORE)).toBe("unmatched");
});

test("nothing is credited that goes to an earlier address of this host, whatever an invoice says", () => {
  expect(kindOf(BEFORE, BEFORE)).toBe("wrong_recipient");
  expect(kindOf(BEFORE, NOW_OURS)).toBe("wrong_recipient");
});
