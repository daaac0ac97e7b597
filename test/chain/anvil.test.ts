import { expect, test } from "bun:test";
import { getAddress } from "viem";
import { BRIDGED_USDC, IMPOSTOR_TOKEN, startAnvil, TEST_WEALTH } from "../support/anvil.ts";

const SOMEBODY = getAddress("0x00000000000000000000000000000000000000a1");
const SOMEBODY_ELSE = getAddress("0x00000000000000000000000000000000000000a2");

test("the test chain has the network's id, its token and rich accounts", async () => {
  await using anvil = await startAnvil({ network: "polygon" });
  expect(Number(await anvil.rpc("eth_chainId"))).toBe(137);
  const owner = anvil.accounts[9]?.address ?? SOMEBODY;
  for (const token of [anvil.usdc, BRIDGED_USDC, IMPOSTOR_TOKEN]) {
    expect(await anvil.balanceOf(owner, token)).toBe(TEST_WEALTH);
    await anvil.transfer({ from: owner, to: SOMEBODY, amount: 5n, token });
    expect(await anvil.balanceOf(SOMEBODY, token)).toBe(5n);
  }
});

test("a transfer is in the block that it made the head, and a failing one leaves nothing", async () => {
  await using anvil = await startAnvil({ network: "base" });
  const before = await anvil.head();
  await anvil.transfer({ to: SOMEBODY, amount: 5n });
  expect(await anvil.head()).toBe(before + 1n);
  await anvil.failingTransfer({ to: SOMEBODY });
  await anvil.transferMany([
    { to: SOMEBODY, amount: 1n },
    { to: SOMEBODY_ELSE, amount: 2n },
  ]);
  expect(await anvil.balanceOf(SOMEBODY)).toBe(6n);
  expect(await anvil.balanceOf(SOMEBODY_ELSE)).toBe(2n);
  await anvil.mine(3);
  expect(await anvil.head()).toBe(before + 6n);
});

test("a reorganisation drops what it is not told to keep", async () => {
  await using anvil = await startAnvil({ network: "ethereum" });
  const [, first, second] = anvil.accounts.map(({ address }) => address);
  if (first === undefined || second === undefined) throw new Error("too few accounts");
  const head = await anvil.head();
  await anvil.transfer({ from: first, to: SOMEBODY, amount: 1n });
  const kept = await anvil.transfer({ from: second, to: SOMEBODY, amount: 2n });
  await anvil.mine(2);
  await anvil.reorg(4, [kept]);
  expect(await anvil.head()).toBe(head + 4n);
  expect(await anvil.balanceOf(SOMEBODY)).toBe(2n);
  await anvil.reorg(4);
  expect(await anvil.balanceOf(SOMEBODY)).toBe(0n);
  expect(await anvil.balanceOf(first)).toBe(TEST_WEALTH);
});
