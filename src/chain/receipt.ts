import { z } from "zod";
import type { Transfer } from "./chain.ts";
import { NodeError, quantity } from "./node.ts";

const MAX_LOGS = 2_000;

const hash = () =>
  z
    .string()
    .regex(/^0x[0-9a-f]{64}$/i)
    .toLowerCase();
const log = z.lazy(() =>
  z.object({
    address: z
      .string()
      .regex(/^0x[0-9a-f]{40}$/i)
      .toLowerCase(),
    topics: z.array(hash()).max(4),
    data: z.string(),
  }),
);
export type Log = z.infer<typeof log>;

const receipt = z.lazy(() =>
  z
    .object({
      transactionHash: hash(),
      blockHash: hash().nullable(),
      blockNumber: quantity.nullable(),
      status: z.enum(["0x0", "0x1"]),
      logs: z.array(log).max(MAX_LOGS),
    })
    .nullable(),
);

const block = z.lazy(() =>
  z
    .object({
      number: quantity,
      hash: hash(),
      // At most 36 bits, so that the milliseconds are a safe integer.
      timestamp: z
        .string()
        .regex(/^0x[0-9a-f]{1,9}$/i)
        .transform((seconds) => Number(seconds) * 1_000),
    })
    .nullable(),
);

export interface Receipt {
  blockHash: string;
  blockNumber: bigint;
  succeeded: boolean;
  logs: Log[];
}

export interface Block {
  number: bigint;
  hash: string;
  timeMs: number;
}

/**
 * Reads the result of `eth_getTransactionReceipt`; null for a transaction that is not in a block. Throws if it is
 * invalid.
 */
export function parseReceipt(result: unknown, txHash: string): Receipt | null {
  const parsed = receipt.parse(result);
  if (parsed === null) return null;
  const { transactionHash, blockHash, blockNumber, status, logs } = parsed;
  if (transactionHash !== txHash) throw new NodeError("answers for another transaction");
  if (blockHash === null || blockNumber === null) return null;
  return { blockHash, blockNumber, succeeded: status === "0x1", logs };
}

/** Reads the result of `eth_getBlockByNumber`; null for a block that does not exist. Throws if it is invalid. */
export function parseBlock(result: unknown): Block | null {
  const parsed = block.parse(result);
  return parsed === null ? null : { number: parsed.number, hash: parsed.hash, timeMs: parsed.timestamp };
}

/** keccak256("Transfer(address,address,uint256)"). */
const TRANSFER_TOPIC = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const ADDRESS_TOPIC = /^0x0{24}[0-9a-f]{40}$/;
const WORD = /^0x[0-9a-f]{64}$/i;

/**
 * The ERC-20 transfers among a receipt's logs, of all contracts. Leaves out lookalikes: an ERC-721 `Transfer` has the
 * same first topic and three more. Addresses stay in lower case: anybody may present a transaction of thousands of
 * transfers, and each checksum is a hash.
 */
export function readTransfers(logs: Log[]): Transfer[] {
  return logs.flatMap(({ address, topics: [topic, from, to, ...more], data }, logIndex) => {
    if (topic !== TRANSFER_TOPIC || from === undefined || to === undefined || more.length > 0) return [];
    if (!ADDRESS_TOPIC.test(from) || !ADDRESS_TOPIC.test(to) || !WORD.test(data)) return [];
    return {
      logIndex,
      token: `0x${address.slice(2)}`,
      from: `0x${from.slice(-40)}`,
      to: `0x${to.slice(-40)}`,
      amount: BigInt(data),
    };
  });
}
