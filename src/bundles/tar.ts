/**
 * tar, as far as bundles need it (POSIX ustar, with pax headers for long names). Reading trusts nothing: an archive is a
 * stranger's, and no header makes it hold more memory, or do more work, than a file of a bundle may.
 */
import { decodeUtf8 } from "../lib/utf8.ts";

export interface TarFile {
  name: string;
  /** Bytes. */
  size: number;
  /** Milliseconds since 1970. */
  modifiedAtMs: number;
}

/** A file of an archive that is being read. What is not read of it is skipped. */
export interface TarEntry {
  name: string;
  size: number;
  /** All of it. Call this or `chunks`, once. Throws `TarError` if it is longer. */
  bytes(maxBytes: number): Promise<Buffer>;
  chunks(): AsyncGenerator<Uint8Array>;
}

/** Something that is no tar archive, a damaged one, or one with something else in it than files and folders. */
export class TarError extends Error {}

const BLOCK = 512;
/** Of a header that only describes the next one: a name of 8 parts of 100 characters fits several times. */
const MAX_META_BYTES = 8 * 1024;
const END = Buffer.alloc(2 * BLOCK);

const FILE_TYPES = new Set(["0", "\0", "7"]);
const FOLDER_TYPE = "5";
const PAX_TYPE = "x";
const PAX_GLOBAL_TYPE = "g";
const GNU_NAME_TYPE = "L";

const paddingOf = (size: number): number => -size & (BLOCK - 1);

/** What comes before a file's content. */
export function tarHeader({ name, size, modifiedAtMs }: TarFile): Buffer {
  const bytes = Buffer.from(name);
  const own = headerBlock(bytes, size, modifiedAtMs, "0");
  if (bytes.byteLength <= 100) return own;
  const record = paxRecord("path", name);
  const pax = headerBlock(Buffer.from("pax"), record.byteLength, modifiedAtMs, PAX_TYPE);
  return Buffer.concat([pax, record, tarPadding(record.byteLength), own]);
}

/** What comes after a file's content. */
export const tarPadding = (size: number): Buffer => Buffer.alloc(paddingOf(size));

/** The end of an archive. */
export const tarEnd = (): Buffer => END;

function headerBlock(name: Buffer, size: number, modifiedAtMs: number, type: string): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, "0")}\0`;
  name.copy(block, 0, 0, 100);
  block.write(octal(0o600, 7), 100);
  block.write(octal(0, 7), 108);
  block.write(octal(0, 7), 116);
  block.write(octal(size, 11), 124);
  block.write(octal(Math.max(0, Math.floor(modifiedAtMs / 1000)), 11), 136);
  block.write(type, 156);
  block.write("ustar\u000000", 257);
  block.write(`${octal(checksumOf(block), 6)} `, 148);
  return block;
}

/** A record says how long it is, in decimal digits that count too. */
function paxRecord(key: string, value: string): Buffer {
  const rest = ` ${key}=${value}\n`;
  const length = Buffer.byteLength(rest);
  let digits = String(length).length;
  if (String(length + digits).length > digits) digits++;
  return Buffer.from(`${length + digits}${rest}`);
}

/** The sum of a header's bytes, those of the sum itself counting as spaces. */
function checksumOf(block: Buffer): number {
  let sum = 0;
  for (let at = 0; at < BLOCK; at++) sum += at >= 148 && at < 156 ? 0x20 : (block[at] ?? 0);
  return sum;
}

/**
 * The files of an archive, in their order; folders are passed over. `maxHeaders` bounds what comes without any content.
 * Throws `TarError`.
 */
export async function* readTar(source: AsyncIterable<Uint8Array>, maxHeaders: number): AsyncGenerator<TarEntry> {
  const input = new ByteReader(source);
  try {
    let given: { name?: string; size?: number } = {};
    const described = new Set<string>();
    let headers = 0;
    for (let block = await input.take(BLOCK); !isZero(block); block = await input.take(BLOCK)) {
      if (++headers > maxHeaders) throw new TarError(`it has more than ${maxHeaders} headers`);
      const { name, size, type } = parseHeader(block);
      if (type === PAX_TYPE || type === PAX_GLOBAL_TYPE || type === GNU_NAME_TYPE) {
        if (size > MAX_META_BYTES) throw new TarError("it has a header that is too long");
        if (described.has(type)) throw new TarError("it describes a file twice");
        described.add(type);
        const meta = await input.take(size);
        await input.skip(paddingOf(size));
        if (type === PAX_TYPE) given = { ...given, ...parsePax(meta) };
        else if (type === GNU_NAME_TYPE) given = { ...given, name: textIn(meta, 0, size) };
        continue;
      }
      const file = { name: given.name ?? name, size: given.size ?? size };
      given = {};
      described.clear();
      if (type === FOLDER_TYPE) continue;
      if (!FILE_TYPES.has(type)) throw new TarError(`it holds "${file.name.slice(0, 200)}", which is not a plain file`);
      // Before POSIX, a folder was a file whose name ends in a slash.
      if (file.name.endsWith("/") && file.size === 0) continue;
      let left = file.size;
      yield {
        ...file,
        async bytes(maxBytes) {
          if (file.size > maxBytes) {
            throw new TarError(`its file "${file.name.slice(0, 200)}" has more than ${maxBytes} bytes`);
          }
          const bytes = await input.take(file.size);
          left = 0;
          return bytes;
        },
        async *chunks() {
          while (left > 0) {
            const chunk = await input.some(left);
            left -= chunk.byteLength;
            yield chunk;
          }
        },
      };
      await input.skip(left + paddingOf(file.size));
    }
    if (!isZero(await input.take(BLOCK))) throw new TarError("its end is damaged");
    await input.requireZeros();
  } finally {
    await input.close();
  }
}

const isZero = (bytes: Uint8Array): boolean => bytes.every((byte) => byte === 0);

function parseHeader(block: Buffer): { name: string; size: number; type: string } {
  if (octalIn(block, 148, 8) !== checksumOf(block))
    throw new TarError("a header in it is damaged, or it is no tar archive");
  const isPosix = block.subarray(257, 263).toString("latin1") === "ustar\0";
  const prefix = isPosix ? textIn(block, 345, 155) : "";
  const name = textIn(block, 0, 100);
  return {
    name: prefix === "" ? name : `${prefix}/${name}`,
    size: octalIn(block, 124, 12),
    type: String.fromCharCode(block[156] ?? 0),
  };
}

function textIn(block: Buffer, at: number, length: number): string {
  const field = block.subarray(at, at + length);
  const end = field.indexOf(0);
  return textOf(end < 0 ? field : field.subarray(0, end));
}

/** Sizes of more than 8 GiB have another form: no bundle has them. */
function octalIn(block: Buffer, at: number, length: number): number {
  const digits = block
    .subarray(at, at + length)
    .toString("latin1")
    .replace(/^ +/, "")
    .replace(/[\0 ].*$/s, "");
  if (!/^[0-7]{0,12}$/.test(digits)) throw new TarError("a header in it is damaged, or it is no tar archive");
  return digits === "" ? 0 : Number.parseInt(digits, 8);
}

/** Of all that a pax header may say, what changes how an archive is read. */
function parsePax(meta: Buffer): { name?: string; size?: number } {
  const found: { name?: string; size?: number } = {};
  for (let at = 0; at < meta.byteLength; ) {
    const space = meta.indexOf(0x20, at);
    const length = Number(meta.subarray(at, Math.max(at, space)).toString("latin1"));
    const record = meta.subarray(space + 1, at + length - 1);
    const equals = record.indexOf(0x3d);
    if (!Number.isInteger(length) || length < 5 || at + length > meta.byteLength || space < 0 || equals < 1) {
      throw new TarError("a header in it is damaged");
    }
    const key = record.subarray(0, equals).toString("latin1");
    const value = record.subarray(equals + 1);
    if (key === "path") found.name = textOf(value);
    if (key === "size") {
      if (!/^\d{1,11}$/.test(value.toString("latin1"))) throw new TarError("a header in it is damaged");
      found.size = Number(value.toString("latin1"));
    }
    at += length;
  }
  return found;
}

function textOf(bytes: Uint8Array): string {
  const text = decodeUtf8(bytes);
  if (text === null) throw new TarError("it has a name that is not UTF-8");
  return text;
}

/** Bytes of a stream, as many as are asked for. */
class ByteReader {
  private readonly iterator: AsyncIterator<Uint8Array>;
  private rest: Uint8Array = Buffer.alloc(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.iterator = source[Symbol.asyncIterator]();
  }

  /** Some of the next bytes, at most `max`. */
  async some(max: number): Promise<Uint8Array> {
    while (this.rest.byteLength === 0) {
      const { done, value } = await this.iterator.next();
      if (done) throw new TarError("it is incomplete: its end is missing");
      this.rest = value;
    }
    const bytes = this.rest.subarray(0, max);
    this.rest = this.rest.subarray(bytes.byteLength);
    return bytes;
  }

  /** Exactly so many. */
  async take(count: number): Promise<Buffer> {
    const bytes = Buffer.alloc(count);
    for (let at = 0; at < count; ) {
      const some = await this.some(count - at);
      bytes.set(some, at);
      at += some.byteLength;
    }
    return bytes;
  }

  async skip(count: number): Promise<void> {
    for (let left = count; left > 0; ) left -= (await this.some(left)).byteLength;
  }

  /** Reads to the end, where only padding may be left: a checksum of what is around the archive comes last. */
  async requireZeros(): Promise<void> {
    for (let chunk = this.rest; ; ) {
      if (!isZero(chunk)) throw new TarError("it goes on after its end");
      const { done, value } = await this.iterator.next();
      if (done) return;
      chunk = value;
    }
  }

  async close(): Promise<void> {
    await this.iterator.return?.();
  }
}
