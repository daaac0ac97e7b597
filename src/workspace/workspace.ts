/** An agent's files on disk: `<data>/instances/<instanceId>/agents/<slug>/`. Knows no database. */

import { createHash, randomUUID } from "node:crypto";
import fs from "node:fs";
import { join } from "node:path";
import { AppError } from "../lib/app-error.ts";
import { hasCode } from "../lib/system-error.ts";
import { decodeUtf8 } from "../lib/utf8.ts";
import { refuseOverQuota } from "../limits/account-limits.ts";
import { syncFolderSoon } from "./disk.ts";
import { parseFileName, refuseClash, type StandingNames } from "./file-name.ts";
import { openJail } from "./jail.ts";

/** Size of one workspace file (docs/contract/api.md, Sizes). */
export const MAX_FILE_BYTES = 256 * 1024;
/** Total size of one workspace (docs/contract/runtime.md, Isolation). */
export const MAX_WORKSPACE_BYTES = 100 * 1024 * 1024;
/**
 * Files in one workspace (docs/contract/runtime.md, Isolation). Only an operator can add more; those are not listed.
 */
export const MAX_WORKSPACE_FILES = 10_000;

/** `content: null` deletes the file, if it exists. */
export interface FileChange {
  name: string;
  content: string | Uint8Array | null;
}

/** A workspace's totals. */
export interface Totals {
  files: number;
  bytes: number;
}

/** A valid change, one per name; null deletes the file. */
export interface CheckedChange {
  name: string;
  bytes: Uint8Array | null;
}

export interface WorkspaceFile {
  bytes: Buffer;
  /** A strong ETag, quoted, computed from the content. */
  etag: string;
  /** Milliseconds since 1970. */
  updatedAtMs: number;
}

const SLUG = /^[a-z0-9][a-z0-9-]{0,62}$/;

/** The path of a workspace. Throws TypeError for an invalid slug, which could lead anywhere. */
export function workspaceFolder(instanceFolder: string, slug: string): string {
  if (!SLUG.test(slug)) throw new TypeError("not a slug");
  return join(instanceFolder, "agents", slug);
}

/** The folder, in an instance's, for changes before their commit and for removed workspaces. */
export const STAGING = ".staging";

/** The instance's staging folder, created if missing, as in a backup. */
function stagingFolder(instanceFolder: string): string {
  const folder = join(instanceFolder, STAGING);
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/** Creates the folder for an instance's workspaces, unless it exists. */
export function createInstanceFolder(instanceFolder: string): void {
  stagingFolder(instanceFolder);
  fs.mkdirSync(join(instanceFolder, "agents"), { recursive: true, mode: 0o700 });
}

/** The same, on disk when it resolves. Call it before anything in the folder is acknowledged. */
export async function createInstanceFolderSoon(instanceFolder: string): Promise<void> {
  createInstanceFolder(instanceFolder);
  await Promise.all([instanceFolder, join(instanceFolder, "..")].map(syncFolderSoon));
}

/** Removes the folder of an instance, unless anything is in it: then it returns false. */
export async function removeEmptyInstanceFolder(instanceFolder: string): Promise<boolean> {
  for (const path of [join(instanceFolder, "agents"), join(instanceFolder, STAGING), instanceFolder]) {
    try {
      await fs.promises.rmdir(path);
    } catch (error) {
      if (hasCode(error, "ENOENT")) continue;
      if (hasCode(error, "ENOTEMPTY", "EEXIST", "ENOTDIR", "EACCES", "EPERM")) return false;
      throw error;
    }
  }
  return true;
}

/** The prefix of removed workspaces' names in the staging folder. */
export const TRASH = "trash-";

/** Removes the workspace at once, if it exists; its files are deleted later. */
export function removeWorkspace(instanceFolder: string, slug: string): void {
  const trash = join(stagingFolder(instanceFolder), TRASH + randomUUID());
  try {
    fs.renameSync(workspaceFolder(instanceFolder, slug), trash);
  } catch (error) {
    if (!hasCode(error, "ENOENT")) throw error;
  }
}

/** One file, or null. Throws `invalid_request` if it is larger than `MAX_FILE_BYTES`. */
export function readFile(folder: string, name: string): WorkspaceFile | null {
  const content = openJail(folder).read(name, MAX_FILE_BYTES);
  if (content === null) return null;
  return { bytes: content.bytes, etag: etagOf(content.bytes), updatedAtMs: Math.floor(content.mtimeMs) };
}

/** Runs `use` on files of one folder of the workspace, each read on demand; null for one that cannot be read. */
export const readFolder = <T>(
  folder: string,
  parts: readonly string[],
  use: (read: (file: string) => Buffer | null) => T,
): T => openJail(folder).readIn(parts, MAX_FILE_BYTES, use);

/**
 * Checks changes against a workspace and returns them as bytes, one for each name (the last counts). `standing` returns
 * the workspace's names without those to be deleted. Throws `invalid_request` for a bad name, a clash, a file over its
 * limit, something in a file's way, or text that UTF-8 cannot encode.
 */
export function checkChanges(
  changes: readonly FileChange[],
  folder: string | null,
  standing: (without: ReadonlySet<string>) => StandingNames,
  field = "files",
): CheckedChange[] {
  const wanted = new Map(changes.map(({ name, content }) => [parseFileName(name, field), content]));
  const checked = Array.from(wanted, ([name, content]) => ({ name, bytes: bytesOf(name, content, field) }));
  const gone = new Set(checked.flatMap(({ name, bytes }) => (bytes === null ? [name] : [])));
  const set = checked.flatMap(({ name, bytes }) => (bytes === null ? [] : [name]));
  refuseClash(standing(gone), set, field);
  if (folder !== null) for (const name of set) refuseInTheWay(folder, name, gone, field);
  return checked;
}

/** What an operator has put there is in no index, but may still be in a file's way. */
function refuseInTheWay(folder: string, name: string, gone: ReadonlySet<string>, field: string): void {
  const jail = openJail(folder);
  const obstacle = jail.inTheWay(name);
  if (obstacle === null) return;
  const { spelling, isFolder } = obstacle;
  if (isFolder ? jail.holdsOnly(spelling, gone) : gone.has(spelling)) return;
  throw new AppError("invalid_request", `${field}: expected "${spelling}" to be either a file or a folder, not both`);
}

/**
 * Throws `conflict` if a workspace exceeds its quota of files or bytes and has grown: one that already exceeds it may
 * shrink or stay as it is.
 */
export function refuseOverWorkspace(before: Totals, after: Totals): void {
  const refuse = (what: string, was: number, is: number, limit: number) =>
    is > was && refuseOverQuota(what, "the workspace", is, limit);
  refuse("files", before.files, after.files, MAX_WORKSPACE_FILES);
  refuse("bytes", before.bytes, after.bytes, MAX_WORKSPACE_BYTES);
}

function bytesOf(name: string, content: string | Uint8Array | null, field: string): Uint8Array | null {
  if (content === null) return null;
  if (typeof content === "string" && !content.isWellFormed()) {
    throw new AppError(
      "invalid_request",
      `${field}: expected "${name}" to be valid Unicode text, but it contains a lone surrogate`,
    );
  }
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  if (bytes.byteLength <= MAX_FILE_BYTES) return bytes;
  throw new AppError("invalid_request", `${field}: expected "${name}" to have at most ${MAX_FILE_BYTES} bytes`);
}

/** Decodes a body or file, keeping a byte order mark. Throws `invalid_request` if it is not UTF-8. */
export function decodeText(bytes: Uint8Array): string {
  const text = decodeUtf8(bytes);
  if (text === null) throw new AppError("invalid_request", "content: expected UTF-8 text");
  return text;
}

/** 132 bits of SHA-256, in quotes, as the header requires. */
export const etagOf = (bytes: Uint8Array): string =>
  `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;
