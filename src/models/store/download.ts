/** Fetches a file from the hub into `<path>.part`, from where an earlier attempt has ended, and renames it once whole. */
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createPrivateFile, makePrivateFolder } from "../../lib/private-file.ts";
import { waitFor } from "../../lib/wait-for.ts";
import { type Hub, HubError, type HubFile } from "./hub.ts";
import type { ModelFile } from "./manifest.ts";

export interface DownloadOptions {
  hub: Pick<Hub, "open">;
  repository: string;
  revision: string;
  /** The model's folder. */
  folder: string;
  signal: AbortSignal;
  /** `done` counts the file's bytes that are on disk. */
  onBytes(done: number): void;
  /** Called before another attempt. */
  onRetry(reason: string): void;
  /** Before the first of several retries in a row; doubled for each that follows. */
  backOffMs?: number;
}

/** Attempts in a row that bring nothing. One that brings bytes begins the count anew. */
const MAX_ATTEMPTS = 5;
const BACK_OFF_MS = 1_000;

/** Returns the file as the manifest names it. Throws `HubError`; what has arrived stays for the next time. */
export async function download(file: HubFile, options: DownloadOptions): Promise<ModelFile> {
  const { folder, signal, onRetry, backOffMs = BACK_OFF_MS } = options;
  const path = join(folder, file.path);
  makePrivateFolder(dirname(path));
  const found = await digestOf(path, file);
  if (found !== null && isWhole(file, found)) return shown(file, found);
  await rm(path, { force: true });

  const part = `${path}.part`;
  let hashed = (await digestOf(part, file)) ?? newDigest(file);
  if (hashed.bytes > file.size) hashed = await beginAnew(part, file);
  for (let attempt = 0; hashed.bytes < file.size; ) {
    const before = hashed.bytes;
    try {
      hashed = await fetchRest(file, part, hashed, options);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof HubError) || !error.isPassing) throw error;
      hashed = (await digestOf(part, file)) ?? newDigest(file);
      attempt = hashed.bytes > before ? 1 : attempt + 1;
      if (attempt >= MAX_ATTEMPTS) throw error;
      onRetry(error.message);
      await waitFor(backOffMs * 2 ** (attempt - 1), signal);
    }
  }
  if (file.size === 0) createPrivateFile(part);
  if (!isWhole(file, hashed)) {
    await rm(part, { force: true });
    throw new HubError(
      `${file.path} is not what the hub promises (another checksum); run the same again to get it anew`,
    );
  }
  await rename(part, path);
  return shown(file, hashed);
}

/** What of a file is on disk. */
interface Digest {
  bytes: number;
  sha256: Bun.CryptoHasher;
  /** Git's, of the whole file. */
  sha1: Bun.CryptoHasher;
}

function newDigest({ size }: HubFile): Digest {
  const sha1 = new Bun.CryptoHasher("sha1").update(`blob ${size}\0`);
  return { bytes: 0, sha256: new Bun.CryptoHasher("sha256"), sha1 };
}

function add(digest: Digest, chunk: Uint8Array, { hash }: HubFile): void {
  digest.bytes += chunk.length;
  digest.sha256.update(chunk);
  if (hash.kind === "git") digest.sha1.update(chunk);
}

/** Of what is on disk; null if nothing is. */
async function digestOf(path: string, file: HubFile): Promise<Digest | null> {
  const blob = Bun.file(path);
  if (!(await blob.exists())) return null;
  const digest = newDigest(file);
  for await (const chunk of blob.stream()) add(digest, chunk, file);
  return digest;
}

const isWhole = ({ size, hash }: HubFile, { bytes, sha256, sha1 }: Digest): boolean =>
  bytes === size && (hash.kind === "git" ? sha1 : sha256).copy().digest("hex") === hash.hex;

const shown = ({ path, size }: HubFile, { sha256 }: Digest): ModelFile => ({
  path,
  size,
  sha256: sha256.copy().digest("hex"),
});

async function beginAnew(part: string, file: HubFile): Promise<Digest> {
  await rm(part, { force: true });
  return newDigest(file);
}

/** Appends what the hub sends, and puts it on disk. */
async function fetchRest(file: HubFile, part: string, before: Digest, options: DownloadOptions): Promise<Digest> {
  const { hub, repository, revision, signal, onBytes } = options;
  const { from, chunks } = await hub.open(repository, revision, file.path, before.bytes, signal);
  const digest = from === before.bytes ? before : await beginAnew(part, file);
  createPrivateFile(part);
  const target = await open(part, "a");
  try {
    for await (const chunk of chunks) {
      if (digest.bytes + chunk.length > file.size) {
        throw new HubError(`${file.path} is longer than the ${file.size} bytes that the hub has stated`);
      }
      await writeAll(target, chunk);
      add(digest, chunk, file);
      onBytes(digest.bytes);
    }
    await target.sync();
  } finally {
    await target.close();
  }
  if (digest.bytes < file.size) throw new HubError(`the connection was cut while ${file.path} arrived`, true);
  return digest;
}

async function writeAll(target: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let at = 0; at < chunk.length; ) at += (await target.write(chunk, at)).bytesWritten;
}
