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
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks));
    return text.replace(/\r?\n$/, "");
  } catch (cause) {
    throw new Failure(`${what} is not UTF-8 text`, "encode it first, as base64 for example", { cause });
  }
}
