import { z } from "zod";
import { type Clock, systemClock } from "../lib/clock.ts";
import { NETWORKS, type NetworkName } from "./networks.ts";
import { NodeError, openNode } from "./node.ts";
import { parseBlock } from "./receipt.ts";

export interface NodeCheck {
  ok: boolean;
  /** What is wrong, or the newest block; names only the node's host. */
  detail: string;
}

const STALE_MS = 10 * 60_000;

/** For `roost doctor`: is the node reachable, on the right chain, up to date, and does it know the network's USDC? */
export async function checkNode(
  url: string,
  network: NetworkName,
  { clock = systemClock, deadlineMs }: { clock?: Clock; deadlineMs?: number } = {},
): Promise<NodeCheck> {
  const node = openNode(network, url, clock, deadlineMs);
  const at = node.health().node;
  try {
    const [block, code] = await node.query((call) =>
      Promise.all([
        call("eth_getBlockByNumber", ["latest", false], (result) => parseBlock(result)),
        call("eth_getCode", [NETWORKS[network].asset, "latest"], (result) => z.string().parse(result)),
      ]),
    );
    if (block === null) return { ok: false, detail: `${at} has no block` };
    const ageMs = clock.now() - block.timeMs;
    if (ageMs > STALE_MS) {
      return { ok: false, detail: `${at} is behind: its newest block is ${Math.round(ageMs / 60_000)} minutes old` };
    }
    if (!/^0x[0-9a-f]{2,}$/i.test(code)) return { ok: false, detail: `${at} does not know the USDC of ${network}` };
    return { ok: true, detail: `${at} is at block ${block.number}` };
  } catch (error) {
    if (error instanceof NodeError) return { ok: false, detail: `${at} ${error.message}` };
    throw error;
  }
}
