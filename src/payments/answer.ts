import { NETWORKS, type NetworkName } from "../chain/networks.ts";
import { BLOCK_SECONDS } from "./depth.ts";
import type { Payment, Refusal } from "./payment.ts";
import type { PaymentRow } from "./schema.ts";
import type { Outcome, Verdict } from "./verdict.ts";

const UNAVAILABLE_RETRY_SECONDS = 5;

const refused = (reason: string, more: Omit<Refusal, "kind" | "reason"> = {}): Refusal => ({
  kind: "refused",
  reason,
  ...more,
});

/**
 * The answer to whoever presented a transaction (docs/contract/api.md, Payments). Another account's transfer looks like
 * one without an invoice: the answer reveals neither that it was credited, nor its depth, nor the invoice. `forgotten` is
 * one that cannot be decided now, nor stored.
 */
export function answerTo(accountId: string, verdict: Verdict | { kind: "forgotten" }, network: NetworkName): Payment {
  switch (verdict.kind) {
    case "forgotten":
      return refused(
        "the payment cannot be verified right now, and this account has too many undecided ones for it to be remembered; present it again",
        { retryAfterSeconds: UNAVAILABLE_RETRY_SECONDS },
      );
    case "unavailable":
      return refused("the payment cannot be verified right now; it is remembered, and credited once it can be", {
        retryAfterSeconds: UNAVAILABLE_RETRY_SECONDS,
      });
    case "unknown":
      return refused(`no such transaction is in a block of ${network} yet; present it again in a moment`, {
        retryAfterSeconds: BLOCK_SECONDS[network],
      });
    case "failed":
      return refused("the transaction failed on the chain: nothing was transferred");
    case "mined":
      return answerOf(accountId, verdict.outcomes, network);
  }
}

function answerOf(accountId: string, outcomes: Outcome[], network: NetworkName): Payment {
  const own = outcomes.map((outcome) => (belongsToOther(outcome, accountId) ? UNMATCHED : outcome));
  const credited = own.flatMap((outcome) => (outcome.kind === "credited" ? outcome.payment : []));
  if (credited[0]) return creditOf(credited[0], credited);
  const has = (kind: Outcome["kind"]) => own.some((outcome) => outcome.kind === kind);
  if (has("paid")) return { kind: "known" };
  const shallow = own.find((outcome) => outcome.kind === "shallow");
  if (shallow) {
    const { reason, retryAfterSeconds, invoiceId } = shallow;
    return refused(reason, { retryAfterSeconds, ...(invoiceId === null ? {} : { invoiceId }) });
  }
  if (has("early")) return refused("the transfer is older than the invoice of its amount");
  if (has("unmatched")) return refused("the transfer's amount matches no open invoice of this account");
  const { asset } = NETWORKS[network];
  if (has("bridged")) return refused(`bridged USDC (USDC.e) is not accepted: send native USDC, ${asset}`);
  if (has("wrong_token")) return refused(`the transfer is of another token: send USDC, ${asset}`);
  if (has("wrong_recipient")) return refused("the transfer's recipient is not the one in x402");
  return refused("the transaction holds no transfer of USDC to the recipient in x402");
}

const UNMATCHED = { kind: "unmatched" as const };

function belongsToOther(outcome: Outcome, accountId: string): boolean {
  if ("payment" in outcome) return outcome.payment.accountId !== accountId;
  return "accountId" in outcome && outcome.accountId !== accountId;
}

/** Several payments of one transaction are reported as one credit. */
export const creditOf = ({ transactionId }: PaymentRow, all: readonly PaymentRow[]): Payment => ({
  kind: "credited",
  transactionId,
  amount: all.reduce((sum, { amount }) => sum + amount, 0n),
  headers: {},
});
