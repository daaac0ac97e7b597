import type { Micros } from "../lib/money.ts";

/** The outcome of a request's proof of payment. */
export type Payment =
  /** Credited to the presenter's account by this request, or by a concurrent one. */
  | { kind: "credited"; transactionId: string; amount: Micros; headers: Record<string, string> }
  /** Credited to the presenter's account earlier. */
  | { kind: "known" }
  | Refusal;

/** Not accepted, or not yet. */
export interface Refusal {
  kind: "refused";
  reason: string;
  retryAfterSeconds?: number;
  /** The presenter's invoice that the transfer is for: it is quoted again, so that it is not paid twice. */
  invoiceId?: string;
}
