import { expect, test } from "bun:test";
import { NETWORKS } from "../../src/chain/networks.ts";
import { formatMoney } from "../../src/lib/money.ts";
import { MINUTE, SECOND } from "../lib/hand-clock.ts";
import { balanceOf, booksOf, entriesOf, launch, micros, quoteFor, startPaying, statusesOf, topUp } from "./paying.ts";

const auditOf = ({ server }: Awaited<ReturnType<typeof startPaying>>): string[] =>
  server.foundation.audit
    .read(0, 1000)
    .map(({ action }) => action)
    .filter((action) => action.startsWith("payment."));

test("a transfer that a reorganisation removes before it is credited is not credited until it is mined again", async () => {
  await using paying = await startPaying();
  const person = await paying.someone();
  const { amount } = await quoteFor(person);
  const txHash = await paying.pay(amount, 4);
  const raw = await paying.anvil.rpc("eth_getRawTransactionByHash", [txHash]);
  expect((await launch(person, txHash)).body.error.message).toContain("4 of 10");
  await paying.anvil.reorg(5);
  await paying.anvil.mine(10);
  expect((await launch(person, txHash)).body.error.message).toContain("no such transaction");
  expect(await balanceOf(person)).toBe("0.000000");
  await paying.anvil.rpc("eth_sendRawTransaction", [raw]);
  await paying.anvil.mine(9);
  await paying.until(async () => (await balanceOf(person)) === amount);
});

test("a credited transfer that is removed is reversed, and its invoice can be paid again", async () => {
  await using paying = await startPaying({ confirmations: 2 });
  const person = await paying.someone("1.00");
  const { amount, invoiceId } = (await topUp(person)).body.x402;
  expect((await topUp(person, {}, await paying.pay(amount))).status).toBe(201);
  await paying.anvil.reorg(3);
  await paying.until(() => statusesOf(paying, "payments")[0] === "reversed");
  expect(await balanceOf(person)).toBe("1.000000");
  expect(await entriesOf(person)).toEqual([
    ["credit", "1.000000"],
    ["top_up", amount],
    ["reversal", `-${amount}`],
  ]);
  expect(booksOf(paying, person)).toEqual({ all: 0n, customer: 1_000_000n, owed: 0n });
  expect(auditOf(paying)).toEqual(["payment.credit", "payment.reverse"]);
  expect((await topUp(person)).body.x402).toMatchObject({ invoiceId, amount });
});

test("if a reversed top-up was spent, instances stop, and the debt is taken from the next one", async () => {
  await using paying = await startPaying({ confirmations: 2, settings: { ROOST_PRICE_PER_HOUR: "0.50" } });
  const person = await paying.someone();
  const { amount } = await quoteFor(person);
  const started = await launch(person, await paying.pay(amount));
  expect(started.status).toBe(201);
  paying.clock.advance(3_600_000);
  await paying.anvil.reorg(3);
  await paying.until(() => statusesOf(paying, "payments")[0] === "reversed");

  const { body } = await person.ask("GET", `/v1/instances/${started.body.instanceId}`);
  expect(body).toMatchObject({ status: "stopped", statusReason: "insufficient_balance" });
  const spent = micros(body.billing.accrued);
  expect(spent).toBeGreaterThanOrEqual(500_000n);
  expect(booksOf(paying, person)).toEqual({ all: 0n, customer: 0n, owed: spent });

  const next = (await topUp(person, { amount: "2.00" })).body.x402;
  expect((await topUp(person, {}, await paying.pay(next.amount))).status).toBe(201);
  expect((await entriesOf(person)).slice(-2)).toEqual([
    ["top_up", next.amount],
    ["reversal", `-${formatMoney(spent)}`],
  ]);
  expect(booksOf(paying, person)).toEqual({ all: 0n, customer: micros(next.amount) - spent, owed: 0n });
});

test("whoever pays what a launch asks for gets the instance, although more was owed since a reversal", async () => {
  await using paying = await startPaying({ confirmations: 2, settings: { ROOST_PRICE_PER_HOUR: "0.50" } });
  const person = await paying.someone();
  expect((await person.ask("GET", "/v1/billing")).body.owed).toBe("0.000000");
  const { amount } = await quoteFor(person);
  expect((await launch(person, await paying.pay(amount))).status).toBe(201);
  paying.clock.advance(90 * MINUTE);
  await paying.anvil.reorg(3);
  await paying.until(() => statusesOf(paying, "payments")[0] === "reversed");
  const owed = formatMoney(booksOf(paying, person).owed);
  expect(micros(owed)).toBeGreaterThanOrEqual(750_000n);
  expect((await person.ask("GET", "/v1/billing")).body).toMatchObject({ balance: "0.000000", owed });

  const refused = await launch(person);
  expect(refused.body.error.message).toContain(
    `the balance is 0.000000 USDC, ${owed} are owed since a payment was reversed, and this needs 0.500000`,
  );
  expect((await launch(person, await paying.pay(refused.body.x402.amount))).status).toBe(201);
  expect(booksOf(paying, person).owed).toBe(0n);
});

test("a reversed transfer that is mined again and presented is credited again, once", async () => {
  await using paying = await startPaying({ confirmations: 2 });
  const person = await paying.someone();
  const { amount } = await quoteFor(person);
  const txHash = await paying.pay(amount);
  const raw = await paying.anvil.rpc("eth_getRawTransactionByHash", [txHash]);
  await launch(person, txHash);
  await paying.anvil.reorg(3);
  await paying.until(() => statusesOf(paying, "payments")[0] === "reversed");
  expect((await launch(person, txHash)).status).toBe(402);

  await paying.anvil.rpc("eth_sendRawTransaction", [raw]);
  await paying.anvil.mine(1);
  paying.clock.advance(2 * SECOND);
  expect((await launch(person, txHash)).status).toBe(201);
  expect((await launch(person, txHash)).status).toBe(201);
  expect(await entriesOf(person)).toEqual([
    ["top_up", amount],
    ["reversal", `-${amount}`],
    ["top_up", amount],
  ]);
  expect(statusesOf(paying, "payments")).toEqual(["credited"]);
  expect(booksOf(paying, person)).toEqual({ all: 0n, customer: micros(amount), owed: 0n });
});

test("a transfer that only moves to another block stays credited, and becomes final ten minutes later at the earliest", async () => {
  await using paying = await startPaying({ confirmations: 3 });
  const person = await paying.someone();
  const { amount } = await quoteFor(person);
  const txHash = await paying.pay(amount);
  await launch(person, txHash);
  const { sqlite } = paying.server.foundation.store;
  const block = () => sqlite.query<{ block: string }, []>("SELECT block_hash AS block FROM payments").get()?.block;
  const before = block();
  await paying.anvil.reorg(4, [txHash]);
  await paying.until(() => block() !== before);
  expect(statusesOf(paying, "payments")).toEqual(["credited"]);
  await paying.anvil.mine(20);
  const asked = paying.proxy.calls("eth_getTransactionReceipt");
  await paying.until(() => paying.proxy.calls("eth_getTransactionReceipt") >= asked + 2);
  expect(statusesOf(paying, "payments")).toEqual(["credited"]);
  paying.clock.advance(10 * MINUTE);
  await paying.until(() => statusesOf(paying, "payments")[0] === "final");
  expect(await entriesOf(person)).toEqual([["top_up", amount]]);
});

test("nodes that are silent, or miss a transaction for a moment, cause no reversal", async () => {
  await using paying = await startPaying({ confirmations: 2 });
  const person = await paying.someone();
  const { amount } = await quoteFor(person);
  await launch(person, await paying.pay(amount));
  const asked = () => paying.proxy.calls("eth_getTransactionReceipt");
  const looks = async (count: number) => {
    const before = asked();
    await paying.until(() => asked() >= before + count);
  };
  paying.proxy.refuse();
  await looks(2);
  let forgets = true;
  paying.proxy.lie((result, { method }) => {
    if (method !== "eth_getTransactionReceipt" || !forgets) return result;
    forgets = false;
    return null;
  });
  await looks(3);
  expect(forgets).toBe(false);
  expect(statusesOf(paying, "payments")).toEqual(["credited"]);
  expect(await balanceOf(person)).toBe(amount);
});

/** A payer that is a contract may make another transfer of the same transaction, in the block that it is mined in again. */
test.each<[string, (amount: string, recipient: string) => [string, string]]>([
  ["to another recipient", (_amount, recipient) => [recipient.slice(2).toLowerCase(), "b".repeat(40)]],
  ["of another amount", (amount) => [word(micros(amount)), word(5_000_000n)]],
  ["of another token", () => [NETWORKS.base.asset.slice(2).toLowerCase(), "b".repeat(40)]],
])("a credited transfer that is one %s after a reorganisation is reversed, and nobody's", async (_what, changeOf) => {
  await using paying = await startPaying({ confirmations: 2 });
  const person = await paying.someone();
  const { amount } = await quoteFor(person);
  const txHash = await paying.pay(amount);
  expect((await launch(person, txHash)).status).toBe(201);
  await paying.anvil.reorg(3, [txHash]);
  const [from, to] = changeOf(amount, paying.recipient);
  paying.proxy.lie((result, { method }) =>
    method === "eth_getTransactionReceipt" ? JSON.parse(JSON.stringify(result).replaceAll(from, to)) : result,
  );
  await paying.until(() => statusesOf(paying, "claims")[0] === "refused");
  expect(statusesOf(paying, "payments")).toEqual(["reversed"]);
  expect(await entriesOf(person)).toEqual([
    ["top_up", amount],
    ["reversal", `-${amount}`],
  ]);
  expect(booksOf(paying, person)).toEqual({ all: 0n, customer: 0n, owed: 0n });
});

const word = (amount: bigint): string => amount.toString(16).padStart(64, "0");
