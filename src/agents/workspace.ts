/** An agent's files on disk: `<data>/instances/<instanceId>/agents/<slug>/`. Knows no database. */
import { createHash, randomUUID } from "node:crypto";
import fs from "node:fs";
import { join } from "node:path";
import { AppError } from "../lib/app-error.ts";
import { parseFileName, refuseClash } from "./file-name.ts";
import { openJail } from "./jail.ts";
import { hasCode } from "./jail-portable.ts";
import type { ListedFile, Scan } from "./jail-scan.ts";

/** One workspace file (api.md section 1, Sizes). */
export const MAX_FILE_BYTES = 256 * 1024;
/** All files of one workspace (runtime.md, Isolation). */
export const MAX_WORKSPACE_BYTES = 100 * 1024 * 1024;
/** Files of one workspace (runtime.md, Isolation); those beyond, which only an operator can make, are not seen. */
export const MAX_WORKSPACE_FILES = 10_000;

/** `content: null` deletes the file; deleting what is not there is no error. */
export interface FileChange {
  name: string;
  content: string | Uint8Array | null;
}

export interface WorkspaceFile {
  bytes: Buffer;
  /** Strong, with its quotes; made from the content alone. */
  etag: string;
  /** Milliseconds since 1970. */
  updatedAtMs: number;
}

const SLUG = /^[a-z0-9][a-z0-9-]{0,62}$/;

/** Where the workspace of that slug is. Throws TypeError for what is no slug: such a path may lead anywhere. */
export function workspaceFolder(instanceFolder: string, slug: string): string {
  if (!SLUG.test(slug)) throw new TypeError("not a slug");
  return join(instanceFolder, "agents", slug);
}

/** Where changes wait for their commit, and removed folders for their end. Made if need be: a backup may lack it. */
export function stagingFolder(instanceFolder: string): string {
  const folder = join(instanceFolder, ".staging");
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/** Makes the folder that holds an instance's workspaces, on disk when it returns. It may exist already. */
export function createInstanceFolder(instanceFolder: string): void {
  stagingFolder(instanceFolder);
  fs.mkdirSync(join(instanceFolder, "agents"), { recursive: true, mode: 0o700 });
  for (const folder of [instanceFolder, join(instanceFolder, "..")]) syncFolder(folder);
}

/** Removes the instance's folder and all workspaces; links in it are removed, never followed. */
export function removeInstanceFolder(instanceFolder: string): void {
  fs.rmSync(instanceFolder, { recursive: true, force: true });
}

/** Removes the workspace: gone at once and for good, then its files one by one. An absent one is no error. */
export function removeWorkspace(instanceFolder: string, slug: string): void {
  const trash = join(stagingFolder(instanceFolder), `trash-${randomUUID()}`);
  try {
    fs.renameSync(workspaceFolder(instanceFolder, slug), trash);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return;
    throw error;
  }
  syncFolder(join(instanceFolder, "agents"));
  fs.rmSync(trash, { recursive: true, force: true });
}

/** One file, or null. Throws `invalid_request` for one that somebody made larger than `MAX_FILE_BYTES`. */
export function readFile(folder: string, name: string): WorkspaceFile | null {
  const content = openJail(folder).read(name, MAX_FILE_BYTES);
  if (content === null) return null;
  return { bytes: content.bytes, etag: etagOf(content.bytes), updatedAtMs: Math.floor(content.mtimeMs) };
}

/** The whole tree, sorted by name (by code unit). */
export const listFiles = (folder: string): ListedFile[] => openJail(folder).scan(MAX_WORKSPACE_FILES).files;

/**
 * Every text file, name → text, in the order of the names. A file that an operator put there and that is no text, or
 * larger than `MAX_FILE_BYTES`, is listed by `listFiles` only.
 */
export function readWorkspace(folder: string): Map<string, string> {
  const jail = openJail(folder);
  const texts = new Map<string, string>();
  for (const { name, size } of jail.scan(MAX_WORKSPACE_FILES).files) {
    const content = size > MAX_FILE_BYTES ? null : jail.read(name, MAX_FILE_BYTES);
    const text = content === null ? null : textOf(content.bytes);
    if (text !== null) texts.set(name, text);
  }
  return texts;
}

/** Those of the named files at the top of the workspace that are there and are text, in the order of the names. */
export function readTexts(folder: string, names: readonly string[]): { name: string; text: string }[] {
  return openJail(folder)
    .readRoot(names, MAX_FILE_BYTES)
    .flatMap(({ name, bytes }) => {
      const text = textOf(bytes);
      return text === null ? [] : [{ name, text }];
    });
}

/**
 * Writes one file by itself, whole or not at all, on disk when it returns: what a tool does, which has no transaction
 * to follow. Throws `invalid_request` as `checkChanges` does.
 */
export function writeFile(folder: string, name: string, content: string | Uint8Array): void {
  const jail = openJail(folder);
  for (const { bytes } of checkChanges([{ name, content }], jail.scan(MAX_WORKSPACE_FILES), "name")) {
    if (bytes !== null) jail.write(name, bytes);
  }
}

/** False where there was no such file. Folders left empty go with it. */
export const removeFile = (folder: string, name: string): boolean => openJail(folder).remove(name);

/**
 * The changes as bytes, one for each name (the last counts), if a workspace that holds `present` can take them all.
 * Throws `invalid_request` for a bad name, a clash, a file or a workspace over its limit, or text that UTF-8 cannot hold.
 */
export function checkChanges(
  changes: readonly FileChange[],
  present: Scan,
  field = "files",
): { name: string; bytes: Uint8Array | null }[] {
  const wanted = new Map(changes.map(({ name, content }) => [parseFileName(name, field), content]));
  const checked = Array.from(wanted, ([name, content]) => ({ name, bytes: bytesOf(name, content, field) }));
  const kept = present.files.filter(({ name }) => wanted.get(name) !== null);
  const set = checked.flatMap(({ name, bytes }) => (bytes === null ? [] : [{ name, size: bytes.byteLength }]));
  refuseClash(
    [...kept.map(({ name }) => name), ...present.others],
    set.map(({ name }) => name),
    field,
  );
  const after = new Map([...kept, ...set].map(({ name, size }) => [name, size]));
  const total = (sizes: Iterable<number>) => Array.from(sizes).reduce((sum, size) => sum + size, 0);
  const before = total(present.files.map(({ size }) => size));
  refuseOver("files", after.size, MAX_WORKSPACE_FILES, present.files.length, field);
  refuseOver("bytes", total(after.values()), MAX_WORKSPACE_BYTES, before, field);
  return checked;
}

/** A workspace that is too full already may shrink, and keep its size. */
function refuseOver(what: string, after: number, limit: number, before: number, field: string): void {
  if (after <= Math.max(limit, before)) return;
  throw new AppError("invalid_request", `${field}: expected the workspace to hold at most ${limit} ${what} in all`);
}

function bytesOf(name: string, content: string | Uint8Array | null, field: string): Uint8Array | null {
  if (content === null) return null;
  if (typeof content === "string" && !content.isWellFormed()) {
    throw new AppError("invalid_request", `${field}: expected "${name}" to be Unicode text, it holds half a character`);
  }
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  if (bytes.byteLength <= MAX_FILE_BYTES) return bytes;
  throw new AppError("invalid_request", `${field}: expected "${name}" to have at most ${MAX_FILE_BYTES} bytes`);
}

/** The text of a request's body or of a file, a byte order mark kept. Throws `invalid_request` for other than UTF-8. */
export function decodeText(bytes: Uint8Array): string {
  const text = textOf(bytes);
  if (text === null) throw new AppError("invalid_request", "content: expected UTF-8 text");
  return text;
}

function textOf(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** 132 bits of SHA-256, quoted as the header wants it. */
export const etagOf = (bytes: Uint8Array): string =>
  `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;

/** Waits until the folder's entries are on disk. */
export function syncFolder(folder: string): void {
  const file = fs.openSync(folder, "r");
  try {
    fs.fsyncSync(file);
  } finally {
    fs.closeSync(file);
  }
}
