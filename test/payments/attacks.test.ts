import { expect, test } from "bun:test";
import type { Hex } from "viem";
import { MINUTE } from "../lib/hand-clock.ts";
import { BRIDGED_USDC, IMPOSTOR_TOKEN } from "../support/anvil.ts";
import type { Person } from "../support/test-server.ts";
import {
  balanceOf,
  booksOf,
  entriesOf,
  launch,
  micros,
  type Paying,
  quoteFor,
  seen,
  startPaying,
  statusesOf,
  topUp,
} from "./paying.ts";

const NO_INVOICE = "the transfer's amount matches no open invoice of this account";
const SOMEBODY_ELSE = "0x00000000000000000000000000000000000000a2";
const UNKNOWN_HASH = `0x${"ab".repeat(32)}`;

test("a proof that its owner presents again credits nothing, and the request proceeds", async () => {
  await using paying = await startPaying();
  const person = await paying.someone();
  const { amount } = await quoteFor(person);
  const txHash = await paying.pay(amount);
  for (const _ of [1, 2, 3]) expect((await launch(person, txHash)).status).toBe(201);
  expect(await balanceOf(person)).toBe(amount);
  const again = await topUp(person, {}, txHash);
  expect(again.status).toBe(402);
  expect(again.body.error.message).toContain("already credited");
});

test("a stolen proof credits its owner, and tells the thief only what an unknown amount would", async () => {
  await using paying = await startPaying();
  const [owner, thief] = [await paying.someone(), await paying.someone()];
  await quoteFor(thief);
  const unmatched = seen(await launch(thief, await paying.pay("7.654321")));
  const { amount } = await quoteFor(owner);

  const shallow = await paying.pay(amount, 2);
  expect(seen(await launch(thief, shallow))).toEqual(unmatched);
  await paying.anvil.mine(8);
  expect(seen(await launch(thief, shallow))).toEqual(unmatched);
  expect(await balanceOf(owner)).toBe(amount);
  expect(seen(await launch(thief, shallow))).toEqual(unmatched);
  expect((await launch(owner, shallow)).status).toBe(201);
  expect([await balanceOf(owner), await balanceOf(thief)]).toEqual([amount, "0.000000"]);
  expect(unmatched).toMatchObject({ body: { error: { message: NO_INVOICE } } });
});

test("a stolen proof that is not deep enough credits its owner in the background", async () => {
  await using paying = await startPaying();
  const [owner, thief] = [await paying.someone(), await paying.someone()];
  const { amount } = await quoteFor(owner);
  const txHash = await paying.pay(amount, 2);
  expect((await launch(thief, txHash)).body.error.message).toBe(NO_INVOICE);
  await paying.anvil.mine(8);
  await paying.until(async () => (await balanceOf(owner)) === amount);
  expect(await balanceOf(thief)).toBe("0.000000");
});

test("twenty connections with one proof are one credit and one verification", async () => {
  await using paying = await startPaying();
  const person = await paying.someone();
  const { amount } = await quoteFor(person);
  const txHash = await paying.pay(amount);
  const before = paying.proxy.calls("eth_getTransactionReceipt");
  const answers = await Promise.all(Array.from({ length: 20 }, () => launch(person, txHash)));
  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(201));
  // Those that come so late that the credit is checked again meanwhile see that as well.
  expect(paying.proxy.calls("eth_getTransactionReceipt") - before).toBeWithin(1, 5);
  expect(await entriesOf(person)).toEqual([["top_up", amount]]);
});

test("twenty connections of two accounts with one proof are one credit, to its owner", async () => {
  await using paying = await startPaying();
  const [owner, thief] = [await paying.someone(), await paying.someone()];
  const { amount } = await quoteFor(owner);
  await quoteFor(thief);
  const txHash = await paying.pay(amount);
  const answers = await Promise.all(Array.from({ length: 20 }, (_, at) => launch(at % 2 ? owner : thief, txHash)));
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, (_, at) => (at % 2 ? 201 : 402)));
  expect(await entriesOf(owner)).toEqual([["top_up", amount]]);
  expect(await entriesOf(thief)).toEqual([]);
});

test("a transfer to somebody else is refused", async () => {
  await using paying = await startPaying();
  const person = await paying.someone();
  const { amount, invoiceId } = await quoteFor(person);
  const txHash = await paying.anvil.transfer({ to: SOMEBODY_ELSE, amount: micros(amount) });
  await paying.anvil.mine(20);
  const { status, body } = await launch(person, txHash);
  expect([status, body.x402.invoiceId]).toEqual([402, invoiceId]);
  expect(body.error.message).toContain("recipient is not the one in x402");
  expect(await balanceOf(person)).toBe("0.000000");
});

test("a Transfer log of another contract is worthless", async () => {
  await using paying = await startPaying();
  const person = await paying.someone();
  const { amount, asset } = await quoteFor(person);
  const token = IMPOSTOR_TOKEN;
  const txHash = await paying.anvil.transfer({ to: paying.recipient, amount: micros(amount), token });
  await paying.anvil.mine(20);
  const { status, body } = await launch(person, txHash);
  expect([status, body.error.message]).toEqual([402, `the transfer is of another token: send USDC, ${asset}`]);
  expect(await balanceOf(person)).toBe("0.000000");
});

test("bridged USDC.e is refused with a message that says so", async () => {
  await using paying = await startPaying({ network: "polygon" });
  const person = await paying.someone();
  const { amount } = await quoteFor(person);
  const txHash = await paying.anvil.transfer({ to: paying.recipient, amount: micros(amount), token: BRIDGED_USDC });
  await paying.anvil.mine(20);
  const { status, body } = await launch(person, txHash, "polygon");
  expect(status).toBe(402);
  expect(body.error.message).toContain("bridged USDC (USDC.e) is not accepted");
  expect(await balanceOf(person)).toBe("0.000000");
});

test("a failed transaction is refused", async () => {
  await using paying = await startPaying();
  const person = await paying.someone();
  await quoteFor(person);
  const txHash = await paying.anvil.failingTransfer({ to: paying.recipient });
  await paying.anvil.mine(20);
  const { status, headers, body } = await launch(person, txHash);
  expect([status, headers.get("Retry-After")]).toEqual([402, null]);
  expect(body.error.message).toContain("failed on the chain");
});

test.each([-1, 1])("an amount that is off by %p micro-USDC matches no invoice", async (off) => {
  await using paying = await startPaying();
  const person = await paying.someone();
  const { amount } = await quoteFor(person);
  const txHash = await paying.anvil.transfer({ to: paying.recipient, amount: micros(amount) + BigInt(off) });
  await paying.anvil.mine(20);
  const { status, body } = await launch(person, txHash);
  expect([status, body.error.message]).toEqual([402, NO_INVOICE]);
  expect(await balanceOf(person)).toBe("0.000000");
});

/** Gives the account's invoice the amount of a transfer that was made before it was opened. */
function askFor(paying: Paying, invoiceId: string, amount: string): void {
  const { store } = paying.server.foundation;
  store.transaction(() =>
    store.sqlite.run("UPDATE invoices SET amount = ? WHERE invoice_id = ?", [Number(micros(amount)), invoiceId]),
  );
}

/** On a busy machine even a good node may take longer to say its head than a quote waits: then another one is asked for. */
async function quoteWithHead(paying: Paying, person: Person): Promise<{ invoiceId: string }> {
  const { store } = paying.server.foundation;
  for (;;) {
    const quote = await quoteFor(person);
    const of = store.sqlite.query<{ heads: string }, [string]>("SELECT heads FROM invoices WHERE invoice_id = ?");
    if (of.get(quote.invoiceId)?.heads !== "{}") return quote;
    store.transaction(() => store.sqlite.run("DELETE FROM invoices WHERE invoice_id = ?", [quote.invoiceId]));
  }
}

test("a transfer in the block that was the head when the invoice was opened matches nothing", async () => {
  await using paying = await startPaying({ confirmations: 1 });
  const person = await paying.someone();
  const txHash = await paying.pay("1.234567");
  const { invoiceId } = await quoteWithHead(paying, person);
  askFor(paying, invoiceId, "1.234567");
  const { status, body } = await launch(person, txHash);
  expect([status, body.error.message]).toEqual([402, "the transfer is older than the invoice of its amount"]);
  expect((await launch(person, await paying.pay("1.234567"))).status).toBe(201);
  expect(await balanceOf(person)).toBe("1.234567");
});

test.each([
  [9, 201],
  [11, 402],
])("if no node reported a head, a block %d minutes before the invoice is answered %d", async (minutes, expected) => {
  await using paying = await startPaying({ confirmations: 1 });
  const person = await paying.someone();
  const txHash = await paying.pay("1.234567");
  const { timestamp } = (await paying.anvil.rpc("eth_getBlockByNumber", ["latest", false])) as { timestamp: Hex };
  paying.clock.advance(Number(timestamp) * 1000 - paying.clock.now() + minutes * MINUTE);
  paying.proxy.refuse();
  const { invoiceId } = await quoteFor(person);
  paying.proxy.pass();
  askFor(paying, invoiceId, "1.234567");
  expect((await launch(person, txHash)).status).toBe(expected);
});

test("a transfer that is not deep enough is credited in the background once it is", async () => {
  await using paying = await startPaying();
  const person = await paying.someone();
  const { amount, invoiceId } = await quoteFor(person);
  const txHash = await paying.pay(amount, 3);
  const { status, headers, body } = await launch(person, txHash);
  expect([status, body.x402.invoiceId, headers.get("Retry-After")]).toEqual([402, invoiceId, "14"]);
  expect(body.error.message).toContain("3 of 10 confirmations");
  await paying.anvil.mine(6);
  expect((await launch(person, txHash)).body.error.message).toContain("9 of 10 confirmations");
  await paying.anvil.mine(1);
  await paying.until(async () => (await balanceOf(person)) === amount);
  expect(statusesOf(paying, "claims")).toEqual(["credited"]);
  expect((await launch(person, txHash)).status).toBe(201);
  expect(await entriesOf(person)).toEqual([["top_up", amount]]);
});

test("one lying node of two credits nobody", async () => {
  await using paying = await startPaying({ nodes: 2 });
  const person = await paying.someone();
  const { amount } = await quoteFor(person);
  const txHash = await paying.pay("0.000001");
  const lied = micros(amount).toString(16).padStart(64, "0");
  paying.proxies[1]?.lie((result, { method }) =>
    method === "eth_getTransactionReceipt"
      ? JSON.parse(JSON.stringify(result).replace(`0x${"1".padStart(64, "0")}`, `0x${lied}`))
      : result,
  );
  const { status, headers, body } = await launch(person, txHash);
  expect([status, headers.get("Retry-After")]).toEqual([402, "5"]);
  expect(body.error.message).toContain("cannot be verified right now");
  expect(await balanceOf(person)).toBe("0.000000");
});

test("nodes that hang are waited for within bounds; the claim is kept and credited when they answer", async () => {
  await using paying = await startPaying({ hangs: true });
  const person = await paying.someone();
  const { amount, invoiceId } = await quoteFor(person);
  const txHash = await paying.pay(amount);
  paying.proxy.hang();
  const began = performance.now();
  const { status, headers, body } = await launch(person, txHash);
  expect(performance.now() - began).toBeLessThan(60_000);
  expect([status, headers.get("Retry-After"), body.x402.invoiceId]).toEqual([402, "5", invoiceId]);
  expect(body.error.message).toContain("cannot be verified right now");
  expect(statusesOf(paying, "claims")).toEqual(["pending"]);
  paying.proxy.pass();
  await paying.until(async () => (await balanceOf(person)) === amount);
  expect(statusesOf(paying, "claims")).toEqual(["credited"]);
});

test("a hash in upper case is the same hash", async () => {
  await using paying = await startPaying();
  const person = await paying.someone();
  const { amount } = await quoteFor(person);
  const txHash = await paying.pay(amount);
  expect((await launch(person, `0x${txHash.slice(2).toUpperCase()}`)).status).toBe(201);
  expect((await launch(person, txHash)).status).toBe(201);
  expect((await launch(person, txHash.toUpperCase())).status).toBe(201);
  expect(await entriesOf(person)).toEqual([["top_up", amount]]);
});

test.each([
  ["", "expected JSON"],
  ["{", "expected JSON"],
  ["[]", "expected"],
  ["{}", "txHash: expected"],
  [JSON.stringify({ txHash: 5, network: "base" }), "txHash: expected"],
  [JSON.stringify({ txHash: UNKNOWN_HASH.slice(0, -1), network: "base" }), "txHash: expected"],
  [JSON.stringify({ txHash: `${UNKNOWN_HASH}0`, network: "base" }), "txHash: expected"],
  [JSON.stringify({ txHash: UNKNOWN_HASH.replace("ab", "xy"), network: "base" }), "txHash: expected"],
  [JSON.stringify({ txHash: UNKNOWN_HASH, network: "solana" }), "network: expected one of base"],
  [JSON.stringify({ txHash: UNKNOWN_HASH, network: "ethereum" }), "network: expected one of base"],
  [JSON.stringify({ txHash: UNKNOWN_HASH, network: ["base"] }), "network: expected one of base"],
  [JSON.stringify({ txHash: UNKNOWN_HASH }), "network: expected one of base"],
])("the header %p is malformed", async (header, says) => {
  await using paying = await startPaying();
  const person = await paying.someone("5.00");
  const calls = paying.proxy.calls();
  const { status, body } = await person.ask("POST", "/v1/instances", { name: "Paid" }, { "X-PAYMENT": header });
  expect([status, body.error.code]).toEqual([400, "invalid_request"]);
  expect(body.error.message).toStartWith(`X-PAYMENT: ${says}`);
  expect(paying.proxy.calls()).toBe(calls);
});

test("two transfers in one transaction credit both their accounts, each once", async () => {
  await using paying = await startPaying();
  const [one, other] = [await paying.someone(), await paying.someone()];
  const [first, second] = [await quoteFor(one), await quoteFor(other)];
  const txHash = await paying.anvil.transferMany([
    { to: SOMEBODY_ELSE, amount: 5n },
    { to: paying.recipient, amount: micros(first.amount) },
    { to: paying.recipient, amount: micros(second.amount) },
  ]);
  await paying.anvil.mine(9);
  expect((await launch(one, txHash)).status).toBe(201);
  expect((await launch(other, txHash)).status).toBe(201);
  expect(await entriesOf(one)).toEqual([["top_up", first.amount]]);
  expect(await entriesOf(other)).toEqual([["top_up", second.amount]]);
});

test("two transfers of one amount in one transaction are two credits, reported as their sum", async () => {
  await using paying = await startPaying();
  const person = await paying.someone();
  const { amount } = (await topUp(person)).body.x402;
  const transfer = { to: paying.recipient, amount: micros(amount) };
  const txHash = await paying.anvil.transferMany([transfer, transfer]);
  await paying.anvil.mine(9);
  const { status, body } = await topUp(person, {}, txHash);
  expect([status, micros(body.amount), micros(body.balance)]).toEqual([201, 2n * micros(amount), 2n * micros(amount)]);
  expect(await entriesOf(person)).toEqual([
    ["top_up", amount],
    ["top_up", amount],
  ]);
  expect(booksOf(paying, person)).toMatchObject({ all: 0n, customer: 2n * micros(amount) });
});
