import { decodeUtf8 } from "../../lib/utf8.ts";
import { Failure } from "../failure.ts";

/**
 * Reads all of standard input as text, without the final newline that `echo` and editors add. Throws, naming it as
 * `what`, if it is too long or not UTF-8.
 */
export async function readInput(what: string, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of Bun.stdin.stream()) {
    size += chunk.byteLength;
    if (size > maxBytes + 2) throw new Failure(`${what} is longer than ${maxBytes / 1024} KiB`);
    chunks.push(chunk);
  }
  const text = decodeUtf8(Buffer.concat(chunks));
  if (text === null) throw new Failure(`${what} is not UTF-8 text`, "encode it first, as base64 for example");
  return text.replace(/\r?\n$/, "");
}
