import { z } from "zod";
import { type Clock, systemClock } from "../lib/clock.ts";
import { lazily } from "../lib/lazily.ts";
import { OUTGOING } from "../limits/outgoing.ts";
import type { RpcHealth } from "./chain.ts";
import { NETWORKS, type NetworkName } from "./networks.ts";

/** Why a node's answer is worth nothing. The message names no path, query or word of the node's: they may hold a key. */
export class NodeTrouble extends Error {
  override readonly name = "NodeTrouble";
}

/** Asks one JSON-RPC method; `parse` judges the raw result and throws for what it does not understand. */
export type Ask = <T>(method: string, params: unknown[], parse: (result: unknown) => T) => Promise<T>;

/** One JSON-RPC node. */
export interface RpcNode {
  readonly network: NetworkName;
  /**
   * What `work` makes of what it asks, all of it within 1.5 s, and only if the node is of the right chain. Throws
   * NodeTrouble. Nothing that was asked is left running.
   */
  asking<T>(work: (ask: Ask) => Promise<T>): Promise<T>;
  /** Times asked, each of one or more calls that are made at once. */
  health(): RpcHealth;
}

const { deadlineMs: LIMIT_MS, answerBytes: MAX_BODY_BYTES } = OUTGOING.rpc;
/** A node that a load balancer swaps for one of another chain is noticed within this. */
const CHAIN_ID_IS_KNOWN_NS = 60_000_000_000n;

/** A number as JSON-RPC writes it, of at most 64 bits. */
export const quantity = z
  .string()
  .regex(/^0x[0-9a-f]{1,16}$/i)
  .transform(BigInt);

/** `url`: http or https. Nothing is asked until something is wanted. */
export function openNode(network: NetworkName, url: string, clock: Clock = systemClock): RpcNode {
  const { chainId } = NETWORKS[network];
  const health: RpcHealth = {
    network,
    node: new URL(url).origin,
    ok: null,
    trouble: null,
    calls: 0,
    failures: 0,
    lastAnswerAt: null,
  };
  let chainIdSeenAtNs: bigint | null = null;
  const transport = lazily(async () => {
    const { http } = await import("viem");
    return http(url, {
      raw: true,
      retryCount: 0,
      // The signal of `asking` does it: viem's own limit ends with the head of an answer.
      timeout: 0,
      maxResponseBodySize: MAX_BODY_BYTES,
      fetchOptions: { redirect: "error" },
    })({ retryCount: 0 });
  });

  async function asking<T>(work: (ask: Ask) => Promise<T>): Promise<T> {
    const { request } = await transport();
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(new NodeTrouble("does not answer within 1.5 s")), LIMIT_MS);
    const ask: Ask = async (method, params, parse) => {
      const { result, error } = await request({ method, params } as Parameters<typeof request>[0], {
        signal: stop.signal,
      });
      // Some nodes write `"error": null` beside a result.
      if (error !== undefined && error !== null) throw new NodeTrouble(`answers ${method} with an error`);
      return parse(result);
    };
    health.calls += 1;
    try {
      const [answer] = await Promise.all([work(ask), checkChainId(ask)]);
      health.ok = true;
      health.trouble = null;
      health.lastAnswerAt = clock.now();
      return answer;
    } catch (error) {
      const trouble = await troubleOf(error, stop.signal);
      health.ok = false;
      health.trouble = trouble.message;
      health.failures += 1;
      throw trouble;
    } finally {
      clearTimeout(timer);
      stop.abort();
    }
  }

  async function checkChainId(ask: Ask): Promise<void> {
    const now = clock.monotonicNs();
    if (chainIdSeenAtNs !== null && now - chainIdSeenAtNs < CHAIN_ID_IS_KNOWN_NS) return;
    chainIdSeenAtNs = null;
    const answered = await ask("eth_chainId", [], (result) => quantity.parse(result));
    if (answered !== BigInt(chainId)) throw new NodeTrouble(`answers for chain ${answered} instead of ${chainId}`);
    chainIdSeenAtNs = now;
  }

  return { network, asking, health: () => ({ ...health }) };
}

async function troubleOf(error: unknown, signal: AbortSignal): Promise<NodeTrouble> {
  if (error instanceof NodeTrouble) return error;
  if (signal.aborted && signal.reason instanceof NodeTrouble) return signal.reason;
  if (error instanceof z.ZodError) return new NodeTrouble("answers with what is not understood");
  const { HttpRequestError, ResponseBodyTooLargeError } = await import("viem");
  if (error instanceof ResponseBodyTooLargeError) return new NodeTrouble("answers with more than 2 MiB");
  if (error instanceof HttpRequestError && error.status !== undefined) {
    return new NodeTrouble(`answers with HTTP status ${error.status}`);
  }
  return new NodeTrouble("cannot be reached, or answers with what is not understood");
}
