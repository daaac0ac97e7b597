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

/** The query of every list. */
export const pageQuery = z.object({
  limit: z
    .string({ error: LIMIT })
    .regex(/^\d{1,3}$/, { error: LIMIT })
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= 100, { error: LIMIT })
    .default(50)
    .meta({ type: "integer", pattern: undefined, minimum: 1, maximum: 100 }),
  after: z.string({ error: "a nextCursor of this list" }).optional(),
});

/** Where a page begins: behind `position` of the named list, or at its start. */
export interface PageStart {
  list: string;
  limit: number;
  position: string | null;
}

const foreign = () => new AppError("invalid_request", "after: expected a nextCursor of this list");

/** Reads the cursor. `list` names the list and its owner; a cursor of any other list is refused with 400. */
export function pageStart(list: string, query: { limit: number; after?: string | undefined }): PageStart {
  if (query.after === undefined) return { list, limit: query.limit, position: null };
  const position = Buffer.from(query.after, "base64url").toString("utf8").slice(MARK_LENGTH);
  if (encode(list, position) !== query.after) throw foreign();
  return { list, limit: query.limit, position };
}

/** `rows` were read with `limit + 1`: the extra one only tells that there is more. */
export function toPage<R, T>(
  start: PageStart,
  rows: R[],
  positionOf: (row: R) => string,
  show: (row: R) => T,
): Page<T> {
  const shown = rows.slice(0, start.limit);
  const last = shown.at(-1);
  const hasMore = rows.length > start.limit && last !== undefined;
  return { data: shown.map(show), hasMore, nextCursor: hasMore ? encode(start.list, positionOf(last)) : null };
}

/** Of a hash over the list and the position: a cursor that was altered is as foreign as another list's. */
const MARK_LENGTH = 7;

function encode(list: string, position: string): string {
  const mark = Bun.hash.xxHash32(`${list}\n${position}`).toString(36).padStart(MARK_LENGTH, "0");
  return Buffer.from(mark + position, "utf8").toString("base64url");
}
