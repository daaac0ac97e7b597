import { createHash, type Hash } from "node:crypto";
import { Decrypter, Encrypter } from "age-encryption";
import { createTarDecoder, createTarPacker, type TarHeader } from "modern-tar";
import { messageOf } from "../lib/message-of.ts";
import { streamOf } from "../lib/stream-of.ts";

/**
 * A backup file: tar, compressed with Zstandard, and encrypted with age if it has a passphrase. Without Roost, `age -d`
 * and `tar --zstd -x` open it.
 */

/** One file in an archive. `name` is relative, with `/`. */
export interface ArchivedFile {
  name: string;
  /** Bytes. */
  size: number;
  /** Milliseconds since 1970. */
  modifiedAtMs: number;
  content: AsyncIterable<Uint8Array>;
}

/** The last file of an archive: what was written before it. */
export interface Summary<About> {
  about: About;
  files: number;
  /** The size of these files together. */
  bytes: number;
  /** SHA-256 of their names, sizes and contents, in hexadecimal. */
  sha256: string;
}

/** Tar's times are unsigned numbers of 33 bits, in seconds; a file's may be any. */
const MAX_TIME_MS = (2 ** 33 - 1) * 1000;
const withinTar = (ms: number): number => Math.min(Math.max(0, ms), MAX_TIME_MS);
/** The same with a fraction: a record of the extended header (POSIX, pax). */
const EXACT_TIME = "mtime";
const SUMMARY_FILE = "backup.json";
const MAX_SUMMARY_BYTES = 64 * 1024;

/** A file that is no backup, or a damaged one, or one that the passphrase does not open. */
export class ArchiveError extends Error {}

/** What an archive is read from: a blob, or something that reads like one. */
export interface Source {
  slice(from: number, to: number): { arrayBuffer(): Promise<ArrayBuffer> };
  stream(): ReadableStream<Uint8Array>;
}

/** What a summary says of the files: the same for who writes them and who reads them. */
function createTally() {
  const hash: Hash = createHash("sha256");
  const tally = { files: 0, bytes: 0 };
  return {
    begin({ name, size }: Pick<ArchivedFile, "name" | "size">) {
      tally.files += 1;
      tally.bytes += size;
      hash.update(`${JSON.stringify([name, size])}\n`);
    },
    add: (chunk: Uint8Array) => void hash.update(chunk),
    end: () => ({ ...tally, sha256: hash.digest("hex") }),
  };
}

/**
 * The bytes of an archive with these files. `about` is asked once all of them are written. A file that ends early or goes
 * on beyond its size fails the archive.
 */
export async function writeArchive<About>(
  files: AsyncIterable<ArchivedFile>,
  about: () => About,
  passphrase: string | null,
): Promise<ReadableStream<Uint8Array>> {
  const { readable, controller } = createTarPacker();
  const tally = createTally();

  async function add(file: ArchivedFile, onChunk: (chunk: Uint8Array) => void): Promise<void> {
    const { name, size, modifiedAtMs, content } = file;
    const mtime = new Date(withinTar(modifiedAtMs));
    const pax = { [EXACT_TIME]: (mtime.getTime() / 1000).toFixed(3) };
    const entry = controller.add({ name, size, type: "file", mode: 0o600, mtime, pax }).getWriter();
    for await (const chunk of content) {
      onChunk(chunk);
      await entry.write(chunk);
    }
    await entry.close();
  }

  async function addAll(): Promise<void> {
    for await (const file of files) {
      tally.begin(file);
      await add(file, tally.add);
    }
    const summary: Summary<About> = { about: about(), ...tally.end() };
    const bytes = Buffer.from(JSON.stringify(summary, null, 2));
    await add({ name: SUMMARY_FILE, size: bytes.length, modifiedAtMs: Date.now(), content: only(bytes) }, () => {});
    controller.finalize();
  }

  addAll().catch((error: unknown) => controller.error(error));
  const compressed = (readable as Bytes).pipeThrough(new CompressionStream(ZSTD) as Transform);
  if (passphrase === null) return compressed;
  const encrypter = new Encrypter();
  encrypter.setScryptWorkFactor(SCRYPT_WORK_FACTOR);
  encrypter.setPassphrase(passphrase);
  return encrypter.encrypt(compressed);
}

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/**
 * Reads an archive and hands each file to `take`, which must read its content to the end. Returns the summary once it is
 * known to be that of the files. Throws `ArchiveError`, or what the source or `take` has thrown; then what was taken is not to
 * be trusted.
 */
export async function readArchive<About>(
  archive: Source,
  passphrase: string | null,
  take: (file: ArchivedFile) => Promise<void>,
): Promise<Summary<About>> {
  const tally = createTally();
  let summary: Summary<About> | null = null;
  /** An error of the source, or of `take`, does not say that the archive is damaged. */
  let other: { error: unknown } | null = null;
  const noteOther = (error: unknown): never => {
    other ??= { error };
    throw error;
  };
  try {
    const opened = await open(withErrors(archive, noteOther), passphrase);
    for await (const { header, body } of opened.pipeThrough(createTarDecoder({ strict: true }))) {
      const { name, size } = header;
      if (header.type !== "file") throw new ArchiveError(`it holds "${name}", which is not a file`);
      if (summary !== null) throw new ArchiveError(`it goes on after ${SUMMARY_FILE}`);
      const content = body as unknown as AsyncIterable<Uint8Array>;
      if (name === SUMMARY_FILE) {
        summary = await readSummary<About>(content, size);
        continue;
      }
      tally.begin(header);
      await take({ name, size, modifiedAtMs: timeOf(header), content: counted(content, tally.add) }).catch(noteOther);
    }
  } catch (error) {
    if (other !== null) throw (other as { error: unknown }).error;
    throw error instanceof ArchiveError ? error : damaged(error);
  }
  if (summary === null) throw new ArchiveError("it is incomplete: its end is missing");
  const { files, bytes, sha256 } = tally.end();
  if (summary.files !== files || summary.bytes !== bytes || summary.sha256 !== sha256) {
    throw new ArchiveError("it is damaged: its files are not those that were written");
  }
  return summary;
}

/** In milliseconds since 1970; earlier builds wrote whole seconds only. */
const timeOf = ({ mtime, pax }: TarHeader): number =>
  withinTar(Math.round(Number(pax?.[EXACT_TIME]) * 1000) || mtime?.getTime() || 0);

/** The same source; each error of reading it is passed to `onError` first. */
function withErrors(source: Source, onError: (error: unknown) => never): Source {
  async function* chunks() {
    try {
      yield* source.stream();
    } catch (error) {
      onError(error);
    }
  }
  return {
    slice: (from, to) => ({ arrayBuffer: () => source.slice(from, to).arrayBuffer().catch(onError) }),
    stream: () => streamOf(chunks()),
  };
}

/** Passes each chunk to `count` first. That it cannot be read is the archive's fault, also where `take` reads it. */
async function* counted(content: AsyncIterable<Uint8Array>, count: (chunk: Uint8Array) => void) {
  try {
    for await (const chunk of content) {
      count(chunk);
      yield chunk;
    }
  } catch (error) {
    throw damaged(error);
  }
}

const damaged = (cause: unknown): ArchiveError => new ArchiveError(`it is damaged: ${messageOf(cause)}`, { cause });

async function readSummary<About>(content: AsyncIterable<Uint8Array>, size: number): Promise<Summary<About>> {
  if (size > MAX_SUMMARY_BYTES) throw new ArchiveError(`its ${SUMMARY_FILE} is too large`);
  const text = await new Response(content as unknown as ReadableStream).text();
  try {
    return JSON.parse(text) as Summary<About>;
  } catch (cause) {
    throw new ArchiveError(`its ${SUMMARY_FILE} is not valid JSON`, { cause });
  }
}

type Bytes = ReadableStream<Uint8Array>;
type Transform = ReadableWritablePair<Uint8Array, Uint8Array>;
/** Bun's streams take it; TypeScript's description of browsers does not know it. */
const ZSTD = "zstd" as CompressionFormat;

/** N = 2 ** 17, which OWASP recommends for passwords: 128 MiB, and a second or two. */
const SCRYPT_WORK_FACTOR = 17;

const AGE = "age-encryption.org/v1";
const ZSTANDARD = "28b52ffd";

type Format = "encrypted" | "plain" | null;

async function formatOf(archive: Source): Promise<Format> {
  const head = Buffer.from(await archive.slice(0, AGE.length).arrayBuffer());
  if (head.toString("latin1") === AGE) return "encrypted";
  return head.subarray(0, 4).toString("hex") === ZSTANDARD ? "plain" : null;
}

/** Whether it begins as a backup does. */
export const isBackup = async (archive: Source): Promise<boolean> => (await formatOf(archive)) !== null;

async function open(archive: Source, passphrase: string | null): Promise<ReadableStream<Uint8Array>> {
  const format = await formatOf(archive);
  if (format === null) throw new ArchiveError("it is not a backup of Roost");
  if (format === "plain") return decompress(archive.stream());
  if (passphrase === null) throw new ArchiveError("it is encrypted: its passphrase is needed (--passphrase-file)");
  const decrypter = new Decrypter();
  decrypter.addPassphrase(passphrase);
  try {
    return decompress(await decrypter.decrypt(archive.stream()));
  } catch (cause) {
    throw new ArchiveError("the passphrase does not open it, or its beginning is damaged", { cause });
  }
}

const decompress = (stream: Bytes): Bytes => stream.pipeThrough(new DecompressionStream(ZSTD) as Transform);

/** Whether a file of this name would be encrypted. */
export const isEncrypted = (name: string): boolean => name.endsWith(".age");
