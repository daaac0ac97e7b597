import { expect, test } from "bun:test";
import { createHeads } from "../../src/payments/heads.ts";
import { MINUTE, SECOND } from "../lib/hand-clock.ts";
import type { TestServer } from "../support/test-server.ts";
import { balanceOf, launch, type Paying, quoteFor, startPaying, topUp } from "./paying.ts";

const unknownHash = (nth: number): string => `0x${nth.toString(16).padStart(64, "0")}`;
const receipts = ({ proxy }: Paying): number => proxy.calls("eth_getTransactionReceipt");

/** Requests this many quotes at once, each for another amount. */
const quotes = (person: Awaited<ReturnType<TestServer["signUp"]>>, from: number, count: number) =>
  Promise.all(Array.from({ length: count }, (_, nth) => topUp(person, { amount: `${from + nth}.00` })));

test("refused quotes cost no call, and concurrent ones share one reading of the head", async () => {
  await using paying = await startPaying();
  const person = await paying.someone();
  const [calls, began] = [paying.proxy.calls("eth_blockNumber"), performance.now()];
  const first = await quotes(person, 1, 100);
  expect(first.map(({ status }) => status)).toEqual(Array(100).fill(402));
  // Five a second at most, however many are requested.
  const most = Math.ceil((performance.now() - began) / 200) + 1;
  expect(paying.proxy.calls("eth_blockNumber") - calls).toBeLessThanOrEqual(most);

  const before = paying.proxy.calls();
  const refused = await quotes(person, 201, 50);
  expect(refused.map(({ status }) => status)).toEqual(Array(50).fill(429));
  expect(paying.proxy.calls()).toBe(before);
});

test("a quote's head is never older than the quote, also if others share its reading", async () => {
  let height = 0n;
  let reads = 0;
  const head = async () => {
    reads += 1;
    const seen = height;
    // The node's answer is under way while blocks are mined and others come.
    await new Promise((resolve) => setTimeout(resolve, 5));
    return seen;
  };
  const heads = createHeads(new Map([["base", { head }]]), { spacingMs: 10, timeoutMs: 60_000 });
  const asked: Promise<[least: bigint, read: bigint | null]>[] = [];
  for (let turn = 0; turn < 50; turn++) {
    height += 1n;
    for (let nth = 0; nth < 20; nth++) {
      const least = height;
      asked.push(heads.of("base").then((read) => [least, read]));
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const all = await Promise.all(asked);
  expect(all.filter(([least, read]) => read === null || read < least)).toEqual([]);
  expect(reads).toBeLessThanOrEqual(51);
});

test("one unknown transaction presented 600 times is looked up once, whoever presents it, until its Retry-After", async () => {
  await using paying = await startPaying();
  const [person, other] = [await paying.someone(), await paying.someone()];
  await Promise.all([quoteFor(person), quoteFor(other)]);
  const before = paying.proxy.calls();
  for (let round = 0; round < 10; round++) {
    const who = round % 2 === 0 ? person : other;
    const answers = await Promise.all(Array.from({ length: 60 }, () => launch(who, unknownHash(7))));
    expect(answers.map(({ status, headers }) => [status, headers.get("Retry-After")])).toEqual(
      Array(60).fill([402, "2"]),
    );
  }
  expect(receipts(paying)).toBe(1);
  expect(paying.proxy.calls() - before).toBeLessThanOrEqual(3);
  paying.clock.advance(2 * SECOND);
  await launch(other, unknownHash(7));
  expect(receipts(paying)).toBe(2);
});

test("a transaction that was not found is found after its Retry-After, whoever asked too early", async () => {
  await using paying = await startPaying();
  const [person, stranger] = [await paying.someone(), await paying.someone()];
  const { amount } = await quoteFor(person);
  const snapshot = await paying.anvil.rpc("evm_snapshot");
  const txHash = await paying.pay(amount, 1);
  const raw = await paying.anvil.rpc("eth_getRawTransactionByHash", [txHash]);
  await paying.anvil.rpc("evm_revert", [snapshot]);
  expect((await launch(stranger, txHash)).status).toBe(402);
  await paying.anvil.rpc("eth_sendRawTransaction", [raw]);
  await paying.anvil.mine(10);
  expect((await launch(person, txHash)).status).toBe(402);
  paying.clock.advance(2 * SECOND);
  expect((await launch(person, txHash)).status).toBe(201);
  expect(await balanceOf(person)).toBe(amount);
});

test("an account has 300 lookups a minute, whatever it presents", async () => {
  await using paying = await startPaying({ confirmations: 1 });
  const person = await paying.someone();
  await quoteFor(person);
  const txHash = await paying.pay("7.654321");
  const statuses: number[] = [];
  for (let nth = 0; nth < 310; nth++) statuses.push((await launch(person, txHash)).status);
  expect(statuses).toEqual([...Array(300).fill(402), ...Array(10).fill(429)]);
  expect(receipts(paying)).toBe(300);
  paying.clock.advance(MINUTE);
  expect((await launch(person, txHash)).status).toBe(402);
});

/**
 * Calls about these transactions are answered when released; all others go to the chain at once. `most`: of those that
 * wait at a time, without those that were given up after a node's deadline.
 */
function hangFor(paying: Paying, isHung: (txHash: string) => boolean): { most(): number; letGo(): void } {
  const { promise: released, resolve: letGo } = Promise.withResolvers<void>();
  let [now, most] = [0, 0];
  paying.proxy.answer(async ({ id, method, params, signal }) => {
    if (method === "eth_getTransactionReceipt" && isHung(String(params[0]))) {
      now += 1;
      most = Math.max(most, now);
      const givenUp = Promise.withResolvers<void>();
      signal.addEventListener("abort", () => givenUp.resolve(), { once: true });
      await Promise.race([released, givenUp.promise]);
      now -= 1;
      return Response.json({ jsonrpc: "2.0", id, result: null });
    }
    return Response.json({ jsonrpc: "2.0", id, result: await paying.anvil.rpc(method, params) });
  });
  return { most: () => most, letGo };
}

test("a tenant whose hundred transactions keep the nodes busy delays no other's payment", async () => {
  await using paying = await startPaying();
  const [payer, pest] = [await paying.someone(), await paying.someone("5.00")];
  const { amount } = await quoteFor(payer);
  const txHash = await paying.pay(amount);
  const hung = hangFor(paying, (hash) => hash !== txHash);
  const junk = Promise.all(
    Array.from({ length: 100 }, (_, nth) => launch(pest, unknownHash(nth + 1)).catch(() => null)),
  );
  while (hung.most() < 2) await Bun.sleep(5);
  expect((await launch(payer, txHash)).status).toBe(201);
  expect(hung.most()).toBe(2);
  hung.letGo();
  await junk;
});

test("an account that presents another's transaction behind a crowd of its own delays it for nobody", async () => {
  await using paying = await startPaying();
  const [payer, pest] = [await paying.someone(), await paying.someone("5.00")];
  const { amount } = await quoteFor(payer);
  const txHash = await paying.pay(amount);
  const hung = hangFor(paying, (hash) => hash !== txHash);
  const junk = Array.from({ length: 30 }, (_, nth) => launch(pest, unknownHash(nth + 1)).catch(() => null));
  while (hung.most() < 2) await Bun.sleep(5);
  const stolen = launch(pest, txHash).catch(() => null);
  const answer = await launch(payer, txHash);
  expect([answer.status, await balanceOf(payer)]).toEqual([201, amount]);
  hung.letGo();
  await Promise.all([...junk, stolen]);
});
