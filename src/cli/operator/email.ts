import { email } from "../../http/fields.ts";
import { WrongUsage } from "../failure.ts";

/** Normalises an e-mail address as accounts store it: trimmed, lower-case. Throws `WrongUsage`. */
export function readEmail(text: string): string {
  const read = email.safeParse(text);
  if (read.success) return read.data;
  throw new WrongUsage(`"${text}" is not an e-mail address`);
}
