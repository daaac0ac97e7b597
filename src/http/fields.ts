import { z } from "zod";
import { AppError } from "../lib/app-error.ts";

/**
 * Fields as the API's bodies and queries use them. Each carries what it expects, in words: a refused field is answered
 * with `"<field>: expected <those words>"` (api.md section 1).
 */
const codePoints = (text: string): number => {
  let surrogates = 0;
  for (let at = 0; at < text.length; at++) if ((text.charCodeAt(at) & 0xfc00) === 0xdc00) surrogates++;
  return text.length - surrogates;
};

/** A label takes one line: SQLite counts text up to a NUL, and control characters do harm on a terminal. */
const isLabel = (text: string): boolean => text.isWellFormed() && !/\p{Cc}/u.test(text);

/** The same for a schema: something else than white space, and no control character. */
const LABEL =
  "^[^\\u0000-\\u001f\\u007f-\\u009f]*[^\\s\\u0000-\\u001f\\u007f-\\u009f][^\\u0000-\\u001f\\u007f-\\u009f]*$";

/** One line of `min` to `max` Unicode code points after trimming. */
export const trimmedText = (min: number, max: number, expected = `${min} to ${max} characters`) =>
  z
    .string({ error: expected })
    .trim()
    .refine((text) => isLabel(text) && codePoints(text) >= min && codePoints(text) <= max, { error: expected })
    .meta({ minLength: min, maxLength: max, pattern: LABEL, examples: ["Ada"] });

/** Text that is not blank, untouched otherwise, of at most `max` code points. */
export const spokenText = (max: number) => {
  const expected = `text that is not blank, at most ${max} characters`;
  return z
    .string({ error: expected })
    .refine((text) => text.isWellFormed() && text.trim() !== "" && codePoints(text) <= max, { error: expected })
    .meta({ minLength: 1, maxLength: max, pattern: "\\S", examples: ["What should I read on a train?"] });
};

const E_MAIL = /^[^\s@<>()[\],;:\\"\p{C}]{1,64}@[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/u;

/** The addresses that any schema's user can make: those of ASCII. */
const E_MAIL_FORM = "^[A-Za-z0-9_+-]{1,64}@[A-Za-z0-9]([A-Za-z0-9-]{0,60}[A-Za-z0-9])?\\.[A-Za-z]{2,20}$";

/** Trimmed and lower-cased, as accounts are compared (api.md section 2). */
export const email = z
  .string({ error: "a valid e-mail address" })
  .trim()
  .toLowerCase()
  .refine((text) => text.length <= 254 && E_MAIL.test(text) && !text.includes(".."), {
    error: "a valid e-mail address",
  })
  .meta({ format: "email", maxLength: 254, pattern: E_MAIL_FORM, examples: ["ada@example.org"] });

export const flag = z.boolean({ error: "true or false" });

/** A time in the future or past, ISO 8601 with its zone; the value is milliseconds since 1970. */
export const time = z.iso.datetime({
  offset: true,
  error: "a time in ISO 8601, such as 2026-11-21T10:00:00.000Z",
});

/** Money of a request: a decimal string (a JSON number loses digits). The value is that string. */
export const money = z
  .string({ error: 'an amount as a decimal string with at most 6 decimals, such as "10.00"' })
  .regex(/^\d{1,9}(\.\d{1,6})?$/, { error: 'an amount as a decimal string with at most 6 decimals, such as "10.00"' })
  .meta({ examples: ["10.00"] });

/** Parses at the edge. Throws `invalid_request` that names the first refused field and what was expected of it. */
export function parse<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  // A field's name may be the caller's own, and as long as the body.
  const field = issue && issue.path.length > 0 ? issue.path.map(String).join(".").slice(0, 200) : "body";
  const expected = issue?.message ?? "another value";
  throw new AppError("invalid_request", `${field}: expected ${expected.replace(/^Invalid input: expected /, "")}`);
}

/** What a body's schema says of fields of which one is needed, as one refuses the body without them all. */
export const needsOneOf = (...names: string[]) => ({ anyOf: names.map((name) => ({ required: [name] })) });
