import { domainToASCII } from "node:url";
import { z } from "zod";
import { AppError } from "../lib/app-error.ts";
import { isLabel } from "../lib/label.ts";
import { parseMoney } from "../lib/money.ts";

/**
 * Fields of the API's bodies and queries. Each says what it expects: the error for a bad field is `"<field>: expected
 * <that>"` (docs/contract/api.md, Conventions).
 */

/** The characters of a text, as Unicode counts them. */
const codePoints = (text: string): number => {
  let surrogates = 0;
  for (let at = 0; at < text.length; at++) if ((text.charCodeAt(at) & 0xfc00) === 0xdc00) surrogates++;
  return text.length - surrogates;
};

/** The same as a pattern: not only white space, and no control character. */
const LABEL =
  "^[^\\u0000-\\u001f\\u007f-\\u009f]*[^\\s\\u0000-\\u001f\\u007f-\\u009f][^\\u0000-\\u001f\\u007f-\\u009f]*$";

/** One line of `min` to `max` Unicode code points after trimming. */
export const trimmedText = (min: number, max: number) => {
  const expected = `${min} to ${max} characters`;
  return z
    .string({ error: expected })
    .trim()
    .refine(isLabel, { error: `${expected} on one line, without control characters` })
    .refine((text) => codePoints(text) >= min && codePoints(text) <= max, { error: expected })
    .meta({ minLength: min, maxLength: max, pattern: LABEL, examples: ["Ada"] });
};

const WELL_FORMED = "text of whole characters, without half of a surrogate pair";

/** Text that is not blank, of at most `max` code points; not trimmed. */
export const spokenText = (max: number) => {
  const expected = `text that is not blank, at most ${max} characters`;
  return z
    .string({ error: expected })
    .refine((text) => text.isWellFormed(), { error: WELL_FORMED })
    .refine((text) => text.trim() !== "" && codePoints(text) <= max, { error: expected })
    .meta({ minLength: 1, maxLength: max, pattern: "\\S", examples: ["What should I read on a train?"] });
};

const E_MAIL = /^[^\s@<>()[\],;:\\"\p{C}]{1,64}@[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/u;

/** ASCII addresses, the subset that a JSON Schema pattern can describe. */
const E_MAIL_FORM = "^[A-Za-z0-9_+-]{1,64}@[A-Za-z0-9]([A-Za-z0-9-]{0,60}[A-Za-z0-9])?\\.[A-Za-z]{2,20}$";

/** Leaves a capital alone that is not its small letter's: `İ` would become `i` and a mark, which is another mailbox. */
const inLowerCase = (text: string): string =>
  text.replace(/\p{Lu}/gu, (capital) => {
    const small = capital.toLowerCase();
    return small.toUpperCase() === capital ? small : capital;
  });

/** A domain in other letters than those of DNS. */
const UNICODE_DOMAIN = /^(?=.*\P{ASCII})[\p{L}\p{M}\p{N}.-]{1,253}$/u;

function comparedAddress(text: string): string {
  const at = text.lastIndexOf("@") + 1;
  const domain = text.slice(at);
  // One that has no ASCII form is refused.
  const inAscii = UNICODE_DOMAIN.test(domain) ? domainToASCII(domain) : domain.toLowerCase();
  return inLowerCase(text.slice(0, at)) + inAscii;
}

/** Trimmed, in lower case and with the domain in ASCII, as accounts are looked up (docs/contract/api.md, Signing in). */
export const email = z.lazy(() =>
  z
    .string({ error: "a valid e-mail address" })
    .trim()
    .overwrite(comparedAddress)
    .refine((text) => text.length <= 254 && E_MAIL.test(text) && !text.includes(".."), {
      error: "a valid e-mail address",
    })
    .meta({ format: "email", maxLength: 254, pattern: E_MAIL_FORM, examples: ["ada@example.org"] }),
);

export const flag = z.boolean({ error: "true or false" });

/** An ISO 8601 time with its zone; parsed to milliseconds since 1970. */
export const time = z.iso.datetime({
  offset: true,
  error: "a time in ISO 8601, such as 2026-11-21T10:00:00.000Z",
});

/** An amount: a decimal string, since a JSON number loses digits. */
export const money = z
  .string({ error: 'an amount as a decimal string with at most 6 decimals, such as "10.00"' })
  .regex(/^\d{1,9}(\.\d{1,6})?$/, { error: 'an amount as a decimal string with at most 6 decimals, such as "10.00"' })
  .meta({ examples: ["10.00"] });

const TOKENS = "a whole number from 0 to 9000000000000, or null for no limit";
const tokenLimit = z.int({ error: TOKENS }).min(0, { error: TOKENS }).max(9e12, { error: TOKENS }).nullish();
const costLimit = money
  .nullish()
  .transform((amount) => (amount == null ? amount : Number(parseMoney(amount))))
  .meta({ type: ["string", "null"] });

/** Limits of models: what is given changes, null takes a limit away. */
export const modelLimits = z.lazy(() =>
  z
    .object(
      { tokensPerDay: tokenLimit, tokensPerMonth: tokenLimit, costPerDay: costLimit, costPerMonth: costLimit },
      { error: "an object with tokensPerDay, tokensPerMonth, costPerDay and costPerMonth, or null for no limits" },
    )
    .nullable()
    .describe("The most that models may take in a day or month (UTC): tokens, and amounts in USD"),
);

/** Parses input. Throws `invalid_request` that names the first bad field and what was expected. */
export function parse<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = deepest(result.error.issues[0]);
  // An unknown field's name comes from the caller, and may be as long as the body.
  const field = issue && issue.path.length > 0 ? issue.path.map(String).join(".").slice(0, 200) : "body";
  const expected = issue?.message ?? "another value";
  const message = `${field}: expected ${expected.replace(/^Invalid input: expected /, "")}`;
  throw new AppError("invalid_request", message, field === "body" ? {} : { param: field });
}

/** Of a value that may be of several kinds, what is wrong within the only one that it can be meant as. */
function deepest(issue: z.core.$ZodIssue | undefined): z.core.$ZodIssue | undefined {
  if (issue?.code !== "invalid_union") return issue;
  const [meant, other] = issue.errors.flatMap(([first]) => (first && first.path.length > 0 ? [first] : []));
  return meant && !other ? deepest({ ...meant, path: [...issue.path, ...meant.path] }) : issue;
}

/** A body that changes what it gives, and has to give something. */
export function changeOf<Fields extends z.ZodRawShape>(fields: Fields) {
  const names = Object.keys(fields);
  return (
    z
      .object(fields)
      .refine((body) => Object.values(body).some((value) => value !== undefined), {
        error: `at least one of ${names.join(", ")}`,
      })
      // For the API's description, which does not show what a function checks. Types made from it would not understand
      // more than this.
      .meta({ minProperties: 1 })
  );
}
