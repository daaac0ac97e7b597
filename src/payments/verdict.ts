import type { Match } from "./matching.ts";
import type { PaymentRow } from "./schema.ts";

/** What a transfer has become: one that was due is credited now. */
export type Outcome = Exclude<Match, { kind: "due" }> | { kind: "credited"; payment: PaymentRow };

/** What became of a transaction that somebody said was a payment. */
export type Verdict =
  /** Nothing can be said now. */
  | { kind: "unavailable" }
  /** In no block yet. */
  | { kind: "unknown" }
  /** In a block, and reverted. */
  | { kind: "failed" }
  | { kind: "mined"; outcomes: Outcome[] };

/** Whether another look would change nothing. */
export const isDecided = (verdict: Verdict): boolean =>
  verdict.kind === "failed" || (verdict.kind === "mined" && verdict.outcomes.every(({ kind }) => kind !== "shallow"));

/** Whether one of its transfers is credited, by this look or before it. */
export const hasCredited = (verdict: Verdict): boolean =>
  verdict.kind === "mined" && verdict.outcomes.some(({ kind }) => kind === "credited" || kind === "paid");
