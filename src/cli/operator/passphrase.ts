import { readFileSync } from "node:fs";
import { describeSystemError } from "../../lib/system-error.ts";

/** The passphrase of backups: the file's first line. Throws, saying how to fix it, if there is none. */
export function readPassphraseFile(path: string): string {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw describeSystemError(`the passphrase file ${path} cannot be read`, error);
  }
  const [line = ""] = text.split(/\r?\n/, 1);
  if (line.trim() !== "") return line;
  throw new Error(`the passphrase file ${path} begins with an empty line; write the passphrase into its first line`);
}
