import { type ErrorCode, STATUS_OF_CODE } from "../lib/app-error.ts";
import { type HeaderRefs, headers, type Json, refTo } from "./openapi-components.ts";

interface Failure {
  status: number;
  /** The `code` in the envelope. */
  code: ErrorCode;
  says: string;
  /** An example of the message. */
  message: string;
  headers?: HeaderRefs;
}
const WAIT: HeaderRefs = { "Retry-After": "retryAfter" };
/** Of failures that a repetition does not help. */
const FINAL: HeaderRefs = { "X-Should-Retry": "shouldRetry" };
/** About what is stored for a repetition with the same Idempotency-Key. */
const KEPT: HeaderRefs = { "Idempotent-Replayed": "replayed" };

const failure = (code: ErrorCode, says: string, message: string, headers?: HeaderRefs): Failure => ({
  status: STATUS_OF_CODE[code],
  code,
  says,
  message,
  ...(headers ? { headers } : {}),
});

/** What can go wrong: the error codes, and three cases in which a code has a status of its own. */
export const FAILURES = {
  invalid_request: failure(
    "invalid_request",
    "A field, a header or the body is not as expected",
    "name: expected 1 to 100 characters",
    KEPT,
  ),
  unauthorized: failure("unauthorized", "No valid credential", "missing or invalid credentials", {
    "WWW-Authenticate": "authenticate",
  }),
  payment_required: failure(
    "payment_required",
    "The balance is too low, or a payment is not accepted yet: what to pay, and how",
    "the balance is 0.000000 USDC and this needs 0.500000: pay exactly 1.005715 USDC, as described in x402, and repeat the " +
      "request with the transaction in X-PAYMENT. The amount is 1.00, the minimum top-up here, and 0.005715 that identifies the " +
      "payment as this account's. A person tops up at https://roost.example.org or asks the host's operator for credit",
    { ...WAIT, "PAYMENT-REQUIRED": "paymentRequired" },
  ),
  invite_required: failure(
    "invite_required",
    "A new account needs a valid invite",
    "inviteCode: expected a valid invite code",
  ),
  forbidden: failure(
    "forbidden",
    "The credential, or the state of the account, does not allow it",
    "this key lacks the scope write",
  ),
  not_found: failure("not_found", "It does not exist, or is not the caller's", "instance not found", KEPT),
  request_timeout: {
    ...failure("invalid_request", "The body did not arrive in time", "body: expected all of it within 30 seconds"),
    status: 408,
  },
  conflict: failure(
    "conflict",
    "The name is taken, a quota is used up, it was changed meanwhile, or another request has this Idempotency-Key",
    "Idempotency-Key: another request has it",
    { ...WAIT, ...KEPT },
  ),
  gone: {
    ...failure(
      "not_found",
      "The cursor is older than the events that are kept, or ahead of them",
      "after: expected a kept event",
    ),
    status: 410,
  },
  precondition_failed: failure(
    "precondition_failed",
    "If-Match or If-None-Match does not hold",
    "If-Match: the file is another by now",
  ),
  payload_too_large: failure(
    "payload_too_large",
    "The body is larger than 1 MiB, or 16 KiB if no credential is needed, or 4 MiB with the images of a conversation",
    "body: expected at most 1048576 bytes",
  ),
  rate_limited: failure(
    "rate_limited",
    "Too many requests, or too much at the same time",
    "too many requests; try again in a moment",
    WAIT,
  ),
  budget_exceeded: failure(
    "budget_exceeded",
    "A limit of what models may take is reached; Retry-After is the end of its day or month (UTC)",
    "tokensPerDay: the agent has used 9500 of 10000 tokens today, and this may take 4097 more: raise the agent's limit, or try again after 2026-11-23T00:00:00.000Z",
    { ...WAIT, ...KEPT, ...FINAL },
  ),
  internal_error: failure(
    "internal_error",
    "A fault of the host",
    "something went wrong on this host; its log has the details under this request id",
  ),
  model_error: failure("model_error", "The model failed", "the model server cannot be reached", { ...KEPT, ...FINAL }),
  output_invalid: failure(
    "output_invalid",
    "The model did not answer in the form that was asked for",
    "the model did not answer in the form that was asked for: it is not JSON; ask in other words, simplify the schema, or give the agent a stronger model",
    { ...KEPT, ...FINAL },
  ),
  loop_detected: failure(
    "loop_detected",
    "The agent made the same call again and again",
    "the agent called now 5 times with the same input and the same result; ask it in other words, or give it a stronger model",
    { ...KEPT, ...FINAL },
  ),
  instance_not_ready: failure(
    "instance_not_ready",
    "The instance is not running, or its workspaces are being read after an upgrade",
    "the instance is stopped; start it first",
    WAIT,
  ),
  host_full: {
    ...failure(
      "internal_error",
      "The host's disk or memory is full, or it is stopping",
      "the host's disk is full: nothing was changed; try again later",
      WAIT,
    ),
    status: 503,
  },
} satisfies Record<string, Failure>;
export type FailureName = keyof typeof FAILURES;

/** The name of the response for these failures, which have one status. */
export const responseName = (names: readonly FailureName[]): string => names.join("_or_");

/** That response: one description, and an example for each code. */
export function failureResponse(names: readonly FailureName[]): Json {
  const failures = names.map((name): Failure => FAILURES[name]);
  const examplesOf = (show: (failure: Failure) => Json) =>
    Object.fromEntries(failures.map((one) => [one.code, { summary: one.says, value: show(one) }]));
  const isPayment = names.includes("payment_required");
  const quote = isPayment ? { x402: QUOTE } : {};
  return {
    description: failures.map(({ says }) => says).join(". Or: "),
    ...headers(Object.assign({}, ...failures.map((one) => one.headers))),
    content: {
      "application/json": {
        schema: refTo(isPayment ? "PaymentRequired" : "Error"),
        examples: examplesOf(({ code, message, status }) => ({
          error: { code, message, status, requestId: REQUEST_ID },
          ...quote,
        })),
      },
      "application/problem+json": {
        schema: refTo("Problem"),
        examples: examplesOf(({ code, message, status }) => ({
          type: `urn:roost:error:${code}`,
          title: code,
          status,
          detail: message,
          code,
          requestId: REQUEST_ID,
          ...quote,
        })),
      },
    },
  };
}

/** What JSON-RPC adds to the responses of a route, by status. */
export function rpcResponses(): Json {
  const failed = (description: string): Json => ({
    description,
    ...headers(),
    content: { "application/json": { schema: refTo("RpcError") } },
  });
  const invalid = failureResponse(["invalid_request"]) as { content: Record<string, Json> };
  const either = { schema: { anyOf: [refTo("Error"), refTo("RpcError")] } };
  const { "application/json": own, ...other } = invalid.content;
  return {
    202: { description: "A notification: there is nothing to answer", ...headers() },
    400: { ...invalid, content: { "application/json": { ...own, ...either }, ...other } },
    404: failed("There is no such method"),
    406: failed("Accept: expected application/json and text/event-stream"),
    415: failed("Content-Type: expected application/json"),
  };
}

const REQUEST_ID = "req-42";
const PAID_ON = {
  network: "base",
  chainId: 8453,
  asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
  recipient: `0x${"a1".repeat(20)}`,
  amount: "1.005715",
  currency: "USDC",
};
const QUOTE = {
  ...PAID_ON,
  invoiceId: "inv_0190f5e2c4a87b3d8e1f6a2b4c5d7e90",
  expiresAt: "2026-11-23T10:00:00.000Z",
  options: [PAID_ON],
};
