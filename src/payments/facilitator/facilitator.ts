import { z } from "zod";
import { readBoundedText } from "../../lib/bounded-text.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { OUTGOING } from "../../limits/outgoing.ts";

/** What both versions of the x402 protocol ask a facilitator with. */
export interface FacilitatorRequest {
  x402Version: 1 | 2;
  paymentPayload: unknown;
  paymentRequirements: unknown;
}

/** A scheme on a network that the facilitator settles; `network` as that version writes it. */
export interface Kind {
  x402Version: number;
  scheme: string;
  network: string;
}

export type Verification =
  | { kind: "valid" }
  /** `reason` is a word of the protocol, such as `insufficient_funds`. */
  | { kind: "invalid"; reason: string }
  | { kind: "silent" };

export type Settlement =
  /** What it says it did: to be believed by nobody who has not looked at the chain. */
  | { kind: "settled"; txHash: string }
  | { kind: "failed"; reason: string }
  /** No answer that can be understood: the transfer may be on its way. */
  | { kind: "silent" };

/** Submits signed transfers to the chain and pays for the gas. Its word is a hint; nothing is credited for it. */
export interface Facilitator {
  /** What it settles, as it said within the last hour; nothing while it does not answer. Never throws. */
  kinds(): Promise<Kind[]>;
  /** Never throws for what the facilitator does. */
  verify(request: FacilitatorRequest): Promise<Verification>;
  /** Asked once: it is never asked again for the same payment. Never throws for what the facilitator does. */
  settle(request: FacilitatorRequest): Promise<Settlement>;
}

export interface FacilitatorOptions {
  /** What `/supported`, `/verify` and `/settle` follow. */
  url: string;
  clock?: Clock;
  verifyMs?: number;
  settleMs?: number;
}

const KINDS_ARE_KNOWN_NS = 3_600_000_000_000n;
/** So that a facilitator that hangs holds up one refusal in ten seconds, and not every one. */
const TROUBLE_IS_KNOWN_NS = 10_000_000_000n;
const MAX_KINDS = 1_000;

/** Words of the protocol are shown to the payer; anything else that a facilitator says is not. */
const reason = z.string().regex(/^[a-z0-9_]{1,100}$/);
const supported = z.object({
  kinds: z.array(z.object({ x402Version: z.number(), scheme: z.string(), network: z.string() })).max(MAX_KINDS),
});
const verified = z.object({ isValid: z.boolean(), invalidReason: reason.nullish().catch(null) });
const settled = z.discriminatedUnion("success", [
  z.object({
    success: z.literal(true),
    transaction: z
      .string()
      .regex(/^0x[0-9a-f]{64}$/i)
      .toLowerCase(),
  }),
  z.object({ success: z.literal(false), errorReason: reason.nullish().catch(null) }),
]);

export function createFacilitator({
  url,
  clock = systemClock,
  verifyMs = OUTGOING.facilitator.verifyMs,
  settleMs = OUTGOING.facilitator.deadlineMs,
}: FacilitatorOptions): Facilitator {
  const base = url.replace(/\/+$/, "");
  let known: { kinds: Promise<Kind[]>; untilNs: bigint } | null = null;

  /** What the facilitator answers to one request, or null: no answer in time, not JSON, or not of this form. */
  async function ask<S extends z.ZodType>(form: S, path: string, limitMs: number, body?: FacilitatorRequest) {
    try {
      const answer = await fetch(`${base}${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: { "Content-Type": "application/json", Accept: "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        redirect: "error",
        signal: AbortSignal.timeout(limitMs),
      });
      // Facilitators refuse with 400 and the same form as with 200: the body decides.
      return form.parse(JSON.parse(await readBoundedText(answer, OUTGOING.facilitator.answerBytes)));
    } catch {
      return null;
    }
  }

  return {
    kinds() {
      const now = clock.monotonicNs();
      if (known === null || now >= known.untilNs) {
        const asked = ask(supported, "/supported", OUTGOING.facilitator.supportedMs);
        const mine = { kinds: asked.then((answer) => answer?.kinds ?? []), untilNs: now + KINDS_ARE_KNOWN_NS };
        known = mine;
        void asked.then((answer) => {
          if (answer === null) mine.untilNs = clock.monotonicNs() + TROUBLE_IS_KNOWN_NS;
        });
      }
      return known.kinds;
    },
    async verify(request) {
      const answer = await ask(verified, "/verify", verifyMs, request);
      if (answer === null) return { kind: "silent" };
      return answer.isValid
        ? { kind: "valid" }
        : { kind: "invalid", reason: answer.invalidReason ?? "invalid_payment" };
    },
    async settle(request) {
      const answer = await ask(settled, "/settle", settleMs, request);
      if (answer === null) return { kind: "silent" };
      if (answer.success) return { kind: "settled", txHash: answer.transaction };
      // It sent the transaction and did not see what became of it.
      if (answer.errorReason === "settlement_pending") return { kind: "silent" };
      return { kind: "failed", reason: answer.errorReason ?? "unexpected_settle_error" };
    },
  };
}
