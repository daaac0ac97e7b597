import type { Micros } from "../lib/money.ts";

/** What became of the proof of payment that a request carried. */
export type Payment =
  /** Credited to the presenter's account by this request, or by one beside it. */
  | { kind: "credited"; transactionId: string; amount: Micros; headers: Record<string, string> }
  /** Credited to the presenter's account before. */
  | { kind: "known" }
  /** Not accepted, or not yet. */
  | { kind: "refused"; reason: string; retryAfterSeconds?: number };
