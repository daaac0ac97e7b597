import { afterAll, beforeAll, expect, test } from "bun:test";
import { findImbalance } from "../../src/ledger/imbalance.ts";
import { readAccountSummary } from "../../src/payments/account-summary.ts";
import { operate, type Ran } from "../cli/command-line.ts";
import type { Person } from "../support/test-server.ts";
import { balanceOf, booksOf, launch, type Paying, quoteFor, startPaying } from "./paying.ts";

let paying: Paying;
beforeAll(async () => {
  paying = await startPaying();
});
afterAll(() => paying[Symbol.asyncDispose]());

/** Runs `roost account credit-transfer` beside the server. */
function give({ email }: Person, txHash: string): Promise<Ran> {
  const { dataDir, config } = paying.server;
  const home = {
    folder: dataDir,
    dataDir,
    configDir: dataDir,
    env: { HOME: dataDir, PATH: "/usr/bin:/bin" },
    remove() {},
  };
  const words = ["account", "credit-transfer", email, "base", txHash, "--note", "paid before the restore"];
  return operate(home, words, { env: { ROOST_BASE_RPC_URL: config.rpcUrls.base.join(",") } });
}

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

test("the operator credits such a transfer, as the chain shows it, to one account and once", async () => {
  const [person, other] = [await paying.someone(), await paying.someone()];
  const hash = await paying.pay("1.234567");
  expect((await launch(person, hash)).status).toBe(402);
  expect(await give(person, hash)).toMatchObject({
    code: 0,
    output: `Credited 1.234567 USDC to ${person.email}: the balance is 1.23.\n`,
  });
  expect(uncreditedOf(person)).toEqual([]);
  for (const again of [person, other]) {
    expect(await give(again, hash)).toMatchObject({
      code: 1,
      errors: expect.stringContaining("it was credited before"),
    });
  }
  expect((await launch(person, hash)).status).toBe(201);
  expect([await balanceOf(person), await balanceOf(other)]).toEqual(["1.234567", "0.000000"]);
  expect(booksOf(paying, person)).toEqual({ all: 0n, customer: 1_234_567n, owed: 0n });
  expect(findImbalance(paying.server.foundation.store)).toBeNull();
});

test("the operator cannot give away a transfer that pays somebody's quote, is not deep enough, or does not exist", async () => {
  const [person, other] = [await paying.someone(), await paying.someone()];
  const refusal = async (txHash: string) => (await give(other, txHash)).errors;
  expect(await refusal(await paying.pay((await quoteFor(person)).amount))).toContain("it pays a quote");
  expect(await refusal(await paying.pay("1.111113", 2))).toContain("has 2 of 10 confirmations");
  expect(await refusal(`0x${"77".repeat(32)}`)).toContain("is in no block of base");
  expect(await give(other, "0x77")).toMatchObject({ code: 2, errors: expect.stringContaining("64 hex digits") });
  expect(await balanceOf(other)).toBe("0.000000");
});
