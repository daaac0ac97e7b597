import { z } from "zod";
import { readBoundedText } from "../../lib/bounded-text.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { OUTGOING } from "../../limits/outgoing.ts";

/** A request to a facilitator, in either version of the x402 protocol. */
export interface FacilitatorRequest {
  x402Version: 1 | 2;
  paymentPayload: unknown;
  paymentRequirements: unknown;
}

/** A scheme and network that the facilitator supports; `network` as that version writes it. */
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
  /** What it says it did; verify it on the chain. */
  | { kind: "settled"; txHash: string }
  | { kind: "failed"; reason: string }
  /** No valid answer: the transfer may be on its way. */
  | { kind: "silent" };

/** Submits signed transfers to the chain and pays for the gas. Nothing is credited on its word alone. */
export interface Facilitator {
  /** What it supports, at most an hour old; empty while it does not answer. Never throws. */
  kinds(): Promise<Kind[]>;
  /** Never throws because of the facilitator. */
  verify(request: FacilitatorRequest): Promise<Verification>;
  /** Call it once for a payment. Never throws because of the facilitator. */
  settle(request: FacilitatorRequest): Promise<Settlement>;
}

export interface FacilitatorOptions {
  /** The URL to which `/supported`, `/verify` and `/settle` are appended. */
  url: string;
  clock?: Clock;
  /** For each call, in place of those in limits/outgoing.ts. */
  deadlineMs?: number | undefined;
}

const KINDS_VALID_NS = 3_600_000_000_000n;
/** A facilitator that hangs delays one refusal in ten seconds, not every one. */
const FAILURE_VALID_NS = 10_000_000_000n;
const MAX_KINDS = 1_000;

/** Only the protocol's own codes are shown to the payer, not other text from a facilitator. */
const reason = () => z.string().regex(/^[a-z0-9_]{1,100}$/);
const kind = () => z.object({ x402Version: z.number(), scheme: z.string(), network: z.string() });
const supported = z.lazy(() => z.object({ kinds: z.array(kind()).max(MAX_KINDS) }));
const verified = z.lazy(() => z.object({ isValid: z.boolean(), invalidReason: reason().nullish().catch(null) }));
const settled = z.lazy(() =>
  z.discriminatedUnion("success", [
    z.object({
      success: z.literal(true),
      transaction: z
        .string()
        .regex(/^0x[0-9a-f]{64}$/i)
        .toLowerCase(),
    }),
    z.object({ success: z.literal(false), errorReason: reason().nullish().catch(null) }),
  ]),
);

export function createFacilitator({ url, clock = systemClock, deadlineMs }: FacilitatorOptions): Facilitator {
  const { supportedMs, verifyMs, deadlineMs: settleMs, answerBytes } = OUTGOING.facilitator;
  const base = url.replace(/\/+$/, "");
  let known: { kinds: Promise<Kind[]>; untilNs: bigint } | null = null;

  /** The facilitator's answer, or null if there is none in time or it is invalid. */
  async function ask<S extends z.ZodType>(form: S, path: string, limitMs: number, body?: FacilitatorRequest) {
    try {
      const answer = await fetch(`${base}${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: { "Content-Type": "application/json", Accept: "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        redirect: "error",
        signal: AbortSignal.timeout(deadlineMs ?? limitMs),
      });
      // Facilitators refuse with 400 and the same schema as with 200: the body decides.
      return form.parse(JSON.parse(await readBoundedText(answer, answerBytes)));
    } catch {
      return null;
    }
  }

  return {
    kinds() {
      const now = clock.monotonicNs();
      if (known === null || now >= known.untilNs) {
        const asked = ask(supported, "/supported", supportedMs);
        const mine = { kinds: asked.then((answer) => answer?.kinds ?? []), untilNs: now + KINDS_VALID_NS };
        known = mine;
        void asked.then((answer) => {
          if (answer === null) mine.untilNs = clock.monotonicNs() + FAILURE_VALID_NS;
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
      // It submitted the transaction and does not know the outcome.
      if (answer.errorReason === "settlement_pending") return { kind: "silent" };
      return { kind: "failed", reason: answer.errorReason ?? "unexpected_settle_error" };
    },
  };
}
