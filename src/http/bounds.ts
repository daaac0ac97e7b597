import { declaredLength } from "./request.ts";
import type { Route } from "./route.ts";

/**
 * What one request may cost the host, named by each route (api.md section 1). Rates, and the size of the body, follow from
 * its method and from who may use it; the answer's size and time are its own.
 */
export const BOUNDS = {
  /** One record, or a page of at most 100: a few look-ups. */
  record: { answer: "a record or a page of at most 100", lastsUntil: "it is made" },
  /** Texts of a workspace. */
  texts: { answer: "at most 1 MiB of text", lastsUntil: "it is made" },
  /** Waits for another machine: a mail server, the nodes of a chain, a facilitator. */
  outside: { answer: "a record", lastsUntil: "the deadline of the outgoing call" },
  /** Waits for an agent. */
  run: { answer: "a message, or its events", lastsUntil: "the run's end" },
  /** Goes on. */
  stream: { answer: "events, at the reader's pace", lastsUntil: "its credential or its agent ends" },
} as const;

export type Bound = keyof typeof BOUNDS;

/** Bytes of a body, at most (api.md section 1, Sizes and Limits). */
const BODY_BYTES = 1024 * 1024;
const PUBLIC_BODY_BYTES = 16 * 1024;

export const bodyBytesOf = ({ access, method }: Pick<Route, "access" | "method">): number => {
  if (method === "GET" || method === "DELETE") return 0;
  return access === "public" ? PUBLIC_BODY_BYTES : BODY_BYTES;
};

/** An ordinary answer, and an ordinary body; each further one of their size costs as much as one more request. */
const ORDINARY_ANSWER_BYTES = 4 * 1024;
const ORDINARY_BODY_BYTES = 64 * 1024;

/** What a request costs to take in, in ordinary ones: parsing a megabyte takes as long as a dozen small requests. */
export function costOfRequest(request: Request): number {
  if (request.method === "GET") return 1;
  // A body whose length is not told counts as nothing here; it keeps the room of the largest while it comes.
  return 1 + Math.floor(Math.min(declaredLength(request) ?? 0, BODY_BYTES) / ORDINARY_BODY_BYTES);
}

/** What an answer of so many bytes cost beyond an ordinary request. */
export const costOfAnswer = (answerBytes: number): number => Math.floor(answerBytes / ORDINARY_ANSWER_BYTES);
