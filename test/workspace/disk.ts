/** Reads and changes a workspace's folder directly, without its index. */
import fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { foldName, NO_NAMES, pathEntries, type StandingNames } from "../../src/workspace/file-name.ts";
import { type Jail, openJail } from "../../src/workspace/jail.ts";
import {
  type CheckedChange,
  checkChanges,
  decodeText,
  type FileChange,
  MAX_FILE_BYTES,
} from "../../src/workspace/workspace.ts";

export interface DiskFile {
  name: string;
  size: number;
}

/** The whole tree by name; `others` are the entries that are left alone, folders with a trailing `/`. */
export function scan(jail: Jail, parts: readonly string[] = []): { files: DiskFile[]; others: string[] } {
  const entries = jail.entries(parts);
  const prefix = parts.map((part) => `${part}/`).join("");
  const files: DiskFile[] = [];
  const others = entries.length === 0 && prefix !== "" ? [prefix] : [];
  for (const { part, kind } of entries) {
    const name = prefix + part;
    if (kind === "other") others.push(name);
    else if (kind === "file") files.push({ name, size: jail.stat(name)?.size ?? -1 });
    else if (parts.length + 1 === 8) others.push(`${name}/`);
    else {
      const inside = scan(jail, [...parts, part]);
      files.push(...inside.files);
      others.push(...inside.others);
    }
  }
  return { files: files.sort((a, b) => (a.name < b.name ? -1 : 1)), others };
}

export const listFiles = (folder: string): DiskFile[] => scan(openJail(folder)).files;

/** Name → text of every file that is text and not too large. */
export function readWorkspace(folder: string): Map<string, string> {
  const jail = openJail(folder);
  const small = listFiles(folder).filter(({ size }) => size <= MAX_FILE_BYTES);
  return new Map(
    small.map(({ name }) => [name, decodeText(jail.read(name, MAX_FILE_BYTES)?.bytes ?? Buffer.alloc(0))]),
  );
}

/** Moves a file with this content into the jail on `root`. */
export function writeInto(jail: Jail, root: string, name: string, content: string | Uint8Array): void {
  const source = fs.mkdtempSync(join(dirname(root), `${basename(root)}-source-`));
  try {
    fs.writeFileSync(join(source, "content"), content, { mode: 0o600 });
    jail.putIn([{ source: join(source, "content"), name }]);
  } finally {
    fs.rmSync(source, { recursive: true });
  }
}

/** These names, as a workspace that has them reports them. */
export function standing(names: Iterable<string>, without: ReadonlySet<string> = new Set()): StandingNames {
  const staying = [...names].filter((name) => !without.has(name));
  const steps = staying.flatMap((name) => [...pathEntries(name)]);
  return {
    has: (name) => staying.includes(name),
    at: ({ spelling, isFolder }) =>
      steps.find((step) => step.spelling === spelling && step.isFolder === isFolder) ??
      steps.find((step) => foldName(step.spelling) === foldName(spelling)),
  };
}

/** Checks the changes against the workspace in this folder, or a new one if null. */
export function check(folder: string | null, changes: readonly FileChange[]): CheckedChange[] {
  if (folder === null) return checkChanges(changes, null, () => NO_NAMES);
  const names = listFiles(folder).map(({ name }) => name);
  return checkChanges(changes, folder, (without) => standing(names, without));
}
