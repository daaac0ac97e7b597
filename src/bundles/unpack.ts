import fs from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import type { IndexedFile } from "../agents/workspace-files.ts";
import { AppError } from "../lib/app-error.ts";
import { decodeUtf8 } from "../lib/utf8.ts";
import type { ScheduleSettings } from "../schedules/schedules.ts";
import { syncFolderSoon, writeNewFileSoon } from "../workspace/disk.ts";
import { foldName, NO_NAMES, type PathEntry, parseFileName, pathEntries, refuseClash } from "../workspace/file-name.ts";
import {
  BUNDLE_BOUNDS,
  createLeftOut,
  HISTORY_PART,
  type LeftOut,
  MANIFEST_FILE,
  type Manifest,
  parseManifest,
  refusal,
  SCHEDULES_PART,
  SKILLS_PART,
  WORKSPACE_PART,
} from "./format.ts";
import { parseSchedule } from "./schedules.ts";
import { readTar, type TarEntry, TarError } from "./tar.ts";

/** What was in a bundle. Nothing in it was used. */
export interface Unpacked {
  manifest: Manifest;
  /** The workspace's folder: complete, and on disk. */
  workspace: string;
  files: IndexedFile[];
  /** By name, the files of each skill that are text. */
  skills: Map<string, Map<string, string>>;
  /** All switched off. */
  schedules: ScheduleSettings[];
  /** Files of conversations. */
  history: string[];
  leftOut: LeftOut;
}

/** Writes that wait for the disk at once: they share it with everybody's commits. */
const WRITE_CONCURRENCY = 4;
const HISTORY_NAME = new RegExp(`^${HISTORY_PART}[0-9]{1,6}\\.jsonl$`);
const SCHEDULE_NAME = new RegExp(`^${SCHEDULES_PART}[0-9]{1,3}\\.json$`);
const MAX_NAME = 1_024;

/**
 * Unpacks a bundle into a new folder. Nothing in it is trusted: not its names, its kinds of files, its sizes or its
 * contents. Throws `invalid_request` for anything that no export makes, `conflict` beyond what a workspace may hold.
 */
export async function unpack(archive: Uint8Array, folder: string): Promise<Unpacked> {
  const workspace = join(folder, "workspace");
  await fs.promises.mkdir(workspace, { recursive: true, mode: 0o700 });
  try {
    return await unpackEntries(readTar(decompress(archive), BUNDLE_BOUNDS.headers), folder, workspace);
  } catch (error) {
    if (error instanceof AppError || !isOfArchive(error)) throw error;
    const why = error instanceof TarError ? error.message : "it is damaged, or not compressed with gzip";
    throw new AppError("invalid_request", `bundle: ${why}`, { cause: error });
  }
}

const isOfArchive = (error: unknown): boolean =>
  error instanceof TarError || (error instanceof Error && "code" in error && /^Z_/.test(String(error.code)));

async function* decompress(archive: Uint8Array): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  const source = Readable.from([archive]);
  const unzipped = source.pipe(createGunzip());
  try {
    for await (const chunk of unzipped as AsyncIterable<Uint8Array>) {
      bytes += chunk.byteLength;
      if (bytes > BUNDLE_BOUNDS.bytes) {
        throw new TarError(`it holds more than ${BUNDLE_BOUNDS.bytes} bytes`);
      }
      yield chunk;
    }
  } finally {
    unzipped.destroy();
    source.destroy();
  }
}

async function unpackEntries(entries: AsyncIterable<TarEntry>, folder: string, workspace: string): Promise<Unpacked> {
  const leftOut = createLeftOut();
  const files = createFileWriter(workspace);
  const skills = createSkillReader(leftOut.add);
  const history = createHistoryWriter(folder);
  const schedules: ScheduleSettings[] = [];
  const names = new Set<string>();
  let manifest: Manifest | null = null;
  try {
    for await (const entry of entries) {
      const name = relativeName(entry.name);
      if (names.has(name)) throw refusal(`expected each name once; got "${shown(name)}" again`);
      names.add(name);
      if (names.size > BUNDLE_BOUNDS.entries) throw refusal(`expected at most ${BUNDLE_BOUNDS.entries} files`);
      if (manifest === null) {
        if (name !== MANIFEST_FILE) throw refusal(`expected ${MANIFEST_FILE} as its first file; got "${shown(name)}"`);
        const read = parseManifest(await entry.bytes(BUNDLE_BOUNDS.manifestBytes));
        for (const unknown of read.unknown) leftOut.add(`${MANIFEST_FILE}: ${unknown}`);
        for (const left of read.manifest.leftOut) leftOut.add(left);
        manifest = read.manifest;
      } else if (name.startsWith(WORKSPACE_PART)) await files.add(name.slice(WORKSPACE_PART.length), entry);
      else if (name.startsWith(SKILLS_PART)) await skills.add(name, entry);
      else if (SCHEDULE_NAME.test(name)) {
        if (schedules.length >= BUNDLE_BOUNDS.schedules)
          throw refusal(`expected at most ${BUNDLE_BOUNDS.schedules} schedules`);
        schedules.push(parseSchedule(await entry.bytes(BUNDLE_BOUNDS.scheduleBytes), name));
      } else if (HISTORY_NAME.test(name)) await history.add(entry);
      else leftOut.add(name);
    }
  } finally {
    // Also after a failure: the folder must not be removed while something is still written into it.
    await files.settled();
  }
  if (manifest === null) throw refusal(`expected ${MANIFEST_FILE} as its first file`);
  return {
    manifest,
    workspace,
    files: await files.end(),
    skills: skills.end(),
    schedules,
    history: history.paths,
    leftOut,
  };
}

const shown = (name: string): string => name.toWellFormed().slice(0, 200);

/** The name without `./` before it. Throws `invalid_request` for one that could lead anywhere else. */
function relativeName(given: string): string {
  const name = given.replace(/^(\.\/)+/, "");
  const parts = name.split("/");
  const isPlain = parts.every((part) => part !== "" && part !== "." && part !== "..");
  if (isPlain && name.length <= MAX_NAME && !/[\\\p{C}]/u.test(name)) return name;
  throw refusal(`expected relative names of files; got "${shown(given)}"`);
}

/** Writes a workspace's files, a few at once, whose names do not clash on any disk. */
function createFileWriter(workspace: string) {
  const taken = new Map<string, PathEntry>();
  const folders = new Set<string>([workspace]);
  const files: IndexedFile[] = [];
  const writing = new Set<Promise<void>>();
  let failure: { error: unknown } | null = null;
  let [count, bytes] = [0, 0];

  async function write(name: string, content: Uint8Array): Promise<void> {
    const path = join(workspace, name);
    const updatedAt = Math.floor(await writeNewFileSoon(path, content));
    files.push({ name, size: content.byteLength, updatedAt });
  }

  async function makeFolders(name: string): Promise<void> {
    for (const { spelling, isFolder } of pathEntries(name)) {
      const path = join(workspace, spelling);
      if (!isFolder || folders.has(path)) continue;
      await fs.promises.mkdir(path, { mode: 0o700 });
      folders.add(path);
    }
  }

  return {
    async add(name: string, entry: TarEntry): Promise<void> {
      const field = "bundle: workspace";
      parseFileName(name, field);
      refuseClash({ ...NO_NAMES, at: ({ spelling }) => taken.get(foldName(spelling)) }, [name], field);
      for (const step of pathEntries(name)) taken.set(foldName(step.spelling), step);
      count++;
      bytes += entry.size;
      const { workspaceFiles, workspaceBytes, fileBytes } = BUNDLE_BOUNDS;
      if (count > workspaceFiles || bytes > workspaceBytes) {
        throw refusal(`workspace: expected at most ${workspaceFiles} files with ${workspaceBytes} bytes`);
      }
      const content = await entry.bytes(fileBytes);
      await makeFolders(name);
      while (writing.size >= WRITE_CONCURRENCY) await Promise.race(writing);
      if (failure !== null) throw failure.error;
      const work: Promise<void> = write(name, content)
        .catch((error: unknown) => {
          failure ??= { error };
        })
        .finally(() => void writing.delete(work));
      writing.add(work);
    },
    async settled(): Promise<void> {
      await Promise.all(writing);
    },
    /** On disk, by name. */
    async end(): Promise<IndexedFile[]> {
      if (failure !== null) throw (failure as { error: unknown }).error;
      for (const folder of folders) await syncFolderSoon(folder);
      return files.sort((a, b) => (a.name < b.name ? -1 : 1));
    },
  };
}

/** Collects the texts of skills. What cannot be a file of a skill is left out. */
function createSkillReader(leftOut: (name: string) => void) {
  const skills = new Map<string, Map<string, string>>();
  let bytes = 0;
  return {
    async add(name: string, entry: TarEntry): Promise<void> {
      const [, skill = "", ...rest] = name.split("/");
      const file = rest.join("/");
      if (!isSkillFile(skill, file) || entry.size > BUNDLE_BOUNDS.fileBytes) return leftOut(name);
      bytes += entry.size;
      const known = skills.get(skill);
      const texts = known ?? new Map<string, string>();
      const { skillBytes, filesOfSkill, skills: most } = BUNDLE_BOUNDS;
      if (bytes > skillBytes || texts.size >= filesOfSkill || (known === undefined && skills.size >= most)) {
        throw refusal(
          `skills: expected at most ${most}, each of at most ${filesOfSkill} files, with ${skillBytes} bytes`,
        );
      }
      const text = decodeUtf8(await entry.bytes(BUNDLE_BOUNDS.fileBytes));
      if (text === null) return leftOut(name);
      skills.set(skill, texts.set(file, text));
    },
    end: () => skills,
  };
}

function isSkillFile(skill: string, file: string): boolean {
  try {
    parseFileName(file);
    return /^[a-z0-9-]{1,64}$/.test(skill);
  } catch {
    return false;
  }
}

/** Writes conversations to files, which are read once all else is known to be good. */
function createHistoryWriter(folder: string) {
  const paths: string[] = [];
  let left: number = BUNDLE_BOUNDS.historyBytes;
  return {
    paths,
    async add(entry: TarEntry): Promise<void> {
      left -= entry.size;
      const { conversations, historyBytes } = BUNDLE_BOUNDS;
      if (left < 0 || paths.length > conversations) {
        throw refusal(`history: expected at most ${conversations} conversations, with ${historyBytes} bytes`);
      }
      const path = join(folder, `history-${paths.length}`);
      const file = await fs.promises.open(path, "wx", 0o600);
      try {
        for await (const chunk of entry.chunks()) await file.writeFile(chunk);
      } finally {
        await file.close();
      }
      paths.push(path);
    },
  };
}
