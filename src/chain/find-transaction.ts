import type { NodeAnswer } from "./agree.ts";
import { NodeTrouble, quantity, type RpcNode } from "./node.ts";
import { type Block, parseBlock, parseReceipt, readTransfers } from "./receipt.ts";

/**
 * What one node says of a transaction (billing.md, x402 2 and 3), within 3 s. A receipt counts only if its block is the
 * canonical one of that number: a node may go on serving receipts of blocks that a reorganisation removed.
 */
export async function findTransaction(node: RpcNode, txHash: string): Promise<NodeAnswer> {
  try {
    const [receipt, head] = await node.asking((ask) =>
      Promise.all([
        ask("eth_getTransactionReceipt", [txHash], (result) => parseReceipt(result, txHash)),
        ask("eth_blockNumber", [], (result) => quantity.parse(result)),
      ]),
    );
    if (receipt === null) return { kind: "unknown" };

    // Asked after the head: were the block gone by now, the head that counted it would not be believed.
    const { blockNumber, blockHash, succeeded, logs } = receipt;
    const [canonical, finalizedNumber] = await node.asking((ask) =>
      Promise.all([
        ask("eth_getBlockByNumber", [`0x${blockNumber.toString(16)}`, false], (result) =>
          parseBlockAt(result, blockNumber),
        ),
        // Some chains have no such tag.
        ask("eth_getBlockByNumber", ["finalized", false], (result) => parseBlock(result)?.number ?? null).catch(
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
        // The head may be of a moment before the block.
        confirmations: head < blockNumber ? 1n : head - blockNumber + 1n,
        finalized: finalizedNumber !== null && finalizedNumber >= blockNumber,
        transfers: await readTransfers(logs),
      },
    };
  } catch (error) {
    if (error instanceof NodeTrouble) return { kind: "silent" };
    throw error;
  }
}

/** A node that has a receipt and not its block is several nodes, of which one is behind: nothing follows from it. */
function parseBlockAt(result: unknown, number: bigint): Block {
  const block = parseBlock(result);
  if (block?.number !== number) throw new NodeTrouble("does not have the block of its own receipt");
  return block;
}
