import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Authorization } from "../../src/chain/chain.ts";
import { createChain } from "../../src/chain/create-chain.ts";
import { decode, signPayment } from "../payers/settling.ts";
import { type Anvil, startAnvil } from "../support/anvil.ts";
import { type FacilitatorCall, startFacilitator, type TestFacilitator } from "../support/facilitator.ts";
import { type RpcProxy, startRpcProxy } from "../support/rpc-proxy.ts";

const SOMEBODY = "0x00000000000000000000000000000000000000a1";
const OTHER_NONCE = `0x${"0".repeat(64)}`;

let anvil: Anvil;
let facilitator: TestFacilitator;
let proxy: RpcProxy;

beforeAll(async () => {
  anvil = await startAnvil({ network: "base" });
  facilitator = startFacilitator([anvil]);
  proxy = startRpcProxy(anvil.url);
});
afterAll(async () => {
  await proxy.stop();
  await facilitator.stop();
  await anvil.stop();
});

/** Signs a transfer, sends it, and says what to look for. */
async function used(): Promise<{ authorization: Authorization; txHash: string }> {
  const [payer] = anvil.accounts;
  if (!payer) throw new Error("the chain has no accounts");
  const header = await signPayment(payer, SOMEBODY);
  const after = await anvil.head();
  const paymentPayload = decode(header["X-PAYMENT"] ?? "") as unknown as FacilitatorCall["paymentPayload"];
  const { nonce } = paymentPayload.payload.authorization;
  const paymentRequirements = { network: "base", asset: anvil.usdc } as FacilitatorCall["paymentRequirements"];
  const txHash = await facilitator.send({ x402Version: 1, paymentPayload, paymentRequirements });
  return { authorization: { payer: payer.address.toLowerCase() as `0x${string}`, nonce, after }, txHash };
}

test("the transaction that used a signature is found, and no other", async () => {
  const chain = createChain({ network: "base", urls: [anvil.url, proxy.url], deadlineMs: 60_000 });
  const { authorization, txHash } = await used();
  const second = await used();
  expect(await chain.findAuthorization(authorization)).toEqual({ kind: "used", txHash });
  expect(await chain.findAuthorization(second.authorization)).toEqual({ kind: "used", txHash: second.txHash });
  const { after } = second.authorization;
  const upTo = await anvil.head();
  for (const other of [
    { nonce: OTHER_NONCE },
    { payer: SOMEBODY as `0x${string}` },
    { after },
    { after: after + 99n },
  ]) {
    expect(await chain.findAuthorization({ ...authorization, ...other })).toEqual({ kind: "unused", upTo });
  }
});

test("a node that has not seen it does not hide it; that it is unused, two must say", async () => {
  const chain = createChain({ network: "base", urls: [anvil.url, proxy.url], deadlineMs: 60_000 });
  const { authorization, txHash } = await used();
  const unused = { ...authorization, nonce: OTHER_NONCE };

  proxy.lie((result, { method }) => (method === "eth_getLogs" ? [] : result));
  expect(await chain.findAuthorization(authorization)).toEqual({ kind: "used", txHash });
  proxy.lie((result, { method }) => {
    if (method === "eth_getLogs") throw new Error("block range is too large");
    return result;
  });
  expect(await chain.findAuthorization(authorization)).toEqual({ kind: "used", txHash });
  expect(await chain.findAuthorization(unused)).toEqual({ kind: "unavailable" });
  proxy.lie((result, { method }) => (method === "eth_getLogs" ? [{ transactionHash: 5 }] : result));
  expect(await chain.findAuthorization(unused)).toEqual({ kind: "unavailable" });
  proxy.pass();
  const upTo = await anvil.head();
  expect(await chain.findAuthorization(unused)).toEqual({ kind: "unused", upTo });
  proxy.lie((result, { method }) => (method === "eth_blockNumber" ? "0x1" : result));
  expect(await chain.findAuthorization(unused)).toEqual({ kind: "unused", upTo: 1n });
  proxy.pass();
});

test("no more than a thousand blocks are searched at once", async () => {
  const chain = createChain({ network: "base", urls: [proxy.url], deadlineMs: 60_000 });
  const after = await anvil.head();
  await anvil.mine(1_200);
  const { authorization } = await used();
  let span = 0n;
  proxy.lie((result, { method, params }) => {
    const [filter] = params as [{ fromBlock: string; toBlock: string }];
    if (method === "eth_getLogs") span = BigInt(filter.toBlock) - BigInt(filter.fromBlock) + 1n;
    return result;
  });
  expect(await chain.findAuthorization({ ...authorization, after })).toEqual({ kind: "unused", upTo: after + 1_000n });
  expect(span).toBe(1_000n);
  proxy.pass();
});
