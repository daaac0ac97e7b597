import { createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { AppError } from "../lib/app-error.ts";

/** A page of a list (docs/contract/api.md, Conventions). */
export interface Page<T> {
  data: T[];
  hasMore: boolean;
  nextCursor: string | null;
}

const rest = { hasMore: z.boolean(), nextCursor: z.string().nullable() };
export const pageOf = <S extends z.ZodType>(item: S) => z.object({ data: z.array(item), ...rest });

const LIMIT = "a whole number from 1 to 100";

/** Base64url of the MAC and at least one byte of position. It has no example, since only this host can sign one. */
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

/** Where a page starts: after `position` of the named list, or at its beginning. */
export interface PageStart {
  limit: number;
  position: string | null;
  /** The cursor of the page after this position of the same list. */
  cursorBehind(position: string): string;
}

/**
 * Reads a query's cursor. `list` names the list and its owner; a cursor of another list, or one that this host did not
 * issue, is refused with 400.
 */
export type StartPage = (list: string, query: { limit: number; after?: string | undefined }) => PageStart;

const foreign = () => new AppError("invalid_request", "after: expected a nextCursor of this list");

/** 96 bits of an HMAC suffice, since a forged cursor can only be tried on this host. */
const MAC_BYTES = 12;

/** Cursors signed with `secret`, the host's key: base64url of the MAC and the position. */
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
    // Decoding is lenient, so check that the text is exactly the cursor that was issued.
    const isWhole = mark.byteLength === MAC_BYTES && bytes.toString("base64url") === after;
    if (!isWhole || !timingSafeEqual(mark, markOf(list, position))) throw foreign();
    return { limit, position, cursorBehind };
  };
}

/**
 * `rows` were read with `limit + 1`: the extra one shows that there are more. A page cut for its size has none, and
 * passes `hasMore` instead.
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
