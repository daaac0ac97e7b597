import { expect, test } from "bun:test";
import { createWalletClient, getAddress, type Hex, http, numberToHex, parseSignature, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { BRIDGED_USDC, IMPOSTOR_TOKEN, startAnvil, TEST_WEALTH } from "../support/anvil.ts";
import { AUTHORIZATION } from "../support/usdc/authorization.ts";
import testUsdc from "../support/usdc/test-usdc.json";

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

test("a transfer is in the new head block, and a failing one leaves nothing", async () => {
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

test("the test token accepts a signed authorization once, in both forms of USDC", async () => {
  await using anvil = await startAnvil({ network: "base" });
  const [payer, sender] = anvil.accounts;
  if (payer === undefined || sender === undefined) throw new Error("too few accounts");
  const account = privateKeyToAccount(payer.privateKey);
  const authorization = {
    from: payer.address,
    to: SOMEBODY,
    value: 7n,
    validAfter: 0n,
    validBefore: 2n ** 40n,
  };
  const client = createWalletClient({
    account: sender.address,
    transport: http(anvil.url, { retryCount: 0, timeout: 120_000 }),
    pollingInterval: 20,
  }).extend(publicActions);

  const sign = (nonce: Hex) =>
    account.signTypedData({
      domain: { name: "USD Coin", version: "2", chainId: anvil.chainId, verifyingContract: anvil.usdc },
      ...AUTHORIZATION,
      message: { ...authorization, nonce },
    });
  const fields = (nonce: Hex) =>
    [
      authorization.from,
      authorization.to,
      authorization.value,
      authorization.validAfter,
      authorization.validBefore,
      nonce,
    ] as const;
  const call = { address: anvil.usdc, abi: testUsdc.abi, functionName: "transferWithAuthorization" };
  const send = async (args: unknown[]) => {
    const hash = await client.writeContract({ ...call, chain: null, args });
    expect(await anvil.mined(hash)).toBe(true);
  };

  const whole = numberToHex(1n, { size: 32 });
  const args = [...fields(whole), await sign(whole)];
  await send(args);
  expect(await anvil.balanceOf(SOMEBODY)).toBe(7n);
  await expect(client.simulateContract({ ...call, args })).rejects.toThrow("authorization is used or canceled");

  const split = numberToHex(2n, { size: 32 });
  const { r, s, yParity } = parseSignature(await sign(split));
  await send([...fields(split), 27 + yParity, r, s]);
  expect(await anvil.balanceOf(SOMEBODY)).toBe(14n);

  const forged = numberToHex(3n, { size: 32 });
  await expect(client.simulateContract({ ...call, args: [...fields(forged), await sign(split)] })).rejects.toThrow(
    "invalid signature",
  );
});
