import { type Clock, systemClock } from "../lib/clock.ts";
import { withTimeout } from "../lib/concurrency.ts";
import { agree } from "./agree.ts";
import type { Chain } from "./chain.ts";
import { agreeOnUse, findAuthorization } from "./find-authorization.ts";
import { findTransaction } from "./find-transaction.ts";
import type { NetworkName } from "./networks.ts";
import { NodeError, openNode, quantity, type RpcNode } from "./node.ts";

/** A single node is believed; of several, two must agree (docs/contract/billing.md, Nodes). */
export const QUORUM = 2;
/**
 * Shorter than the deadline of a call and of the caller, so that one node that hangs does not cost the others' answers.
 */
const HEAD_TIMEOUT_MS = 1_300;

/**
 * A network through its nodes. `urls`: http or https, one or more; a host that is listed twice counts twice. Makes no
 * calls, and does not load viem, before it is first used.
 */
export function createChain({
  network,
  urls,
  clock = systemClock,
  deadlineMs,
}: {
  network: NetworkName;
  urls: string[];
  clock?: Clock;
  /** For each question to a node, also that for its head; another one in tests. */
  deadlineMs?: number | undefined;
}): Chain {
  const nodes = urls.map((url) => openNode(network, url, clock, deadlineMs));
  const quorum = nodes.length > 1 ? QUORUM : 1;

  return {
    network,
    async head() {
      const timeoutMs = deadlineMs ?? HEAD_TIMEOUT_MS;
      const answers = await Promise.all(nodes.map((node) => withTimeout(headOf(node), timeoutMs)));
      const heads = answers.filter((head) => head !== null);
      return heads.sort((a, b) => Number(a - b))[0] ?? null;
    },
    async find(txHash) {
      return agree(await Promise.all(nodes.map((node) => findTransaction(node, txHash))), quorum);
    },
    async findAuthorization(authorization) {
      return agreeOnUse(await Promise.all(nodes.map((node) => findAuthorization(node, authorization))), quorum);
    },
    health: () => nodes.map((node) => node.health()),
  };
}

async function headOf(node: RpcNode): Promise<bigint | null> {
  try {
    return await node.query((call) => call("eth_blockNumber", [], (result) => quantity.parse(result)));
  } catch (error) {
    if (error instanceof NodeError) return null;
    throw error;
  }
}
