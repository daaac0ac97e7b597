import { z } from "zod";
import type { Authorization, AuthorizationFinding } from "./chain.ts";
import { NETWORKS } from "./networks.ts";
import { NodeError, quantity, type RpcNode } from "./node.ts";

/** keccak256("AuthorizationUsed(address,bytes32)") (EIP-3009). */
const USED_TOPIC = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5";
/** Longer than a signature is valid on any network, and within what public nodes search in one call. */
export const MAX_BLOCKS_SEARCHED = 1_000;

const log = () =>
  z.object({
    transactionHash: z
      .string()
      .regex(/^0x[0-9a-f]{64}$/i)
      .toLowerCase(),
  });
const logs = z.lazy(() => z.array(log()).max(100));

/** Which transaction used a signed transfer, according to one node, within 1.5 s. */
export async function findAuthorization(
  node: RpcNode,
  { payer, nonce, after }: Authorization,
): Promise<AuthorizationFinding> {
  try {
    return await node.query(async (call) => {
      const head = await call("eth_blockNumber", [], (result) => quantity.parse(result));
      if (head <= after) return { kind: "unused", upTo: head };
      const furthest = after + BigInt(MAX_BLOCKS_SEARCHED);
      const upTo = head < furthest ? head : furthest;
      const filter = {
        address: NETWORKS[node.network].asset,
        topics: [USED_TOPIC, `0x${payer.slice(2).padStart(64, "0")}`, nonce],
        fromBlock: `0x${(after + 1n).toString(16)}`,
        toBlock: `0x${upTo.toString(16)}`,
      };
      const [log] = await call("eth_getLogs", [filter], (result) => logs.parse(result));
      return log === undefined ? { kind: "unused", upTo } : { kind: "used", txHash: log.transactionHash };
    });
  } catch (error) {
    if (error instanceof NodeError) return { kind: "unavailable" };
    throw error;
  }
}

/**
 * What several nodes' answers say together. One node that saw it is enough, because all nodes are asked again before
 * the transaction is credited; that it is unused, `quorum` nodes must say, of the blocks that all of these have searched.
 */
export function agreeOnUse(answers: AuthorizationFinding[], quorum: number): AuthorizationFinding {
  const used = answers.find(({ kind }) => kind === "used");
  if (used !== undefined) return used;
  const searched = answers.flatMap((answer) => (answer.kind === "unused" ? answer.upTo : []));
  const upTo = searched.sort((a, b) => Number(b - a))[quorum - 1];
  return upTo === undefined ? { kind: "unavailable" } : { kind: "unused", upTo };
}
