import { createHash } from "node:crypto";

/**
 * JSON in the one form that RFC 8785 gives it: members sorted by their names' UTF-16 code units, no white space, numbers
 * and strings as ECMAScript writes them. Throws `TypeError` for what JSON or Unicode cannot say: NaN, a lone surrogate.
 */
export function canonicalJson(value: unknown): string {
  switch (typeof value) {
    case "string":
      if (!value.isWellFormed()) throw new TypeError("a lone surrogate is no Unicode text");
      return JSON.stringify(value);
    case "number":
      if (!Number.isFinite(value)) throw new TypeError("JSON has no such number");
      return JSON.stringify(value);
    case "boolean":
      return String(value);
    case "object":
      if (value === null) return "null";
      if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
      return `{${membersOf(value).join(",")}}`;
    default:
      throw new TypeError(`JSON has no ${typeof value}`);
  }
}

/** Members that are undefined are absent, as `JSON.stringify` has it. Sorted by code units, as `sort` compares texts. */
const membersOf = (value: object): string[] =>
  Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${canonicalJson(name)}:${canonicalJson(member)}`);

/** SHA-256 of the canonical form, in hexadecimal. */
export const hashOfJson = (value: unknown): string => createHash("sha256").update(canonicalJson(value)).digest("hex");
