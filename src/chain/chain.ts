import type { Address, NetworkName } from "./networks.ts";

/** An ERC-20 `Transfer` in a transaction's receipt, of any contract. Addresses are in lower case. */
export interface Transfer {
  /**
   * The log's index in its own receipt, from 0. Unlike the index in the block, it stays the same when a reorganisation
   * mines the transaction again.
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
  /** head − block + 1, of the node that is furthest behind. */
  confirmations: bigint;
  /** Whether the `finalized` block is this one or a later one; false if the node does not support that tag. */
  finalized: boolean;
  transfers: Transfer[];
}

/** What the nodes of a network agree on about one transaction. */
export type Finding =
  /** Too few nodes answered in time, or they contradict each other. */
  | { kind: "unavailable"; detail: string }
  /** Not in a block of the canonical chain, according to the nodes. */
  | { kind: "unknown" }
  /** In a block, and reverted. */
  | { kind: "failed"; mined: Mined }
  | { kind: "mined"; mined: Mined };

/** A transfer of the network's USDC that its payer has signed and anybody may submit (EIP-3009). */
export interface Authorization {
  /** In lower case, as is `nonce`: 32 bytes, unique for the payer. */
  payer: Address;
  nonce: string;
  /** The number of a block; the transfer was submitted after it. */
  after: bigint;
}

/** What became of a signed transfer. */
export type AuthorizationFinding =
  /** Too few nodes answered in time. */
  | { kind: "unavailable" }
  /**
   * In none of the blocks after `after` and up to `upTo`, according to the nodes: their newest one, or the thousandth. Not
   * after `after` if they have got no further.
   */
  | { kind: "unused"; upTo: bigint }
  /** At least one node says that this transaction used it. */
  | { kind: "used"; txHash: string };

export interface RpcHealth {
  network: NetworkName;
  /** Only scheme, host and port: a path or query may hold a key. */
  node: string;
  /** Null before the first call. */
  ok: boolean | null;
  /** Why the last call failed; null if it succeeded. */
  lastError: string | null;
  calls: number;
  failures: number;
  lastAnswerAt: number | null;
}

/**
 * One network, through its nodes (JSON-RPC URLs). All nodes are called at once, with a timeout of 1.5 s. If two or more
 * are configured, two must agree (docs/contract/billing.md, Nodes).
 */
export interface Chain {
  readonly network: NetworkName;
  /** The number of the newest block: the lowest that a node reports, null if none answers within 1.5 s. */
  head(): Promise<bigint | null>;
  /** What became of a transaction; `txHash` in lower case. Never throws because of a node. */
  find(txHash: string): Promise<Finding>;
  /** Which transaction used a signed transfer. Never throws because of a node. */
  findAuthorization(authorization: Authorization): Promise<AuthorizationFinding>;
  health(): RpcHealth[];
}
