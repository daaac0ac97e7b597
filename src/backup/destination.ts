import { randomUUID } from "node:crypto";
import { link, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { S3Client } from "bun";
import { shortageOf } from "../lib/free-space.ts";
import { messageOf } from "../lib/message-of.ts";
import { syncFolder } from "../lib/private-file.ts";
import { streamOf } from "../lib/stream-of.ts";
import { describeSystemError, hasCode } from "../lib/system-error.ts";
import { untilAborted } from "../lib/until-aborted.ts";
import { OUTGOING } from "../limits/outgoing.ts";
import { isBackup, type Source } from "./archive.ts";
import { UnreadableError } from "./files.ts";
import { holdIfPossible, removeAbandoned, removeLeftBehind } from "./left-behind.ts";
import { uploadToS3 } from "./s3-upload.ts";

/** A backup that is there. */
export interface StoredBackup {
  /** Its file name. */
  name: string;
  /** Bytes. */
  size: number;
  /** Milliseconds since 1970. */
  createdAtMs: number;
}

/** Where backups are kept: a folder, or a prefix in an S3 bucket. */
export interface Destination {
  /** Its backups, newest first; none if it does not exist yet. Files that are named otherwise are not listed. */
  list(): Promise<StoredBackup[]>;
  /**
   * Writes a file that must not exist, whole or not at all; it is on disk when this resolves. Returns its size. Throws an
   * error that names it, an `UnreadableError` of its content as it is, or the signal's reason if it aborts.
   */
  write(name: string, content: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<number>;
  /** A file's content and size; null if it is not there. Reading it throws errors that name it. */
  find(name: string): Promise<{ content: Source; size: number } | null>;
  /** Whether the file is there, and begins as a backup does. */
  isBackup(name: string): Promise<boolean>;
  remove(name: string): Promise<void>;
  /** A file as the person who reads a message would name it. */
  pathOf(name: string): string;
}

const BACKUP = /\.tar\.zst(\.age)?$/;
const S3_URL = /^s3:\/\/([^/]+)\/?(.*)$/;

/** A setting or an argument that names an S3 bucket, with a prefix or a file: `s3://bucket/prefix`. */
const isS3Url = (place: string): boolean => S3_URL.test(place);

/**
 * `place` is a folder's path, or an S3 URL. The keys of S3 come from the environment, as for other tools; `patienceMs` is how
 * long its server may take for an answer.
 */
export function openDestination(place: string, patienceMs: number = OUTGOING.s3.deadlineMs): Destination {
  const [, bucket, prefix = ""] = S3_URL.exec(place) ?? [];
  if (bucket === undefined) return folderDestination(resolve(place));
  return s3Destination(bucket, prefix.replace(/\/+$/, ""), patienceMs);
}

/** Splits the path or S3 URL of a file into the place and the name there; what ends in a slash names a place alone. */
export function locate(file: string): { destination: Destination; name: string } {
  if (!isS3Url(file)) {
    return file.endsWith("/")
      ? { destination: openDestination(file), name: "" }
      : { destination: openDestination(dirname(resolve(file))), name: basename(resolve(file)) };
  }
  const at = file.lastIndexOf("/");
  return { destination: openDestination(file.slice(0, at)), name: file.slice(at + 1) };
}

/** The folder in which one run writes, beside the finished backups. */
const WORK = /^\.backup-[0-9a-f-]{36}$/;

/** How much larger an archive will be than so far is not known. */
const SPACE_CHECKED_EVERY = 16 * 1024 * 1024;

/** Unlike a rename, a link fails if the file has appeared meanwhile; but FAT, exFAT and some shares have none. */
async function giveName(unfinished: string, path: string): Promise<void> {
  try {
    await link(unfinished, path);
  } catch (error) {
    if (hasCode(error, "EEXIST")) throw taken(path);
    if (!hasCode(error, "EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS")) throw error;
    if (await stat(path).catch(() => null)) throw taken(path);
    await rename(unfinished, path);
  }
}

function folderDestination(folder: string): Destination {
  const pathOf = (name: string) => join(folder, name);

  /** Writes all of it to a file that is named otherwise. Returns its size. */
  async function fill(unfinished: string, name: string, content: ReadableStream<Uint8Array>, signal: AbortSignal) {
    const file = await open(unfinished, "wx", 0o600);
    try {
      await removeLeftBehind(folder, UNFINISHED_BEFORE, unfinished);
      let size = 0;
      let checkAt = 0;
      for await (const chunk of content) {
        signal.throwIfAborted();
        if (size >= checkAt) {
          const shortage = await shortageOf(folder, chunk.length);
          if (shortage !== null) throw new Error(`the rest of ${pathOf(name)} ${shortage}`);
          checkAt = size + SPACE_CHECKED_EVERY;
        }
        await file.writeFile(chunk);
        size += chunk.length;
      }
      await file.sync();
      return size;
    } finally {
      await file.close();
    }
  }

  async function writeWhole(name: string, content: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<number> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    // This run's own: another one of the same name must not get at what is not finished.
    const work = pathOf(`.backup-${randomUUID()}`);
    await mkdir(work, { mode: 0o700 });
    const hold = holdIfPossible(work);
    try {
      await removeAbandoned(folder, WORK);
      const unfinished = join(work, name);
      const size = await fill(unfinished, name, content, signal);
      await giveName(unfinished, pathOf(name));
      return size;
    } finally {
      await rm(work, { recursive: true, force: true });
      hold?.release();
      syncFolder(folder);
    }
  }

  return {
    pathOf,
    async list() {
      const names = await readdir(folder).catch((error: unknown) => {
        if (hasCode(error, "ENOENT")) return [];
        throw describeSystemError(`${folder} cannot be read`, error);
      });
      const found: StoredBackup[] = [];
      for (const name of names.filter((one) => BACKUP.test(one) && !one.startsWith("."))) {
        const { size, mtimeMs } = await stat(pathOf(name));
        found.push({ name, size, createdAtMs: scheduledAt(name) ?? Math.floor(mtimeMs) });
      }
      return newestFirst(found);
    },
    async write(name, content, signal) {
      if ((await this.find(name)) !== null) throw taken(pathOf(name));
      if ((await stat(pathOf(name)).catch(() => null))?.isDirectory()) {
        throw new Error(`${pathOf(name)} is a folder; name a file in it`);
      }
      try {
        return await writeWhole(name, content, signal);
      } catch (error) {
        signal.throwIfAborted();
        throw describeSystemError(`${pathOf(name)} cannot be written`, error);
      }
    },
    async find(name) {
      const content = Bun.file(pathOf(name));
      const read = <T>(step: Promise<T>) =>
        step.catch((error: unknown) => {
          throw describeSystemError(`${pathOf(name)} cannot be read`, error);
        });
      return (await content.exists()) ? { content: inSteps(content, read), size: content.size } : null;
    },
    async isBackup(name) {
      const found = await this.find(name);
      return found !== null && (await isBackup(found.content));
    },
    remove: (name) => rm(pathOf(name), { force: true }),
  };
}

const MAX_LISTED = 100_000;

function s3Destination(bucket: string, prefix: string, patienceMs: number): Destination {
  const client = new S3Client({ bucket });
  const keyOf = (name: string) => (prefix === "" ? name : `${prefix}/${name}`);
  const pathOf = (name: string) => `s3://${bucket}/${keyOf(name)}`;
  /** What the server answers: Bun's client would wait for ever for one that hangs. */
  async function answered<T>(what: string, answer: Promise<T>): Promise<T> {
    const deadline = AbortSignal.timeout(patienceMs);
    return untilAborted(answer, deadline).catch((error: unknown) => {
      if (error !== deadline.reason) throw explain(what, error);
      // Bun reads the endpoint from the environment, and says it here.
      const { origin } = new URL(client.presign("any"));
      throw explain(what, new Error(`${origin} does not answer within ${patienceMs / 1000} seconds`));
    });
  }

  return {
    pathOf,
    async list() {
      const found: StoredBackup[] = [];
      const within = prefix === "" ? "" : `${prefix}/`;
      for (let startAfter: string | undefined; found.length < MAX_LISTED; ) {
        const page = await answered(
          `${pathOf("")} cannot be listed`,
          client.list({ prefix: within, maxKeys: 1000, ...(startAfter === undefined ? {} : { startAfter }) }),
        );
        for (const { key, size = 0, lastModified } of page.contents ?? []) {
          const name = key.slice(within.length);
          if (name.includes("/") || !BACKUP.test(name)) continue;
          found.push({ name, size, createdAtMs: scheduledAt(name) ?? Date.parse(lastModified ?? "") });
        }
        startAfter = page.contents?.at(-1)?.key;
        if (!page.isTruncated || startAfter === undefined) break;
      }
      return newestFirst(found);
    },
    async write(name, content, signal) {
      const requireFree = async () => {
        if ((await untilAborted(this.find(name), signal)) !== null) throw taken(pathOf(name));
      };
      await requireFree();
      try {
        // Again in the end, because another run may have written it meanwhile: S3 would replace it without a word.
        return await uploadToS3(client, keyOf(name), content, signal, requireFree);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof UnreadableError || error instanceof PlaceError) throw error;
        throw explain(`${pathOf(name)} cannot be written`, error);
      }
    },
    async find(name) {
      const content = client.file(keyOf(name));
      const read = <T>(step: Promise<T>) => answered(`${pathOf(name)} cannot be read`, step);
      const look = async () => ((await content.exists()) ? (await content.stat()).size : null);
      const size = await read(look());
      return size === null ? null : { content: inSteps(content, read), size };
    },
    async isBackup(name) {
      const found = await this.find(name);
      return found !== null && (await isBackup(found.content));
    },
    remove: (name) => answered(`${pathOf(name)} cannot be removed`, client.file(keyOf(name)).delete()),
  };
}

/** A file's content, each step of reading which goes through `read`. */
function inSteps(content: Blob, read: <T>(step: Promise<T>) => Promise<T>): Source {
  async function* chunks() {
    const reader = content.stream().getReader();
    try {
      for (;;) {
        const { done, value } = await read(reader.read());
        if (done) return;
        yield value;
      }
    } finally {
      // Nobody waits for it: it may be what hangs.
      reader.cancel().catch(() => {});
    }
  }
  return {
    slice: (from, to) => ({ arrayBuffer: () => read(content.slice(from, to).arrayBuffer()) }),
    stream: () => streamOf(chunks()),
  };
}

/** What is wrong with a place, in words for the operator. */
class PlaceError extends Error {}

function explain(what: string, error: unknown): Error {
  const words = messageOf(error);
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const fix =
    code === "ERR_S3_MISSING_CREDENTIALS"
      ? "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_ENDPOINT for a server that is not Amazon's"
      : "check AWS_ENDPOINT, AWS_REGION, the bucket and what the key may do";
  return new PlaceError(`${what}: ${words}; ${fix}`, { cause: error });
}

const taken = (path: string): Error =>
  new PlaceError(`${path} exists already, and is left as it is; choose another name`);

const newestFirst = (found: StoredBackup[]): StoredBackup[] =>
  found.sort((one, other) => other.createdAtMs - one.createdAtMs || (one.name < other.name ? 1 : -1));

const SCHEDULED = /^roost-(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z\.tar\.zst(\.age)?$/;
/** What earlier builds wrote scheduled backups to. */
const UNFINISHED_BEFORE = /^\.roost-\d{8}T\d{6}Z\.tar\.zst(\.age)?\.unfinished$/;

/** The name of a scheduled backup: `roost-20261122T151500Z.tar.zst`. */
export const scheduledName = (atMs: number, isEncrypted: boolean): string =>
  `roost-${new Date(atMs).toISOString().replaceAll(/[-:]|\.\d+/g, "")}.tar.zst${isEncrypted ? ".age" : ""}`;

/** When a scheduled backup was begun, in milliseconds since 1970; null for any other file. */
export function scheduledAt(name: string): number | null {
  const [, year, month, day, hour, minute, second] = SCHEDULED.exec(name) ?? [];
  return year === undefined ? null : Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}
