import { z } from "zod";
import { STATUS_OF_CODE } from "../lib/app-error.ts";
import { currencyForm, idForm, moneyForm } from "../lib/forms.ts";
import type { IdPrefix } from "../lib/id.ts";

/** What the operations of the document share: parameters, headers, errors, and schemas that belong to no route. */

export type Json = Record<string, unknown>;

const AMOUNT =
  "To be paid exactly. It is what is missing or was asked for, at least the host's minimum top-up, rounded up to a cent, " +
  "plus less than a cent that identifies the payment as this account's: 0.50 may become 1.005715";
const address = (description: string) =>
  z.string().meta({ description, pattern: "^0x[0-9a-fA-F]{40}$", examples: [`0x${"a1".repeat(20)}`] });
const option = {
  network: z.string().meta({ examples: ["base"] }),
  chainId: z.int().meta({ examples: [8453] }),
  asset: address("The contract of the network's USDC"),
  recipient: address("The address to pay"),
  amount: moneyForm("1.005715").describe(AMOUNT),
  currency: currencyForm,
};
const ErrorBody = z.object({
  error: z.object({
    code: z.enum(Object.keys(STATUS_OF_CODE) as [string, ...string[]]),
    message: z.string(),
    status: z.int(),
    requestId: z.string(),
    type: z.string().optional().describe("On the OpenAI-compatible routes, as OpenAI names it"),
    param: z.string().nullable().optional().describe("On the OpenAI-compatible routes: the field that is wrong"),
  }),
});
const Quote = z.object({
  ...option,
  invoiceId: idForm("inv"),
  expiresAt: z.iso.datetime().describe("Until then the quote is open; its amount identifies a payment for 30 days"),
  options: z.array(z.object(option)).describe("The same amount on each network of the host: pay on one of them"),
});

/**
 * What clients of version 1 of the x402 protocol read in a 402; those of version 2 read the header `PAYMENT-REQUIRED`.
 */
const forProtocolClients = {
  x402Version: z.literal(1).optional().describe("Present if the host has a facilitator of the x402 protocol"),
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
  /** An error of the protocol, not of the API. */
  RpcError: z.object({
    jsonrpc: z.literal("2.0"),
    id: z.union([z.string(), z.number(), z.null()]),
    error: z.object({ code: z.int(), message: z.string(), data: z.unknown().optional() }),
  }),
  /** The answer to `Prefer: respond-async` (docs/contract/api.md, Messages). */
  Accepted: z.object({
    runId: idForm("run"),
    messageId: idForm("msg"),
    status: z.string().meta({ examples: ["queued"] }),
  }),
};

export const refTo = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });

const text = (description: string, more: Json = {}): Json => ({ description, schema: { type: "string", ...more } });
const header = (name: string, description: string, more: Json = {}): Json => ({
  name,
  in: "header",
  ...text(description, more),
});

const inPath = (pattern: string, example: string, description?: string): Json => ({
  ...(description === undefined ? {} : { description }),
  schema: { type: "string", pattern, examples: [example] },
});
const ofId = (prefix: IdPrefix): Json => ({ schema: convertForm(idForm(prefix)) });
const convertForm = (form: z.ZodType): Json => {
  const { $schema: _, ...json } = z.toJSONSchema(form);
  return json;
};
const FILE_PART = "[A-Za-z0-9_ -][A-Za-z0-9._ -]{0,99}";

/** The parameters of paths, by name. Anything in another form is answered with 404, or is not a valid file name. */
export const PATH_PARAMETERS = {
  instanceId: ofId("inst"),
  agentId: ofId("agt"),
  conversationId: ofId("conv"),
  runId: ofId("run"),
  responseId: ofId("resp"),
  approvalId: ofId("appr"),
  ruleId: ofId("rule"),
  scheduleId: ofId("sch"),
  serverId: ofId("mcp"),
  keyId: ofId("key"),
  model: inPath("^(agt_[0-9a-f]{32}|local:all-minilm-l6-v2)$", "local:all-minilm-l6-v2", "A model's id in the list"),
  name: inPath("^[a-z0-9]+(-[a-z0-9]+)*$", "code-review", "A skill's name"),
  key: inPath("^[A-Za-z_][A-Za-z0-9_]{0,127}$", "API_TOKEN", "A secret's name"),
  file: inPath(
    `^${FILE_PART}(/${FILE_PART}){0,7}$`,
    "notes/today.md",
    "The file's name; the `/` between its folders are not encoded",
  ),
};

/** Base64 of the JSON that a client of the x402 protocol has signed. */
const SIGNED = "[A-Za-z0-9+/]{40,}={0,2}";

/** Of every path. No reference: the viewer resolves those of paths late, and shows a field without a name until then. */
export const REQUEST_ID: Json = header(
  "X-Request-Id",
  "Identifies the request in the answer and in the host's log. One that is not 1 to 128 letters, digits, `.`, `_` and `-` " +
    "is replaced",
);

export const PARAMETERS = {
  idempotencyKey: header("Idempotency-Key", "A repetition within 24 hours gets the first answer again", {
    pattern: "^[!-~]{1,255}$",
  }),
  ifMatch: header("If-Match", "Only if the file still has this ETag; `*`: only if the file exists"),
  ifNoneMatch: header(
    "If-None-Match",
    "Only if the file has none of these ETags; `*`: only if the file does not exist",
  ),
  lastEventId: header("Last-Event-ID", "Continues after this event; takes precedence over `after`", {
    pattern: "^[0-9]+$",
  }),
  payment: header(
    "X-PAYMENT",
    "The transaction that paid an invoice, as JSON: it is credited, and the request proceeds with the new balance.  " +
      "Or a signed payment of the x402 protocol, version 1, if the 402 has `accepts`",
    {
      pattern: `^(\\{ *"txHash" *: *"0x[0-9a-fA-F]{64}" *, *"network" *: *"(base|ethereum|polygon)" *\\}|${SIGNED})$`,
      examples: [`{"txHash":"0x${"0123456789abcdef".repeat(4)}","network":"base"}`],
    },
  ),
  signedPayment: header(
    "PAYMENT-SIGNATURE",
    "A signed payment of the x402 protocol, version 2, if the 402 has `PAYMENT-REQUIRED`; never together with `X-PAYMENT`",
    { pattern: `^${SIGNED}$` },
  ),
  mcpVersion: header("MCP-Protocol-Version", "The revision of the Model Context Protocol; without it 2025-03-26", {
    examples: ["2026-07-28"],
  }),
  mcpMethod: header("Mcp-Method", "From the revision 2026-07-28 on: the message's `method`", {
    examples: ["tools/call"],
  }),
  mcpName: header("Mcp-Name", "From the revision 2026-07-28 on, where a tool is called: its name", {
    examples: ["list_agents"],
  }),
  prefer: header("Prefer", "`respond-async`: 202 at once; the answer comes with the run or the events"),
};
export const parameter = (name: keyof typeof PARAMETERS): Json => ({ $ref: `#/components/parameters/${name}` });

export const HEADERS = {
  requestId: text("The request's X-Request-Id, or a new one"),
  replayed: text("`true` for the stored answer to an earlier request with this Idempotency-Key"),
  retryAfter: { description: "Seconds to wait before the next try", schema: { type: "integer", minimum: 1 } },
  authenticate: text("How to authenticate"),
  etag: text("The file's version"),
  lastModified: text("When the file was last written"),
  lastEventId: text("Where the stream begins: the event before its first one"),
  contentDisposition: text("A name for the archive's file"),
  shouldRetry: text(
    "`false`, on the OpenAI-compatible routes only: their clients should not repeat this by themselves",
  ),
  preferenceApplied: text("`respond-async`"),
  paymentRequired: text("For clients of version 2 of the x402 protocol: base64 of JSON, if the host has a facilitator"),
  // Each of them by itself: ogen takes two headers of one component for one, and its code does not compile.
  paymentResponse: text("What became of a signed payment, version 1: base64 of JSON"),
  signedPaymentResponse: text("What became of a signed payment, version 2: base64 of JSON"),
};
export type HeaderRefs = Record<string, keyof typeof HEADERS>;

/** A response's `headers`: these, and the one of every response. */
export const headers = (more: HeaderRefs = {}): Json => ({
  headers: Object.fromEntries(
    Object.entries<keyof typeof HEADERS>({ "X-Request-Id": "requestId", ...more }).map(([name, ref]) => [
      name,
      { $ref: `#/components/headers/${ref}` },
    ]),
  ),
});
