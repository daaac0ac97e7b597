import type { Match } from "./match-transfers.ts";
import type { PaymentRow } from "./schema.ts";

/** The outcome for a transfer: one that was due is credited now. */
export type Outcome = Exclude<Match, { kind: "due" }> | { kind: "credited"; payment: PaymentRow };

/** The outcome for a transaction presented as a payment. */
export type Verdict =
  /** Cannot be decided now. */
  | { kind: "unavailable" }
  /** In no block yet. */
  | { kind: "unknown" }
  /** In a block, and reverted. */
  | { kind: "failed" }
  | { kind: "mined"; outcomes: Outcome[] };

/** Whether checking again would change nothing. */
export const isDecided = (verdict: Verdict): boolean =>
  verdict.kind === "failed" || (verdict.kind === "mined" && verdict.outcomes.every(({ kind }) => kind !== "shallow"));

/** Whether one of its transfers is credited, now or earlier. */
export const hasCredited = (verdict: Verdict): boolean =>
  verdict.kind === "mined" && verdict.outcomes.some(({ kind }) => kind === "credited" || kind === "paid");
