import type { NodeAnswer } from "./agree.ts";
import { NodeError, quantity, type RpcNode } from "./node.ts";
import { type Block, parseBlock, parseReceipt, readTransfers } from "./receipt.ts";

/**
 * What one node says of a transaction (docs/contract/billing.md, Proofs), within 3 s. A receipt counts only if its
 * block is canonical: a node may still serve receipts of blocks that a reorganisation removed.
 */
export async function findTransaction(node: RpcNode, txHash: string): Promise<NodeAnswer> {
  try {
    const [receipt, head] = await node.query((call) =>
      Promise.all([
        call("eth_getTransactionReceipt", [txHash], (result) => parseReceipt(result, txHash)),
        call("eth_blockNumber", [], (result) => quantity.parse(result)),
      ]),
    );
    if (receipt === null) return { kind: "unknown" };

    // Asked after the head, so that a block removed in between is noticed.
    const { blockNumber, blockHash, succeeded, logs } = receipt;
    const [canonical, finalizedNumber] = await node.query((call) =>
      Promise.all([
        call("eth_getBlockByNumber", [`0x${blockNumber.toString(16)}`, false], (result) =>
          parseBlockAt(result, blockNumber),
        ),
        // Some chains do not support this tag.
        call("eth_getBlockByNumber", ["finalized", false], (result) => parseBlock(result)?.number ?? null).catch(
          () => null,
        ),
      ]),
    );
    if (canonical.hash !== blockHash) return { kind: "unknown" };
    return {
      kind: succeeded ? "mined" : "failed",
      mined: {
        blockNumber,
        blockHash,
        blockTimeMs: canonical.timeMs,
        // The head may have been read just before the block.
        confirmations: head < blockNumber ? 1n : head - blockNumber + 1n,
        finalized: finalizedNumber !== null && finalizedNumber >= blockNumber,
        transfers: readTransfers(logs),
      },
    };
  } catch (error) {
    if (error instanceof NodeError) return { kind: "silent" };
    throw error;
  }
}

/** A load balancer may answer from several nodes, one of which is behind: then nothing can be concluded. */
function parseBlockAt(result: unknown, number: bigint): Block {
  const block = parseBlock(result);
  if (block?.number !== number) throw new NodeError("does not have the block of its own receipt");
  return block;
}
