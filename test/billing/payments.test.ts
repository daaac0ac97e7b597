import { expect, test } from "bun:test";
import type { NetworkName } from "../../src/chain/networks.ts";
import { balanceOf, launch, quoteFor, startPaying } from "./paying.ts";

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
  const began = performance.now();
  const { status, body } = await launch(person, txHash, network);
  console.log(network, performance.now() - began, body.error);
  expect(status).toBe(201);
  expect(await balanceOf(person)).toBe(quote.amount);
});
