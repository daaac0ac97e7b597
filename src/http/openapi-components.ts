import { z } from "zod";
import { STATUS_OF_CODE } from "../lib/app-error.ts";

/** What the operations of the document share: parameters, headers, errors, and the schemas that no route owns. */

export type Json = Record<string, unknown>;

const option = {
  network: z.string(),
  chainId: z.int(),
  asset: z.string(),
  recipient: z.string(),
  amount: z.string(),
  currency: z.string(),
};
const ErrorBody = z.object({
  error: z.object({
    code: z.enum(Object.keys(STATUS_OF_CODE) as [string, ...string[]]),
    message: z.string(),
    status: z.int(),
    requestId: z.string(),
    type: z.string().optional().describe("On the OpenAI-compatible paths"),
    param: z.string().nullable().optional().describe("On the OpenAI-compatible paths"),
  }),
});
const Quote = z.object({
  ...option,
  invoiceId: z.string(),
  expiresAt: z.iso.datetime(),
  options: z.array(z.object(option)),
});

/** What version 1 of the x402 protocol reads in a 402; version 2 reads the header `PAYMENT-REQUIRED`. */
const forProtocolClients = {
  x402Version: z.literal(1).optional().describe("Where the host has a facilitator of the x402 protocol"),
  accepts: z
    .array(
      z.object({
        scheme: z.literal("exact"),
        network: z.string(),
        maxAmountRequired: z.string(),
        resource: z.string(),
        description: z.string(),
        mimeType: z.string(),
        payTo: z.string(),
        maxTimeoutSeconds: z.int(),
        asset: z.string(),
        extra: z.object({ name: z.string(), version: z.string() }),
      }),
    )
    .optional(),
};

export const SCHEMAS = {
  Error: ErrorBody,
  PaymentRequired: ErrorBody.extend({ x402: Quote, ...forProtocolClients }),
  Quote,
  /** RFC 9457. */
  Problem: z.object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.string(),
    requestId: z.string(),
    x402: Quote.optional(),
    ...forProtocolClients,
  }),
  /** The answer to `Prefer: respond-async` (api.md section 5). */
  Accepted: z.object({ runId: z.string(), messageId: z.string(), status: z.string() }),
};

export const refTo = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });

const text = (description: string, more: Json = {}): Json => ({ description, schema: { type: "string", ...more } });
const header = (name: string, description: string, more: Json = {}): Json => ({
  name,
  in: "header",
  ...text(description, more),
});

export const PARAMETERS = {
  requestId: header("X-Request-Id", "Names the request in the answer and in the host's log", {
    pattern: "^[A-Za-z0-9._-]{1,128}$",
  }),
  idempotencyKey: header("Idempotency-Key", "A repetition within 24 hours gets the first answer again", {
    pattern: "^[!-~]{1,255}$",
  }),
  ifMatch: header("If-Match", "Only when the file is still the one of this ETag; `*`: only when there is one"),
  ifNoneMatch: header("If-None-Match", "Only when the file is none of these ETags; `*`: only when there is none"),
  lastEventId: header("Last-Event-ID", "Goes on behind this event; wins over `after`", { pattern: "^[0-9]+$" }),
  payment: {
    ...header(
      "X-PAYMENT",
      "The transaction that paid an invoice, as JSON: it is credited, and the request goes on with the new balance. " +
        "Or a signed payment of the x402 protocol, version 1, where the 402 has `accepts`",
    ),
    example: `{"txHash":"0x${"0123456789abcdef".repeat(4)}","network":"base"}`,
  },
  signedPayment: header(
    "PAYMENT-SIGNATURE",
    "A signed payment of the x402 protocol, version 2, where the 402 has `PAYMENT-REQUIRED`; never beside `X-PAYMENT`",
  ),
  prefer: header("Prefer", "`respond-async`: 202 at once, the answer through the run or the events"),
};
export const parameter = (name: keyof typeof PARAMETERS): Json => ({ $ref: `#/components/parameters/${name}` });

export const HEADERS = {
  requestId: text("The request's X-Request-Id, or one made here"),
  replayed: text("`true` for the stored answer to an earlier request with this Idempotency-Key"),
  retryAfter: { description: "Seconds to wait before the next try", schema: { type: "integer", minimum: 1 } },
  authenticate: text("How to authenticate"),
  etag: text("The file's version"),
  preferenceApplied: text("`respond-async`"),
  paymentRequired: text("What version 2 of the x402 protocol reads: base64 of JSON, where the host has a facilitator"),
  paymentResponse: text("What became of a signed payment: base64 of JSON"),
};
type HeaderRefs = Record<string, keyof typeof HEADERS>;

/** A response's `headers`: these, and the one that every response has. */
export const headers = (more: HeaderRefs = {}): Json => ({
  headers: Object.fromEntries(
    Object.entries<keyof typeof HEADERS>({ "X-Request-Id": "requestId", ...more }).map(([name, ref]) => [
      name,
      { $ref: `#/components/headers/${ref}` },
    ]),
  ),
});

interface Failure {
  status: number;
  says: string;
  headers?: HeaderRefs;
}
const WAIT: HeaderRefs = { "Retry-After": "retryAfter" };
/** On what is kept for a repetition under the same Idempotency-Key. */
const KEPT: HeaderRefs = { "Idempotent-Replayed": "replayed" };

/** What can go wrong: the error codes, and two cases in which a code answers with a status of its own. */
export const FAILURES = {
  invalid_request: {
    status: 400,
    says: "A field, a header or the whole body is not of the expected form",
    headers: KEPT,
  },
  unauthorized: { status: 401, says: "No valid credential", headers: { "WWW-Authenticate": "authenticate" } },
  payment_required: {
    status: 402,
    says: "The balance is too low: what to pay, and how",
    headers: { ...WAIT, "PAYMENT-REQUIRED": "paymentRequired" },
  },
  invite_required: { status: 403, says: "A new account needs a valid invite" },
  forbidden: { status: 403, says: "The credential, or the state of the account, does not allow it" },
  not_found: { status: 404, says: "Not there, or not the caller's", headers: KEPT },
  request_timeout: { status: 408, says: "The body did not come in time; the code is invalid_request" },
  conflict: { status: 409, says: "Taken, or another request has this Idempotency-Key", headers: { ...WAIT, ...KEPT } },
  gone: { status: 410, says: "The cursor is older than what is kept, or ahead of it; the code is not_found" },
  precondition_failed: { status: 412, says: "If-Match or If-None-Match does not hold" },
  payload_too_large: {
    status: 413,
    says: "The body is larger than 1 MiB, or than 16 KiB where no credential is needed",
  },
  rate_limited: { status: 429, says: "Too much at once", headers: WAIT },
  internal_error: { status: 500, says: "A fault of the host" },
  model_error: { status: 502, says: "The model failed" },
  instance_not_ready: { status: 503, says: "The instance is not running", headers: WAIT },
  host_full: { status: 503, says: "The host's disk or memory is full; the code is internal_error", headers: WAIT },
} satisfies Record<string, Failure>;
export type FailureName = keyof typeof FAILURES;

/** The failures as responses that operations refer to. */
export const failureResponses = (): Json =>
  Object.fromEntries(
    Object.entries<Failure>(FAILURES).map(([name, failure]) => [
      name,
      {
        description: failure.says,
        ...headers(failure.headers),
        content: {
          "application/json": { schema: refTo(name === "payment_required" ? "PaymentRequired" : "Error") },
          "application/problem+json": { schema: refTo("Problem") },
        },
      },
    ]),
  );
