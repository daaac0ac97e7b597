import type { RateName } from "../limits/account-rates.ts";
import { MAX_BODY_BYTES, MAX_CONVERSATION_BYTES } from "../limits/body-bytes.ts";
import type { Access } from "../limits/caller.ts";
import { declaredLength } from "./request.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

/**
 * What one request may cost the host: the size of its answer, and what ends it. Each route names one of these. Its rate
 * and the size of its body follow from its method, its access and the kind of body (`rateOf`, `bodyBytesOf`).
 */
export const BOUNDS = {
  /** One record: a few look-ups. */
  record: { answerBytes: 256 * KIB, endsWith: "the commit" },
  /** At most 100 records, fewer if they are large (one mebibyte). */
  page: { answerBytes: 8 * MIB, endsWith: "the read" },
  /** A mebibyte of text, which JSON escapes may make longer. */
  texts: { answerBytes: 8 * MIB, endsWith: "the commit" },
  /** Waits for another machine: a mail server, the nodes of a chain, a facilitator. */
  outside: { answerBytes: 256 * KIB, endsWith: "the deadline of the call in limits/outgoing.ts" },
  /** Waits for an MCP server, and shows all its tools. */
  listing: { answerBytes: 2 * MIB, endsWith: "the deadline of the call in limits/outgoing.ts" },
  /** Waits for an agent, holding a slot meanwhile (lasting-answers.ts). */
  run: { answerBytes: 8 * MIB, endsWith: "the run" },
  /** The same for a conversation with its images, of which all else is an ordinary body. */
  conversation: { answerBytes: 8 * MIB, endsWith: "the run" },
  /** Vectors of at most 2,048 texts: waits for the model process, one text at a time. */
  embeddings: { answerBytes: 8 * MIB, endsWith: "the last text, or the client" },
  /** A file that is packed first: as large as an agent is (bundles/format.ts), holding a slot meanwhile. */
  bundle: { answerBytes: 256 * MIB, endsWith: "the last byte, ten minutes, or the client" },
  /** An open stream, holding a slot meanwhile. The hub bounds what is buffered for a slow reader. */
  stream: { answerBytes: 32 * KIB, endsWith: "the credential, the agent or the client" },
} as const satisfies Record<string, { answerBytes: number; endsWith: string }>;

export type Bound = keyof typeof BOUNDS;

export type RequestRate = RateName | "an address's requests";

/** What a route's rate and the size of its body follow from. */
interface AccessAndMethod {
  access: Access;
  method: string;
}

/** What a request counts against: GETs are reads, all others writes; public routes count against the address. */
export const rateOf = ({ access, method }: AccessAndMethod): RequestRate =>
  access === "public" ? "an address's requests" : rateOfMethod(method);

export const rateOfMethod = (method: string): RateName => (method === "GET" || method === "HEAD" ? "reads" : "writes");

/** docs/contract/api.md, Sizes. */
const MAX_PUBLIC_BODY_BYTES = 16 * 1024;
export const MAX_ARCHIVE_BYTES = 32 * MIB;

export const bodyBytesOf = (
  { access, method, body, bound }: AccessAndMethod & { body?: unknown; bound: Bound },
  isLengthKnown = true,
): number => {
  if (method === "GET" || method === "DELETE") return 0;
  if (body === "application/gzip") return MAX_ARCHIVE_BYTES;
  if (bound === "conversation" && isLengthKnown) return MAX_CONVERSATION_BYTES;
  return access === "public" ? MAX_PUBLIC_BODY_BYTES : MAX_BODY_BYTES;
};

/** Every so many bytes of a body cost one more request. */
const ORDINARY_BODY_BYTES = 32 * KIB;

/** What a request's body costs, in ordinary requests: parsing a megabyte takes as long as dozens of small requests. */
export function costOfRequest(request: Request): number {
  if (request.method === "GET") return 1;
  // A body of unknown length costs nothing here, but reserves the maximum while it is received.
  return 1 + Math.floor(Math.min(declaredLength(request) ?? 0, MAX_CONVERSATION_BYTES) / ORDINARY_BODY_BYTES);
}
