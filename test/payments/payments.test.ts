import { expect, test } from "bun:test";
import type { NetworkName } from "../../src/chain/networks.ts";
import { newId } from "../../src/lib/id.ts";
import { DAY, HOUR, MINUTE } from "../lib/hand-clock.ts";
import { balanceOf, entriesOf, launch, micros, quoteFor, startPaying, statusesOf, topUp, verified } from "./paying.ts";

/** The `nth` hash of transactions that do not exist. */
const unknownHash = (nth: number): string => `0x${nth.toString(16).padStart(64, "0")}`;

test.each<[NetworkName, number]>([
  ["base", 10],
  ["ethereum", 12],
  ["polygon", 128],
])("a program pays on %s and gets its instance", async (network, confirmations) => {
  await using paying = await startPaying({ network, confirmations });
  const person = await paying.someone();
  const quote = await quoteFor(person);
  expect(quote).toMatchObject({ network, currency: "USDC", asset: paying.anvil.usdc, chainId: paying.anvil.chainId });
  const txHash = await paying.pay(quote.amount);
  const { status } = await launch(person, txHash, network);
  expect(status).toBe(201);
  expect(await balanceOf(person)).toBe(quote.amount);
});

test("a payment is credited although its request fails", async () => {
  await using paying = await startPaying();
  const person = await paying.someone();
  const { amount } = await quoteFor(person);
  const proof = { "X-PAYMENT": JSON.stringify({ txHash: await paying.pay(amount), network: "base" }) };
  const { status } = await verified(() => person.ask("POST", "/v1/instances", { name: "" }, proof));
  expect(status).toBe(400);
  expect(await balanceOf(person)).toBe(amount);
});

test("a payment is credited although its request names no instance of the account", async () => {
  await using paying = await startPaying();
  const person = await paying.someone();
  const { amount } = await quoteFor(person);
  const start = (proof: string) =>
    verified(() => person.ask("POST", `/v1/instances/${newId("inst")}/start`, undefined, { "X-PAYMENT": proof }));
  expect((await start("{}")).status).toBe(404);
  expect((await start(JSON.stringify({ txHash: await paying.pay(amount), network: "base" }))).status).toBe(404);
  expect(await balanceOf(person)).toBe(amount);
});

test("an Idempotency-Key whose request had a malformed proof works with a good one", async () => {
  await using paying = await startPaying();
  const person = await paying.someone();
  const key = { "Idempotency-Key": "launch-1" };
  const ask = (headers: Record<string, string> = {}) =>
    verified(() => person.ask("POST", "/v1/instances", { name: "Paid" }, { ...key, ...headers }));
  const { amount } = (await ask()).body.x402;
  const txHash = await paying.pay(amount);
  expect((await ask({ "X-PAYMENT": txHash })).status).toBe(400);
  expect((await ask({ "X-PAYMENT": JSON.stringify({ txHash, network: "solana" }) })).status).toBe(400);
  const proof = { "X-PAYMENT": JSON.stringify({ txHash, network: "base" }) };
  const first = await ask(proof);
  expect(first.status).toBe(201);
  const again = await ask(proof);
  expect([again.status, again.headers.get("Idempotent-Replayed")]).toEqual([201, "true"]);
  expect(again.body.instanceId).toBe(first.body.instanceId);
  expect(await balanceOf(person)).toBe(amount);
});

test("a proof that is not accepted is a 402 although the balance would suffice", async () => {
  await using paying = await startPaying();
  const person = await paying.someone("5.00");
  const { status, headers, body } = await launch(person, unknownHash(1));
  expect([status, headers.get("Retry-After")]).toEqual([402, "2"]);
  expect(body.error.message).toContain("no such transaction is in a block of base yet");
  expect(body.x402.amount).toStartWith("1.00");
});

test("for a proof that is not deep enough, the invoice that it pays is quoted, whatever is missing by then", async () => {
  await using paying = await startPaying();
  const person = await paying.someone();
  const { amount, invoiceId } = (await topUp(person, { amount: "7.00" })).body.x402;
  await quoteFor(person);
  const { status, body } = await launch(person, await paying.pay(amount, 2));
  expect([status, body.x402.invoiceId]).toEqual([402, invoiceId]);
});

test("an invoice is credited if it is paid late, or twice, but not after 30 days", async () => {
  await using paying = await startPaying({ confirmations: 1 });
  const person = await paying.someone();
  const { amount } = (await topUp(person)).body.x402;
  paying.clock.advance(25 * HOUR);
  // Presented by others: the person's token has expired by now.
  await launch(await paying.someone(), await paying.pay(amount));
  paying.clock.advance(29 * DAY);
  await launch(await paying.someone(), await paying.pay(amount));
  paying.clock.advance(DAY);
  await launch(await paying.someone(), await paying.pay(amount));
  const { store } = paying.server.foundation;
  const credited = store.sqlite
    .query<{ accountId: string; amount: number }, []>("SELECT account_id AS accountId, amount FROM payments")
    .all();
  expect(credited).toEqual([1, 2].map(() => ({ accountId: person.accountId, amount: Number(micros(amount)) })));
});

test("more than 100 USDC on base must wait until their block is final", async () => {
  await using paying = await startPaying({ confirmations: 2 });
  const person = await paying.someone();
  const { amount } = (await topUp(person, { amount: "100.00" })).body.x402;
  const txHash = await paying.pay(amount, 5);
  const { status, headers, body } = await topUp(person, {}, txHash);
  expect([status, headers.get("Retry-After")]).toEqual([402, "60"]);
  expect(body.error.message).toContain("its block must be final");
  await paying.anvil.mine(6);
  expect((await topUp(person, {}, txHash)).status).toBe(201);
});

test("a claim survives a restart, and is credited afterwards", async () => {
  await using paying = await startPaying();
  const person = await paying.someone();
  const { amount } = await quoteFor(person);
  const txHash = await paying.pay(amount, 2);
  await launch(person, txHash);
  await paying.server.restart();
  await paying.anvil.mine(8);
  await paying.until(async () => (await balanceOf(person)) === amount);
  expect(statusesOf(paying, "claims")).toEqual(["credited"]);
});

test("a claim that stays undecided expires after a day", async () => {
  await using paying = await startPaying();
  const person = await paying.someone();
  await launch(person, unknownHash(1));
  paying.clock.advance(DAY - MINUTE);
  expect(statusesOf(paying, "claims")).toEqual(["pending"]);
  paying.clock.advance(MINUTE);
  await paying.until(() => statusesOf(paying, "claims")[0] === "expired");
});

test("a credit made in the background is reported once as new, and then as already credited", async () => {
  await using paying = await startPaying();
  const person = await paying.someone();
  const { amount } = await quoteFor(person);
  const txHash = await paying.pay(amount, 3);
  expect((await topUp(person, {}, txHash)).status).toBe(402);
  await paying.anvil.mine(7);
  await paying.until(async () => (await balanceOf(person)) === amount);
  const told = await topUp(person, {}, txHash);
  expect([told.status, told.body.amount, told.body.balance]).toEqual([201, amount, amount]);
  const again = await topUp(person, {}, txHash);
  expect([again.status, again.body.error.message]).toEqual([402, expect.stringContaining("already credited")]);
  expect(await entriesOf(person)).toEqual([["top_up", amount]]);
});

test("an account may present 100 new transactions a minute, and 20 of its claims are stored", async () => {
  await using paying = await startPaying();
  const [person, other] = [await paying.someone(), await paying.someone()];
  for (let nth = 1; nth <= 100; nth++) expect((await launch(person, unknownHash(nth))).status).toBe(402);
  const { status, headers, body } = await launch(person, unknownHash(101));
  expect([status, headers.get("Retry-After"), body.error.code]).toEqual([429, "60", "rate_limited"]);
  expect((await launch(person, unknownHash(100))).status).toBe(402);
  expect((await launch(other, unknownHash(101))).status).toBe(402);
  expect(statusesOf(paying, "claims")).toHaveLength(21);
  paying.clock.advance(MINUTE);
  expect((await launch(person, unknownHash(101))).status).toBe(402);
});
