#!/usr/bin/env node
/**
 * A program with a wallet: it asks Roost for an instance, gets 402, pays the quote in USDC, and repeats the request
 * with the transaction's hash until the payment has enough confirmations. No third party is involved.
 *
 *   ROOST_URL=http://127.0.0.1:7373  ROOST_API_KEY=rst_live_…
 *   WALLET_KEY=0x…                   the private key of a wallet with USDC, and some ether for the fee
 *   RPC_URL=https://…                a node of the network below
 *   NETWORK=base                     or ethereum, polygon
 */
import { createWalletClient, http, parseAbi, parseUnits, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";

const { ROOST_URL, ROOST_API_KEY, WALLET_KEY, RPC_URL, NETWORK = "base" } = process.env;
const USDC = parseAbi(["function transfer(address to, uint256 amount) returns (bool)"]);
/** The most that this program may pay without asking somebody. */
const MAX_AMOUNT = parseUnits("2", 6);

async function createInstance(name, payment) {
  const response = await fetch(new URL("/v1/instances", ROOST_URL), {
    method: "POST",
    headers: {
      "X-API-Key": ROOST_API_KEY,
      "Content-Type": "application/json",
      ...(payment && { "X-PAYMENT": JSON.stringify(payment) }),
    },
    body: JSON.stringify({ name }),
  });
  const retryAfter = Number(response.headers.get("retry-after"));
  return { code: response.status, retryAfter, body: await response.json() };
}

/** Pays a quote on this wallet's network; returns the proof once the transfer is in a block. */
async function pay(quote) {
  const option = quote.options.find(({ network }) => network === NETWORK);
  if (!option) throw new Error(`this host accepts no payments on ${NETWORK}`);
  const amount = parseUnits(option.amount, 6);
  if (amount > MAX_AMOUNT) throw new Error(`${option.amount} USDC is more than this program may pay`);
  const account = privateKeyToAccount(WALLET_KEY);
  const wallet = createWalletClient({ account, transport: http(RPC_URL), pollingInterval: 1_000 }).extend(
    publicActions,
  );
  if ((await wallet.getChainId()) !== option.chainId) throw new Error(`${RPC_URL} is not a node of ${NETWORK}`);
  // Exactly this amount: its last digits tell the host who has paid.
  const txHash = await wallet.writeContract({
    chain: null,
    address: option.asset,
    abi: USDC,
    functionName: "transfer",
    args: [option.recipient, amount],
  });
  await wallet.waitForTransactionReceipt({ hash: txHash, timeout: 120_000 });
  return { txHash, network: NETWORK };
}

let answer = await createInstance("made by a program");
if (answer.code === 402) {
  const quote = answer.body.x402;
  console.log(`402  ${answer.body.error.message}`);
  const payment = await pay(quote);
  console.log(`paid ${quote.amount} USDC on ${payment.network} to ${quote.recipient}, ${payment.txHash}`);
  for (let tries = 0; tries < 60; tries++) {
    answer = await createInstance("made by a program", payment);
    // With Retry-After, the payment is not rejected: it needs more confirmations, or cannot be verified right now.
    if (answer.code !== 402 || !answer.retryAfter) break;
    console.log(`402  ${answer.body.error.message}`);
    await new Promise((resolve) => setTimeout(resolve, answer.retryAfter * 1000));
  }
}
if (answer.code !== 201) throw new Error(`${answer.code}: ${answer.body.error.message}`);
console.log(`201  ${answer.body.instanceId} is ${answer.body.status}`);
