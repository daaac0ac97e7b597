import { email } from "../../http/fields.ts";
import { UsageError } from "../failure.ts";

/** Normalises an e-mail address as accounts store it: trimmed, lower-case. Throws `UsageError`. */
export function readEmail(text: string): string {
  const read = email.safeParse(text);
  if (read.success) return read.data;
  throw new UsageError(`"${text}" is not an e-mail address`);
}
