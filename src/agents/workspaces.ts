import { join } from "node:path";
import { eq } from "drizzle-orm";
import { AppError, notFound } from "../lib/app-error.ts";
import { isoTime } from "../lib/clock.ts";
import { readEmbeddedFolder } from "../lib/embedded-folder.ts";
import { newId } from "../lib/id.ts";
import type { Store } from "../storage/store.ts";
import { parseFileName } from "./file-name.ts";
import { openJail } from "./jail.ts";
import { type Agent, workspaceChanges } from "./table.ts";
import {
  checkChanges,
  createInstanceFolder,
  decodeText,
  etagOf,
  type FileChange,
  listFiles,
  MAX_WORKSPACE_FILES,
  readFile,
  readTexts,
  removeFile,
  removeInstanceFolder,
  type WorkspaceFile,
  workspaceFolder,
} from "./workspace.ts";
import {
  applyChange,
  discardChange,
  recoverChanges,
  removeStrayInstances,
  stageChange,
  type WorkspaceTarget,
} from "./workspace-change.ts";

/** Files that one request may bring (api.md section 1, Sizes). */
export const FILES_IN_A_REQUEST = 64;
/** Text that an agent's record shows in all; what is beyond it is read file by file. */
const RECORD_BYTES = 1024 * 1024;

export interface FileRecord {
  name: string;
  size: number;
  updatedAt: string;
}

const instanceOfChange = { instanceId: workspaceChanges.instanceId };

type Place = Pick<Agent, "instanceId" | "slug">;

/** The condition of a request on the file it writes: the headers If-Match and If-None-Match. */
export interface Condition {
  ifMatch: string | null;
  ifNoneMatch: string | null;
}

/** Agents' workspaces as the rules use them: which folder is whose, and what follows which commit. */
export interface Workspaces {
  createInstanceFolder(instanceId: string): void;
  removeInstanceFolder(instanceId: string): void;
  /**
   * Changes a workspace with the transaction that is open: checked and staged now, carried out after its commit, and
   * finished by `recover` if a crash comes between. Throws `invalid_request`.
   */
  change(place: Place, target: WorkspaceTarget, changes: FileChange[]): void;
  /** Name → text of every text file, as far as a record shows them. */
  texts(place: Place): Record<string, string>;
  names(place: Place): string[];
  list(place: Place): FileRecord[];
  /** Those of the named files of the workspace's top that are there and are text, in the order of the names. */
  some(place: Place, names: readonly string[]): { name: string; text: string }[];
  /** Throws `not_found`. */
  read(place: Place, name: string): WorkspaceFile;
  /** Throws `invalid_request`, `precondition_failed`. */
  write(
    place: Place,
    name: string,
    bytes: Uint8Array,
    condition: Condition,
  ): { created: boolean; file: FileRecord; etag: string };
  /** Throws `not_found`, `precondition_failed`. */
  delete(place: Place, name: string, condition: Condition): void;
  /** After a start: finishes what was committed, removes what was not. */
  recover(isInstance: (instanceId: string) => boolean): void;
}

export function createWorkspaces({ db, afterCommit, transaction }: Store, dataDir: string): Workspaces {
  const instancesFolder = join(dataDir, "instances");
  const instanceFolder = (instanceId: string) => join(instancesFolder, instanceId);
  const folderOf = ({ instanceId, slug }: Place) => workspaceFolder(instanceFolder(instanceId), slug);
  /** Instances whose staged changes are all of this process. */
  const tidied = new Set<string>();
  const names = (place: Place) => listFiles(folderOf(place)).map(({ name }) => name);

  function forget(changeId: string): void {
    transaction(() => db.delete(workspaceChanges).where(eq(workspaceChanges.changeId, changeId)).run());
  }

  /** Carries out what an earlier process left committed in this instance, and removes what it left uncommitted. */
  function finishChanges(instanceId: string): void {
    const rows = db.select().from(workspaceChanges).where(eq(workspaceChanges.instanceId, instanceId)).all();
    const committed = new Set(rows.map(({ changeId }) => changeId));
    recoverChanges(instanceFolder(instanceId), (changeId) => committed.has(changeId));
    for (const changeId of committed) forget(changeId);
    tidied.add(instanceId);
  }

  function existing(place: Place, name: string): WorkspaceFile {
    const file = readFile(folderOf(place), parseFileName(name, "file"));
    if (!file) throw notFound("file");
    return file;
  }

  return {
    createInstanceFolder: (instanceId) => createInstanceFolder(instanceFolder(instanceId)),
    removeInstanceFolder: (instanceId) => removeInstanceFolder(instanceFolder(instanceId)),
    change({ instanceId }, target, changes) {
      // An id of the API's form sorts by its making, which is the order in which a recovery must carry changes out.
      const changeId = newId("change");
      if (!tidied.has(instanceId)) finishChanges(instanceId);
      stageChange(instanceFolder(instanceId), changeId, target, changes);
      afterCommit(
        () => {
          applyChange(instanceFolder(instanceId), changeId);
          forget(changeId);
        },
        () => discardChange(instanceFolder(instanceId), changeId),
      );
      db.insert(workspaceChanges).values({ changeId, instanceId }).run();
    },
    names,
    texts(place) {
      const texts: [name: string, text: string][] = [];
      let left = RECORD_BYTES;
      for (const { name, size } of listFiles(folderOf(place))) {
        if (size > left) continue;
        const text = textOf(folderOf(place), name);
        if (text === null) continue;
        texts.push([name, text]);
        left -= size;
      }
      return Object.fromEntries(texts);
    },
    list: (place) =>
      listFiles(folderOf(place)).map(({ name, size, mtimeMs }) => ({
        name,
        size,
        updatedAt: isoTime(Math.floor(mtimeMs)),
      })),
    some: (place, wanted) => readTexts(folderOf(place), wanted),
    read: existing,
    write(place, name, bytes, condition) {
      const file = parseFileName(name, "file");
      decodeText(bytes);
      const folder = folderOf(place);
      const jail = openJail(folder);
      checkChanges([{ name: file, content: bytes }], jail.scan(MAX_WORKSPACE_FILES), "file");
      checkCondition(condition, () => readFile(folder, file)?.etag ?? null);
      const created = jail.stat(file) === null;
      jail.write(file, bytes);
      const updatedAt = isoTime(Math.floor(jail.stat(file)?.mtimeMs ?? Date.now()));
      return { created, file: { name: file, size: bytes.byteLength, updatedAt }, etag: etagOf(bytes) };
    },
    delete(place, name, condition) {
      const file = parseFileName(name, "file");
      const folder = folderOf(place);
      if (openJail(folder).stat(file) === null) throw notFound("file");
      checkCondition(condition, () => readFile(folder, file)?.etag ?? null);
      removeFile(folder, file);
    },
    recover(isInstance) {
      removeStrayInstances(instancesFolder, isInstance);
      // What is staged and not committed does no harm until the instance's next change, which removes it.
      for (const { instanceId } of db.selectDistinct(instanceOfChange).from(workspaceChanges).all()) {
        finishChanges(instanceId);
      }
    },
  };
}

/** The persona files of a new agent. */
export function readDefaultFiles(): Map<string, string> {
  const files = [...readEmbeddedFolder("workspaces")].flatMap(([path, text]): [string, string][] =>
    path.startsWith("default/") ? [[path.slice("default/".length), text]] : [],
  );
  return new Map(files);
}

function textOf(folder: string, name: string): string | null {
  try {
    const file = readFile(folder, name);
    return file && decodeText(file.bytes);
  } catch (error) {
    // An operator put something there that is no text, or too large: it is listed, and not shown.
    if (error instanceof AppError) return null;
    throw error;
  }
}

function checkCondition({ ifMatch, ifNoneMatch }: Condition, readEtag: () => string | null): void {
  if (ifMatch === null && ifNoneMatch === null) return;
  const etag = readEtag();
  const matches = (header: string) =>
    etag !== null && header.split(",").some((tag) => tag.trim() === "*" || tag.trim() === etag);
  if (ifMatch !== null && !matches(ifMatch)) {
    throw new AppError("precondition_failed", `If-Match: the file's ETag is ${etag ?? "none, it does not exist"}`);
  }
  if (ifNoneMatch !== null && matches(ifNoneMatch)) {
    throw new AppError("precondition_failed", "If-None-Match: the file exists");
  }
}
