import type { Micros } from "../lib/money.ts";

/** What became of the proof of payment that a request carried. */
export type Payment =
  /** Credited to the presenter's account by this request, or by one beside it. */
  | { kind: "credited"; transactionId: string; amount: Micros; headers: Record<string, string> }
  /** Credited to the presenter's account before. */
  | { kind: "known" }
  | Refusal;

/** Not accepted, or not yet. */
export interface Refusal {
  kind: "refused";
  reason: string;
  retryAfterSeconds?: number;
  /** The presenter's own invoice that the transfer is meant for: the one to quote again, lest it be paid twice. */
  invoiceId?: string;
}
