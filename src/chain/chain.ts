import type { Address, NetworkName } from "./networks.ts";

/** An ERC-20 `Transfer` as a transaction's receipt tells it, of whatever contract. Addresses are checksummed. */
export interface Transfer {
  /**
   * The log's place in its own receipt, from 0. A reorganisation that mines the transaction again changes the block's
   * numbering of logs, and not this one.
   */
  logIndex: number;
  token: Address;
  from: Address;
  to: Address;
  /** In the token's smallest unit: micro-USDC for USDC. */
  amount: bigint;
}

export interface Mined {
  blockNumber: bigint;
  blockHash: string;
  blockTimeMs: number;
  /** head − block + 1, of the node that knows least. */
  confirmations: bigint;
  /** The node's `finalized` block is this one or a later one; false where a node has no such tag. */
  finalized: boolean;
  transfers: Transfer[];
}

/** What the nodes of a network agree on about one transaction. */
export type Finding =
  /** Too few nodes answered in time, or they contradict each other: nothing can be said. */
  | { kind: "unavailable"; detail: string }
  /** Not in a block of the canonical chain, as far as the nodes see. */
  | { kind: "unknown" }
  /** In a block, and reverted. */
  | { kind: "failed"; mined: Mined }
  | { kind: "mined"; mined: Mined };

/** A transfer of the network's USDC that its payer signed, for anybody to send (EIP-3009). */
export interface Authorization {
  /** In lower case, as `nonce`: 32 bytes, of which the payer uses no two alike. */
  payer: Address;
  nonce: string;
  /** A block's number: it was not sent before the next one. */
  after: bigint;
}

/** What became of a signed transfer. */
export type AuthorizationFinding =
  /** Too few nodes answered in time. */
  | { kind: "unavailable" }
  /** In none of the first thousand blocks behind `after`, as far as the nodes see. */
  | { kind: "unused" }
  /** At least one node says so, of this transaction. */
  | { kind: "used"; txHash: string };

export interface RpcHealth {
  network: NetworkName;
  /** Scheme, host and port alone: a path or query may hold a key. */
  node: string;
  /** Null until it was asked. */
  ok: boolean | null;
  /** What was wrong the last time; null where nothing was. */
  trouble: string | null;
  calls: number;
  failures: number;
  lastAnswerAt: number | null;
}

/**
 * One network, through its nodes (JSON-RPC URLs). All nodes are asked at once; a call waits 1.5 s. Where two or more are
 * configured, two must say the same before anything is found (billing.md, x402 5).
 */
export interface Chain {
  readonly network: NetworkName;
  /** The number of the newest block: the least that a node names, null where none answers within 1.5 s in all. */
  head(): Promise<bigint | null>;
  /** What became of a transaction; `txHash` in lower case. Never throws for what a node does. */
  find(txHash: string): Promise<Finding>;
  /** Which transaction used a signed transfer. Never throws for what a node does. */
  findAuthorization(authorization: Authorization): Promise<AuthorizationFinding>;
  health(): RpcHealth[];
}
