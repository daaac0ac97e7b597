import { within } from "../lib/bounds.ts";
import { type Clock, systemClock } from "../lib/clock.ts";
import { agree } from "./agree.ts";
import type { Chain } from "./chain.ts";
import { agreeOnUse, findAuthorization } from "./find-authorization.ts";
import { findTransaction } from "./find-transaction.ts";
import type { NetworkName } from "./networks.ts";
import { NodeTrouble, openNode, quantity, type RpcNode } from "./node.ts";

/** With one node it is believed alone; with more, two must say the same. */
const QUORUM = 2;
/** Less than a node has to answer in, and than who asks waits: one that hangs must not take the others' word with it. */
const HEAD_LIMIT_MS = 1_300;

/**
 * A network through its nodes. `urls`: http or https, one or more; a host that is named twice counts twice. Nothing is
 * asked, and viem not loaded, until something is wanted.
 */
export function createChain({
  network,
  urls,
  clock = systemClock,
}: {
  network: NetworkName;
  urls: string[];
  clock?: Clock;
}): Chain {
  const nodes = urls.map((url) => openNode(network, url, clock));
  const quorum = nodes.length > 1 ? QUORUM : 1;

  return {
    network,
    async head() {
      const heads = (await Promise.all(nodes.map((node) => within(headOf(node), HEAD_LIMIT_MS)))).filter(
        (head) => head !== null,
      );
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
    return await node.asking((ask) => ask("eth_blockNumber", [], (result) => quantity.parse(result)));
  } catch (error) {
    if (error instanceof NodeTrouble) return null;
    throw error;
  }
}
