import { expect, test } from "bun:test";
import { formatMoney } from "../../src/lib/money.ts";
import { balanceOf, booksOf, entriesOf, micros, startPaying, statusesOf, topUp } from "./paying.ts";

test("of two transfers in one transaction, the one that must wait is credited too, once it may be", async () => {
  await using paying = await startPaying({ confirmations: 2 });
  const person = await paying.someone();
  const small = (await topUp(person)).body.x402.amount;
  const large = (await topUp(person, { amount: "150.00" })).body.x402.amount;
  const txHash = await paying.anvil.transferMany([
    { to: paying.recipient, amount: micros(small) },
    { to: paying.recipient, amount: micros(large) },
  ]);
  await paying.anvil.mine(1);
  const { status, body } = await topUp(person, {}, txHash);
  expect([status, body.amount]).toEqual([201, small]);
  expect(statusesOf(paying, "claims")).toEqual(["pending"]);

  await paying.anvil.mine(10);
  const both = micros(small) + micros(large);
  await paying.until(async () => (await balanceOf(person)) === formatMoney(both));
  expect(await entriesOf(person)).toEqual([
    ["top_up", small],
    ["top_up", large],
  ]);
  expect(statusesOf(paying, "claims")).toEqual(["credited"]);
  expect(booksOf(paying, person)).toEqual({ all: 0n, customer: both, owed: 0n });
});
