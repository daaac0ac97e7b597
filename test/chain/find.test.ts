import { expect, test } from "bun:test";
import { createChain } from "../../src/chain/create-chain.ts";
import { type Address, NETWORK_NAMES } from "../../src/chain/networks.ts";
import { BRIDGED_USDC, IMPOSTOR_TOKEN, startAnvil } from "../support/anvil.ts";

const SOMEBODY = "0x00000000000000000000000000000000000000a1";
const SOMEBODY_ELSE = "0x00000000000000000000000000000000000000a2";
const inLowerCase = (address: Address) => address.toLowerCase() as Address;

test.each([...NETWORK_NAMES])(
  "a transfer on %s is found with its block, its depth and its parties",
  async (network) => {
    await using anvil = await startAnvil({ network });
    const chain = createChain({ network, urls: [anvil.url], deadlineMs: 60_000 });
    const txHash = await anvil.transfer({ to: SOMEBODY, amount: 1_003_217n });
    const blockNumber = await anvil.head();
    await anvil.mine(4);

    const block = (await anvil.rpc("eth_getBlockByNumber", [`0x${blockNumber.toString(16)}`, false])) as {
      hash: string;
      timestamp: string;
    };
    expect(await chain.find(txHash)).toEqual({
      kind: "mined",
      mined: {
        blockNumber,
        blockHash: block.hash,
        blockTimeMs: Number(block.timestamp) * 1_000,
        confirmations: 5n,
        finalized: false,
        transfers: [
          {
            logIndex: 0,
            token: inLowerCase(anvil.usdc),
            from: inLowerCase(anvil.accounts[0]?.address ?? SOMEBODY_ELSE),
            to: SOMEBODY,
            amount: 1_003_217n,
          },
        ],
      },
    });
  },
);

test("a transfer in the head block has one confirmation, and is final when the chain says so", async () => {
  await using anvil = await startAnvil({ network: "base" });
  const chain = createChain({ network: "base", urls: [anvil.url, anvil.url], deadlineMs: 60_000 });
  const txHash = await anvil.transfer({ to: SOMEBODY, amount: 5n });
  expect(await chain.find(txHash)).toMatchObject({ mined: { confirmations: 1n, finalized: false } });
  await anvil.mine(7);
  expect(await chain.find(txHash)).toMatchObject({ mined: { confirmations: 8n, finalized: false } });
  await anvil.mine(1);
  expect(await chain.find(txHash)).toMatchObject({ mined: { confirmations: 9n, finalized: true } });
});

test("every transfer of a transaction is found, whatever the token", async () => {
  await using anvil = await startAnvil({ network: "polygon" });
  const chain = createChain({ network: "polygon", urls: [anvil.url], deadlineMs: 60_000 });
  const both = await anvil.transferMany([
    { to: SOMEBODY, amount: 1n },
    { to: SOMEBODY_ELSE, amount: 2n },
  ]);
  expect(await chain.find(both)).toMatchObject({
    mined: {
      transfers: [
        { logIndex: 0, to: SOMEBODY, amount: 1n },
        { logIndex: 1, to: SOMEBODY_ELSE, amount: 2n },
      ],
    },
  });
  for (const token of [BRIDGED_USDC, IMPOSTOR_TOKEN]) {
    const txHash = await anvil.transfer({ to: SOMEBODY, amount: 3n, token });
    expect(await chain.find(txHash)).toMatchObject({
      mined: { transfers: [{ token: inLowerCase(token), to: SOMEBODY, amount: 3n }] },
    });
  }
});

test("a reverted transaction has failed and transfers nothing", async () => {
  await using anvil = await startAnvil({ network: "base" });
  const chain = createChain({ network: "base", urls: [anvil.url], deadlineMs: 60_000 });
  const txHash = await anvil.failingTransfer({ to: SOMEBODY });
  expect(await chain.find(txHash)).toMatchObject({ kind: "failed", mined: { transfers: [] } });
});

test("an unknown hash, and a transaction that is not in a block yet, are not found", async () => {
  await using anvil = await startAnvil({ network: "base" });
  const chain = createChain({ network: "base", urls: [anvil.url, anvil.url], deadlineMs: 60_000 });
  expect(await chain.find(`0x${"1".repeat(64)}`)).toEqual({ kind: "unknown" });

  await anvil.rpc("evm_setAutomine", [false]);
  const [from] = anvil.accounts;
  const waiting = await anvil.rpc("eth_sendTransaction", [{ from: from?.address, to: SOMEBODY, value: "0x1" }]);
  expect(await chain.find(String(waiting))).toEqual({ kind: "unknown" });
  await anvil.mine(1);
  expect(await chain.find(String(waiting))).toMatchObject({ kind: "mined", mined: { transfers: [] } });
});

test("a transfer that a reorganisation removes is not found", async () => {
  await using anvil = await startAnvil({ network: "base" });
  const chain = createChain({ network: "base", urls: [anvil.url], deadlineMs: 60_000 });
  const txHash = await anvil.transfer({ to: SOMEBODY, amount: 5n });
  await anvil.mine(3);
  expect(await chain.find(txHash)).toMatchObject({ kind: "mined", mined: { confirmations: 4n } });
  await anvil.reorg(4);
  expect(await chain.find(txHash)).toEqual({ kind: "unknown" });
});

test("a transfer that a reorganisation mines again keeps its index in the receipt, in another block", async () => {
  await using anvil = await startAnvil({ network: "base" });
  const chain = createChain({ network: "base", urls: [anvil.url], deadlineMs: 60_000 });
  const [first, second] = anvil.accounts.map(({ address }) => address);
  if (first === undefined || second === undefined) throw new Error("too few accounts");
  const [gone = "", kept = "0x"] = await anvil.transfersInOneBlock([
    { from: first, to: SOMEBODY, amount: 1n },
    { from: second, to: SOMEBODY_ELSE, amount: 2n },
  ]);
  expect(await chain.find(gone)).toMatchObject({ kind: "mined" });
  const before = await chain.find(kept);
  await anvil.reorg(1, [kept]);
  const after = await chain.find(kept);
  if (before.kind !== "mined" || after.kind !== "mined") throw new Error("not mined");
  expect(after.mined.blockHash).not.toBe(before.mined.blockHash);
  expect(after.mined.transfers).toEqual(before.mined.transfers);
  expect(await chain.find(gone)).toEqual({ kind: "unknown" });
});

test("the head is the chain's newest block", async () => {
  await using anvil = await startAnvil({ network: "ethereum" });
  const chain = createChain({ network: "ethereum", urls: [anvil.url], deadlineMs: 60_000 });
  expect(await chain.head()).toBe(await anvil.head());
  await anvil.mine(5);
  expect(await chain.head()).toBe(await anvil.head());
});
