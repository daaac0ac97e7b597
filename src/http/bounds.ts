import type { RateName } from "../limits/account-rates.ts";
import { declaredLength } from "./request.ts";
import type { Route } from "./route.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

/**
 * What one request may cost the host, named by each route: the size of its answer, and what ends it. Its rate and the size of
 * its body follow from its method and from who may use it (`rateOf`, `bodyBytesOf`).
 */
export const BOUNDS = {
  /** One record: a few look-ups. */
  record: { answerBytes: 256 * KIB, endsWith: "the commit" },
  /** At most 100 records; of large ones, as many as make a mebibyte. */
  page: { answerBytes: 8 * MIB, endsWith: "the read" },
  /** A mebibyte of texts, which JSON may make longer. */
  texts: { answerBytes: 8 * MIB, endsWith: "the commit" },
  /** Waits for another machine: a mail server, the nodes of a chain, a facilitator. */
  outside: { answerBytes: 256 * KIB, endsWith: "the deadline of the call in limits/outgoing.ts" },
  /** Waits for an agent, with a place for as long (lasting-answers.ts). */
  run: { answerBytes: 8 * MIB, endsWith: "the run" },
  /** Goes on, with a place for as long. What waits for a slow reader is bounded by the hub. */
  stream: { answerBytes: 32 * KIB, endsWith: "the credential, the agent or the client" },
} as const satisfies Record<string, { answerBytes: number; endsWith: string }>;

export type Bound = keyof typeof BOUNDS;

export type RequestRate = RateName | "an address's requests";

/** What a request counts against: GETs are reads, everything else is a write, and strangers are their address. */
export const rateOf = ({ access, method }: Pick<Route, "access" | "method">): RequestRate =>
  access === "public" ? "an address's requests" : rateOfMethod(method);

export const rateOfMethod = (method: string): RateName => (method === "GET" || method === "HEAD" ? "reads" : "writes");

/** Bytes of a body, at most (api.md section 1, Sizes and Limits). */
const BODY_BYTES = 1024 * 1024;
const PUBLIC_BODY_BYTES = 16 * 1024;

export const bodyBytesOf = ({ access, method }: Pick<Route, "access" | "method">): number => {
  if (method === "GET" || method === "DELETE") return 0;
  return access === "public" ? PUBLIC_BODY_BYTES : BODY_BYTES;
};

/** An ordinary body; each further one of its size costs as much as one more request. */
const ORDINARY_BODY_BYTES = 32 * KIB;

/** What a request costs to take in, in ordinary ones: parsing a megabyte takes as long as dozens of small requests. */
export function costOfRequest(request: Request): number {
  if (request.method === "GET") return 1;
  // A body whose length is not told counts as nothing here; it keeps the room of the largest while it comes.
  return 1 + Math.floor(Math.min(declaredLength(request) ?? 0, BODY_BYTES) / ORDINARY_BODY_BYTES);
}
