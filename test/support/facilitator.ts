import { createWalletClient, type Hex, http, parseSignature, publicActions, recoverTypedDataAddress } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import type { Anvil } from "./anvil.ts";
import { AUTHORIZATION } from "./usdc/authorization.ts";
import testUsdc from "./usdc/test-usdc.json";

/** The body of a request to a facilitator, in either version of the protocol. */
export interface FacilitatorCall {
  x402Version: 1 | 2;
  paymentPayload: {
    x402Version: number;
    scheme?: string;
    network?: string;
    accepted?: unknown;
    payload: {
      signature: Hex;
      authorization: {
        from: Hex;
        to: Hex;
        value: string;
        validAfter: string;
        validBefore: string;
        nonce: Hex;
      };
    };
  };
  paymentRequirements: {
    scheme: string;
    network: string;
    asset: Hex;
    payTo: Hex;
    maxAmountRequired?: string;
    amount?: string;
    resource?: string;
    extra: { name: string; version: string };
  };
}

type Path = "/supported" | "/verify" | "/settle";

/** A facilitator of the x402 protocol for the given chains, on a free port of the loopback. */
export interface TestFacilitator extends AsyncDisposable {
  readonly url: string;
  /** The requests so far. */
  readonly calls: { path: Path; body: FacilitatorCall | null }[];
  count(path: Path): number;
  /** Replaces the response for `path`; `honest` does what it would otherwise do, and returns its response. */
  misbehave(path: Path, answer: (honest: () => Promise<Response>) => Response | Promise<Response>): void;
  behave(): void;
  /** Sends the transfer as `/settle` does, and returns the transaction's hash. Throws if the chain rejects it. */
  send(call: FacilitatorCall): Promise<Hex>;
  stop(): Promise<void>;
}

const NAMES = { base: "eip155:8453", ethereum: "eip155:1", polygon: "eip155:137" };

/** Pays for the gas with the chain's last account. Checks what a facilitator must: signature, balance, time, nonce. */
export function startFacilitator(chains: readonly Anvil[]): TestFacilitator {
  const calls: TestFacilitator["calls"] = [];
  const misbehaviour = new Map<Path, (honest: () => Promise<Response>) => Response | Promise<Response>>();

  const kinds = chains.flatMap(({ network }) => [
    { x402Version: 1, scheme: "exact", network },
    { x402Version: 2, scheme: "exact", network: NAMES[network] },
  ]);
  const signers = { "eip155:*": chains.map(({ accounts }) => accounts.at(-1)?.address) };
  const chainOf = ({ paymentRequirements: { network } }: FacilitatorCall): Anvil => {
    const chain = chains.find((one) => one.network === network || NAMES[one.network] === network);
    if (!chain) throw new Error(`no chain with the name ${network}`);
    return chain;
  };
  const clientOf = (chain: Anvil) => {
    const payer = chain.accounts.at(-1);
    if (!payer) throw new Error("the chain has no accounts");
    const transport = http(chain.url, { retryCount: 0, timeout: 120_000 });
    const account = privateKeyToAccount(payer.privateKey);
    return createWalletClient({ account, transport, pollingInterval: 20 }).extend(publicActions);
  };
  const contractOf = (call: FacilitatorCall) => ({ address: call.paymentRequirements.asset, abi: testUsdc.abi });

  /** The protocol's code for what is wrong; null if nothing is. */
  async function faultOf(call: FacilitatorCall): Promise<string | null> {
    const { paymentPayload, paymentRequirements, x402Version } = call;
    const { signature, authorization } = paymentPayload.payload;
    const chain = chainOf(call);
    if (paymentPayload.x402Version !== x402Version) return "invalid_x402_version";
    const { name, version } = paymentRequirements.extra;
    const message = {
      from: authorization.from,
      to: authorization.to,
      value: BigInt(authorization.value),
      validAfter: BigInt(authorization.validAfter),
      validBefore: BigInt(authorization.validBefore),
      nonce: authorization.nonce,
    };
    const signer = await recoverTypedDataAddress({
      domain: { name, version, chainId: chain.chainId, verifyingContract: paymentRequirements.asset },
      ...AUTHORIZATION,
      message,
      signature,
    }).catch(() => null);
    if (signer?.toLowerCase() !== authorization.from.toLowerCase()) return "invalid_exact_evm_payload_signature";
    if (authorization.to.toLowerCase() !== paymentRequirements.payTo.toLowerCase()) {
      return "invalid_exact_evm_payload_recipient_mismatch";
    }
    const asked = BigInt(paymentRequirements.maxAmountRequired ?? paymentRequirements.amount ?? "0");
    if (message.value < asked) return "invalid_exact_evm_payload_authorization_value";
    const client = clientOf(chain);
    const { timestamp } = await client.getBlock();
    if (message.validBefore <= timestamp) return "invalid_exact_evm_payload_authorization_valid_before";
    const args = [authorization.from, authorization.nonce];
    const isUsed = await client.readContract({ ...contractOf(call), functionName: "authorizationState", args });
    if (isUsed) return "invalid_transaction_state";
    return (await chain.balanceOf(authorization.from)) < message.value ? "insufficient_funds" : null;
  }

  async function send(call: FacilitatorCall): Promise<Hex> {
    const { signature, authorization } = call.paymentPayload.payload;
    const { from, to, value, validAfter, validBefore, nonce } = authorization;
    const { r, s, yParity } = parseSignature(signature);
    const chain = chainOf(call);
    const hash = await clientOf(chain).writeContract({
      ...contractOf(call),
      functionName: "transferWithAuthorization",
      args: [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce, 27 + yParity, r, s],
      chain: null,
    });
    if (!(await chain.mined(hash))) throw new Error("the transfer was reverted");
    return hash;
  }

  async function verify(call: FacilitatorCall): Promise<Response> {
    const invalidReason = await faultOf(call);
    const payer = call.paymentPayload.payload.authorization.from;
    return Response.json(invalidReason === null ? { isValid: true, payer } : { isValid: false, invalidReason, payer });
  }

  async function settle(call: FacilitatorCall): Promise<Response> {
    const { network } = call.paymentRequirements;
    const payer = call.paymentPayload.payload.authorization.from;
    const failed = (errorReason: string) =>
      Response.json({ success: false, errorReason, transaction: "", network, payer });
    const fault = await faultOf(call);
    if (fault !== null) return failed(fault);
    try {
      return Response.json({ success: true, transaction: await send(call), network, payer });
    } catch {
      return failed("invalid_transaction_state");
    }
  }

  async function honest(path: string, body: FacilitatorCall | null): Promise<Response> {
    if (path === "/supported") return Response.json({ kinds, extensions: [], signers });
    if (body === null) return new Response("no body", { status: 400 });
    return path === "/verify" ? verify(body) : settle(body);
  }

  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    development: false,
    async fetch(request) {
      const path = new URL(request.url).pathname.replace("/facilitator", "") as Path;
      const body = request.method === "POST" ? ((await request.json()) as FacilitatorCall) : null;
      calls.push({ path, body });
      const answer = () => honest(path, body);
      return (misbehaviour.get(path) ?? ((behaviour) => behaviour()))(answer);
    },
  });
  const stop = () => server.stop(true);

  return {
    // With a path, like facilitators that share a host with something else.
    url: `http://127.0.0.1:${server.port}/facilitator/`,
    calls,
    count: (path) => calls.filter((call) => call.path === path).length,
    misbehave: (path, answer) => void misbehaviour.set(path, answer),
    behave: () => misbehaviour.clear(),
    send,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
