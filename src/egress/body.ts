import { type AnswerHead, valuesOf } from "./head.ts";
import type { SocketReader } from "./reader.ts";
import { EgressError } from "./refusal.ts";

const PIECE_BYTES = 64 * 1024;
/** Each piece is a trip to another thread: of 64 KiB, a megabyte takes three times as long. */
const DECODED_PIECE_BYTES = 256 * 1024;
const MAX_CHUNK_LINE = 256;
const LINE_FEED = 0x0a;
/** Beyond so many chunks they have to carry so much each: a megabyte in single bytes would take a fifth of a second. */
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
  let wake = () => {};
  for (const event of ["drain", "close"]) decoder.on(event, () => wake());
  function drained(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    wake = resolve;
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

/** Many small chunks that have arrived together are read together: one by one they would take five times as long. */
async function* readChunks(reader: SocketReader): AsyncGenerator<Buffer> {
  const chunks = createChunkReader();
  while (!chunks.ended()) {
    const bytes = await reader.some(PIECE_BYTES);
    if (bytes.length === 0) throw cutOff();
    const body = chunks.read(bytes);
    if (body.length > 0) yield body;
  }
}

/** Takes the body out of an answer's chunks (RFC 9112, 7.1), wherever the pieces of it begin and end. */
function createChunkReader() {
  const broken = () => new EgressError("protocol", "the answer has a broken chunk");
  let expected: "size" | "bytes" | "end" | "nothing" = "size";
  /** As much of the line as has come. */
  let line = "";
  /** Bytes of the chunk that are still to come. */
  let left = 0;
  let [chunks, received] = [0, 0];

  /** Reads a line up to its end, or as far as it goes. Returns where the next one begins. */
  function readLine(bytes: Buffer, from: number): number {
    const end = bytes.indexOf(LINE_FEED, from);
    line += bytes.toString("latin1", from, end < 0 ? bytes.length : end);
    if (line.length > MAX_CHUNK_LINE) throw broken();
    if (end < 0) return bytes.length;
    if (expected === "end") endChunk();
    else beginChunk();
    line = "";
    return end + 1;
  }

  function beginChunk(): void {
    const [, size] = /^([0-9a-f]{1,8})[ \t]*(?:;.*)?\r?$/i.exec(line) ?? [];
    if (size === undefined) throw broken();
    left = Number.parseInt(size, 16);
    received += left;
    // Trailers are not read: the connection is closed after every exchange.
    expected = left === 0 ? "nothing" : "bytes";
  }

  function endChunk(): void {
    if (line !== "" && line !== "\r") throw broken();
    if (++chunks > FREE_CHUNKS + received / CHUNK_BYTES) {
      throw new EgressError("protocol", "the answer comes in too many small chunks");
    }
    expected = "size";
  }

  return {
    ended: () => expected === "nothing",
    /** What these bytes have of the body, which is moved to their beginning. */
    read(bytes: Buffer): Buffer {
      let length = 0;
      for (let at = 0; at < bytes.length && expected !== "nothing"; ) {
        if (expected !== "bytes") {
          at = readLine(bytes, at);
          continue;
        }
        const end = Math.min(at + left, bytes.length);
        bytes.copyWithin(length, at, end);
        length += end - at;
        left -= end - at;
        at = end;
        if (left === 0) expected = "end";
      }
      return bytes.subarray(0, length);
    },
  };
}

async function* readExactly(reader: SocketReader, length: number): AsyncGenerator<Buffer> {
  for (let left = length; left > 0; ) {
    const bytes = await reader.some(Math.min(left, PIECE_BYTES));
    if (bytes.length === 0) throw cutOff();
    left -= bytes.length;
    yield bytes;
  }
}

const cutOff = (): EgressError =>
  new EgressError("protocol", "the server closed the connection before its answer's end");
const unclear = (): EgressError => new EgressError("protocol", "the answer's length is unclear");
