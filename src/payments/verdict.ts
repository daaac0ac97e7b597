import { CURRENCY, formatMoney } from "../lib/money.ts";
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

/** In one description: a transaction may have thousands. */
const MAX_DESCRIBED = 3;

/** USDC in it that came to this host and is nobody's, for its operator; null if there is none. */
export function describeUnclaimed(verdict: Verdict): string | null {
  if (verdict.kind !== "mined") return null;
  const described = verdict.outcomes.flatMap((outcome) => {
    if (outcome.kind !== "unmatched" && outcome.kind !== "early") return [];
    const { amount, from } = outcome.transfer;
    const why = outcome.kind === "early" ? "before it was asked for" : "the amount of no quote";
    return `${formatMoney(amount)} ${CURRENCY} from ${from}, ${why}`;
  });
  return described.slice(0, MAX_DESCRIBED).join("; ") || null;
}
