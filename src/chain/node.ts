import { z } from "zod";
import { type Clock, systemClock } from "../lib/clock.ts";
import { lazily } from "../lib/lazily.ts";
import { OUTGOING } from "../limits/outgoing.ts";
import type { RpcHealth } from "./chain.ts";
import { NETWORKS, type NetworkName } from "./networks.ts";

/** Why a call failed. The message contains no path, query or text from the node: they may hold a key. */
export class NodeError extends Error {
  override readonly name = "NodeError";
}

/** Calls one JSON-RPC method; `parse` validates the raw result and throws if it is invalid. */
export type Call = <T>(method: string, params: unknown[], parse: (result: unknown) => T) => Promise<T>;

/** One JSON-RPC node. */
export interface RpcNode {
  readonly network: NetworkName;
  /**
   * Runs `work`, whose calls share a deadline of 1.5 s, and checks that the node is on the right chain. Throws
   * NodeError. Aborts calls that are still running when it ends.
   */
  query<T>(work: (call: Call) => Promise<T>): Promise<T>;
  /** `calls` counts queries, each of one or more JSON-RPC calls. */
  health(): RpcHealth;
}

const { deadlineMs: DEADLINE_MS, answerBytes: MAX_BODY_BYTES } = OUTGOING.rpc;
/** The chain id is checked again after this, in case a load balancer switches to a node of another chain. */
const CHAIN_ID_VALID_NS = 60_000_000_000n;

/** A JSON-RPC quantity of at most 64 bits. */
export const quantity = z
  .string()
  .regex(/^0x[0-9a-f]{1,16}$/i)
  .transform(BigInt);

/** `url`: http or https. Makes no call before the first query. */
export function openNode(
  network: NetworkName,
  url: string,
  clock: Clock = systemClock,
  deadlineMs: number = DEADLINE_MS,
): RpcNode {
  const { chainId } = NETWORKS[network];
  const health: RpcHealth = {
    network,
    node: new URL(url).origin,
    ok: null,
    lastError: null,
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
      // `query` aborts it: viem's own timeout does not cover the body of an answer.
      timeout: 0,
      maxResponseBodySize: MAX_BODY_BYTES,
      fetchOptions: { redirect: "error" },
    })({ retryCount: 0 });
  });

  async function query<T>(work: (call: Call) => Promise<T>): Promise<T> {
    const { request } = await transport();
    const stop = new AbortController();
    const timer = setTimeout(
      () => stop.abort(new NodeError(`does not answer within ${deadlineMs / 1000} s`)),
      deadlineMs,
    );
    const call: Call = async (method, params, parse) => {
      const { result, error } = await request({ method, params } as Parameters<typeof request>[0], {
        signal: stop.signal,
      });
      // Some nodes write `"error": null` beside a result.
      if (error !== undefined && error !== null) throw new NodeError(`answers ${method} with an error`);
      return parse(result);
    };
    health.calls += 1;
    try {
      const [answer] = await Promise.all([work(call), checkChainId(call)]);
      health.ok = true;
      health.lastError = null;
      health.lastAnswerAt = clock.now();
      return answer;
    } catch (error) {
      const lastError = await toNodeError(error, stop.signal);
      health.ok = false;
      health.lastError = lastError.message;
      health.failures += 1;
      throw lastError;
    } finally {
      clearTimeout(timer);
      stop.abort();
    }
  }

  async function checkChainId(call: Call): Promise<void> {
    const now = clock.monotonicNs();
    if (chainIdSeenAtNs !== null && now - chainIdSeenAtNs < CHAIN_ID_VALID_NS) return;
    chainIdSeenAtNs = null;
    const answered = await call("eth_chainId", [], (result) => quantity.parse(result));
    if (answered !== BigInt(chainId)) throw new NodeError(`answers for chain ${answered} instead of ${chainId}`);
    chainIdSeenAtNs = now;
  }

  return { network, query, health: () => ({ ...health }) };
}

async function toNodeError(error: unknown, signal: AbortSignal): Promise<NodeError> {
  if (error instanceof NodeError) return error;
  if (signal.aborted && signal.reason instanceof NodeError) return signal.reason;
  if (error instanceof z.ZodError) return new NodeError("gives an invalid answer");
  const { HttpRequestError, ResponseBodyTooLargeError } = await import("viem");
  if (error instanceof ResponseBodyTooLargeError) return new NodeError("answers with more than 2 MiB");
  if (error instanceof HttpRequestError && error.status !== undefined) {
    return new NodeError(`answers with HTTP status ${error.status}`);
  }
  return new NodeError("cannot be reached, or gives an invalid answer");
}
