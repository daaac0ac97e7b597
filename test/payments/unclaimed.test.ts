import { afterAll, beforeAll, expect, test } from "bun:test";
import { readAccountSummary } from "../../src/payments/account-summary.ts";
import type { Person } from "../support/test-server.ts";
import { balanceOf, launch, type Paying, quoteFor, startPaying } from "./paying.ts";

let paying: Paying;
beforeAll(async () => {
  paying = await startPaying();
});
afterAll(() => paying[Symbol.asyncDispose]());

/** What the operator sees as presented by this account and credited to nobody. */
function uncreditedOf({ accountId }: Person): unknown[] {
  const { store, clock } = paying.server.foundation;
  const { uncredited } = readAccountSummary(store.db, accountId, clock.now());
  return uncredited.map(({ txHash, status, reason }) => [txHash, status, reason]);
}

test("USDC of no quote's amount is shown to the operator, with whoever presented it last, and stays credited to nobody", async () => {
  const [person, other] = [await paying.someone(), await paying.someone()];
  const hash = await paying.pay("3.141592");
  const payer = paying.anvil.accounts[0]?.address.toLowerCase();
  const expected = [[hash, "refused", `3.141592 USDC from ${payer}, the amount of no quote`]];
  for (const presenter of [person, other, person]) {
    expect((await launch(presenter, hash)).status).toBe(402);
    expect(uncreditedOf(presenter)).toEqual(expected);
  }
  expect(uncreditedOf(other)).toEqual([]);
  expect([await balanceOf(person), await balanceOf(other)]).toEqual(["0.000000", "0.000000"]);
});

test("a transfer from before its quote is shown to the operator too", async () => {
  const person = await paying.someone();
  const early = await paying.pay("2.718281");
  const quote = await quoteFor(person);
  const { sqlite } = paying.server.foundation.store;
  sqlite.run("UPDATE invoices SET amount = 2718281 WHERE invoice_id = ?", [quote.invoiceId]);
  expect((await launch(person, early)).status).toBe(402);
  expect(uncreditedOf(person)).toEqual([[early, "refused", expect.stringContaining("before it was asked for")]]);
});

test("another account's payment is not shown as one of the account that presented it, before it is credited or after", async () => {
  const [person, thief] = [await paying.someone(), await paying.someone()];
  const hash = await paying.pay((await quoteFor(person)).amount);
  expect((await launch(person, hash)).status).toBe(201);
  expect((await launch(thief, hash)).status).toBe(402);
  expect(uncreditedOf(thief)).toEqual([]);
});
