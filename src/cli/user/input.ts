import { Failure } from "../failure.ts";

/**
 * All of standard input as text, without the one line end that `echo` and editors add. Throws, naming `what` it was to
 * be, where it is longer or no text.
 */
export async function readInput(what: string, mostBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of Bun.stdin.stream()) {
    size += chunk.byteLength;
    if (size > mostBytes + 2) throw new Failure(`${what} is longer than ${mostBytes / 1024} KiB`);
    chunks.push(chunk);
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks));
    return text.replace(/\r?\n$/, "");
  } catch (cause) {
    throw new Failure(`${what} is not UTF-8 text`, "encode it first, as base64 for example", { cause });
  }
}
