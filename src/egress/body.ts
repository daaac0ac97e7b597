import { type AnswerHead, valuesOf } from "./head.ts";
import type { SocketReader } from "./reader.ts";
import { EgressError } from "./refusal.ts";

const PIECE_BYTES = 64 * 1024;
/** Each piece is a trip to another thread: of 64 KiB, a megabyte takes three times as long. */
const DECODED_PIECE_BYTES = 256 * 1024;
const MAX_CHUNK_LINE = 256;
/** Beyond so many chunks they have to carry so much each: a megabyte in single bytes would hold everybody up for a second. */
const FREE_CHUNKS = 2_000;
const CHUNK_BYTES = 64;

const DECODERS = {
  gzip: "createGunzip",
  "x-gzip": "createGunzip",
  deflate: "createInflate",
  br: "createBrotliDecompress",
} as const;

/** What is sent as `Accept-Encoding`. */
export const ENCODINGS = "gzip, deflate, br";

/**
 * The decoded body, as it comes. Bytes are counted on the wire and as they leave the decoder: more than `maxBytes` of
 * either throws `EgressError`, however little was sent for them.
 */
export async function* readBody(
  reader: SocketReader,
  method: string,
  head: AnswerHead,
  maxBytes: number,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const encoding = valuesOf(head, "content-encoding").join(",").toLowerCase();
  const wire = counted(readWire(reader, method, head), maxBytes);
  if (encoding === "" || encoding === "identity") {
    yield* wire;
    return;
  }
  if (!Object.hasOwn(DECODERS, encoding)) {
    throw new EgressError(
      "protocol",
      `the answer is encoded as ${JSON.stringify(encoding.slice(0, 50))}: expected ${ENCODINGS}`,
    );
  }
  const first = await wire.next();
  // HEAD and 204 may name an encoding without having a body.
  if (first.done) return;
  yield* counted(decode(encoding as keyof typeof DECODERS, first.value, wire, signal), maxBytes);
}

async function* decode(
  encoding: keyof typeof DECODERS,
  first: Buffer,
  rest: AsyncGenerator<Buffer>,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const zlib = await import("node:zlib");
  const decoder = zlib[DECODERS[encoding]]({ chunkSize: DECODED_PIECE_BYTES });
  async function feed(): Promise<void> {
    for (let bytes: Buffer | undefined = first; bytes; bytes = (await rest.next()).value as Buffer | undefined) {
      if (!decoder.write(bytes)) await drained();
    }
    decoder.end();
  }
  function drained(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    decoder.once("drain", resolve).once("close", resolve);
    return promise;
  }
  let cause: unknown;
  // What breaks on the wire ends the decoder too: nobody would wait for the rest for ever.
  const feeding = feed().catch((error: unknown) => {
    cause = error;
    decoder.destroy(error as Error);
  });
  try {
    yield* decoder as AsyncIterable<Buffer>;
    await feeding;
  } catch (error) {
    signal.throwIfAborted();
    throw cause ?? new EgressError("protocol", `the answer's ${encoding} encoding is damaged`, { cause: error });
  } finally {
    decoder.destroy();
  }
}

async function* counted(source: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Buffer> {
  let size = 0;
  for await (const bytes of source) {
    size += bytes.length;
    if (size > maxBytes) throw new EgressError("size", `the answer is larger than ${maxBytes} bytes`);
    yield bytes;
  }
}

/** The body as it is on the wire. */
async function* readWire(reader: SocketReader, method: string, head: AnswerHead): AsyncGenerator<Buffer> {
  if (method === "HEAD" || head.status === 204 || head.status === 304) return;
  const coding = valuesOf(head, "transfer-encoding").join(",").toLowerCase();
  const lengths = [...new Set(valuesOf(head, "content-length"))];
  const [length] = lengths;
  if (coding !== "") {
    if (coding !== "chunked" || length !== undefined) throw unclear();
    yield* readChunks(reader);
  } else if (length !== undefined) {
    if (lengths.length > 1 || !/^\d{1,15}$/.test(length)) throw unclear();
    yield* readExactly(reader, Number(length));
  } else {
    for (let bytes = await reader.some(PIECE_BYTES); bytes.length > 0; bytes = await reader.some(PIECE_BYTES))
      yield bytes;
  }
}

async function* readChunks(reader: SocketReader): AsyncGenerator<Buffer> {
  let received = 0;
  for (let chunks = 0; ; chunks++) {
    if (chunks > FREE_CHUNKS + received / CHUNK_BYTES) {
      throw new EgressError("protocol", "the answer comes in too many small chunks");
    }
    const [, size] = /^([0-9a-f]{1,8})[ \t]*(?:;.*)?$/i.exec(await reader.line(MAX_CHUNK_LINE)) ?? [];
    if (size === undefined) throw new EgressError("protocol", "the answer has a broken chunk");
    // Trailers are not read: the connection is closed after every exchange.
    if (Number.parseInt(size, 16) === 0) return;
    received += Number.parseInt(size, 16);
    yield* readExactly(reader, Number.parseInt(size, 16));
    if ((await reader.line(MAX_CHUNK_LINE)) !== "") throw new EgressError("protocol", "the answer has a broken chunk");
  }
}

async function* readExactly(reader: SocketReader, length: number): AsyncGenerator<Buffer> {
  for (let left = length; left > 0; ) {
    const bytes = await reader.some(Math.min(left, PIECE_BYTES));
    if (bytes.length === 0)
      throw new EgressError("protocol", "the server closed the connection before its answer's end");
    left -= bytes.length;
    yield bytes;
  }
}

const unclear = (): EgressError => new EgressError("protocol", "the answer's length is unclear");
