import { numberToHex } from "viem";
import { NETWORKS } from "../../src/chain/networks.ts";
import { type RpcProxy, startRpcProxy } from "./rpc-proxy.ts";

/** A node of Base that has blocks, but no transactions except for one that has failed. */
export function openChain(failed?: string): RpcProxy & AsyncDisposable {
  const node = startRpcProxy("http://127.0.0.1:9");
  const block = { number: "0x64", hash: `0x${"2".repeat(64)}`, timestamp: numberToHex(Math.floor(Date.now() / 1000)) };
  const receipt = {
    transactionHash: failed,
    blockHash: block.hash,
    blockNumber: block.number,
    status: "0x0",
    logs: [],
  };
  node.answer(({ id, method, params }) => {
    const results: Record<string, unknown> = {
      eth_chainId: numberToHex(NETWORKS.base.chainId),
      eth_blockNumber: block.number,
      eth_getBlockByNumber: block,
      eth_getTransactionReceipt: params[0] === failed ? receipt : null,
    };
    return Response.json({ jsonrpc: "2.0", id, result: results[method] ?? null });
  });
  return { ...node, calls: node.calls, [Symbol.asyncDispose]: node.stop };
}
