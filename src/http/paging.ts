import { createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { AppError } from "../lib/app-error.ts";

/** A list's answer (api.md section 1). */
export interface Page<T> {
  data: T[];
  hasMore: boolean;
  nextCursor: string | null;
}

export const pageOf = <S extends z.ZodType>(item: S) =>
  z.object({ data: z.array(item), hasMore: z.boolean(), nextCursor: z.string().nullable() });

const LIMIT = "a whole number from 1 to 100";

/** Base64url of the mark and of one byte of a position at least. No example would be taken: the mark is the host's. */
const CURSOR = "^[A-Za-z0-9_-]{18,}$";

/** The query of every list. */
export const pageQuery = z.object({
  limit: z
    .string({ error: LIMIT })
    .regex(/^\d{1,3}$/, { error: LIMIT })
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= 100, { error: LIMIT })
    .default(50)
    .meta({ type: "integer", pattern: undefined, minimum: 1, maximum: 100 }),
  after: z
    .string({ error: "a nextCursor of this list" })
    .meta({ description: "The nextCursor of the page before", pattern: CURSOR })
    .optional(),
});

/** Where a page begins: behind `position` of the named list, or at its start. */
export interface PageStart {
  limit: number;
  position: string | null;
  /** The cursor of the page that begins behind this position of the same list. */
  cursorBehind(position: string): string;
}

/**
 * Reads a query's cursor. `list` names the list and its owner; a cursor of any other list, and one that the host has not
 * given out, is refused with 400.
 */
export type StartPage = (list: string, query: { limit: number; after?: string | undefined }) => PageStart;

const foreign = () => new AppError("invalid_request", "after: expected a nextCursor of this list");

/** 96 bits of an HMAC: who would make up a cursor has nothing to try it on but the host. */
const MAC_BYTES = 12;

/** Cursors that carry the mark of `secret`, the host's key for them: base64url of the mark and the position. */
export function createPaging(secret: Buffer): StartPage {
  const markOf = (list: string, position: string): Buffer =>
    createHmac("sha256", secret).update(`${list}\n${position}`).digest().subarray(0, MAC_BYTES);

  return (list, { limit, after }) => {
    const cursorBehind = (position: string): string =>
      Buffer.concat([markOf(list, position), Buffer.from(position)]).toString("base64url");
    if (after === undefined) return { limit, position: null, cursorBehind };
    const bytes = Buffer.from(after, "base64url");
    const mark = bytes.subarray(0, MAC_BYTES);
    const position = bytes.toString("utf8", MAC_BYTES);
    // Base64 and UTF-8 are read leniently: one position has one cursor, of exactly the text that was given out.
    const isWhole = mark.byteLength === MAC_BYTES && bytes.toString("base64url") === after;
    if (!isWhole || !timingSafeEqual(mark, markOf(list, position))) throw foreign();
    return { limit, position, cursorBehind };
  };
}

/**
 * `rows` were read with `limit + 1`: the extra one only tells that there is more. Where a page was cut for its size there
 * is none, and `hasMore` tells.
 */
export function toPage<R, T>(
  start: PageStart,
  rows: R[],
  positionOf: (row: R) => string,
  show: (row: R) => T,
  hasMore = rows.length > start.limit,
): Page<T> {
  const shown = rows.slice(0, start.limit);
  const last = shown.at(-1);
  const nextCursor = hasMore && last !== undefined ? start.cursorBehind(positionOf(last)) : null;
  return { data: shown.map(show), hasMore: nextCursor !== null, nextCursor };
}
