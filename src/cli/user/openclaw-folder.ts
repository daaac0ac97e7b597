import { type Dirent, existsSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import {
  BUNDLE_BOUNDS,
  createLeftOut,
  type LeftOut,
  MANIFEST_FILE,
  manifestOf,
  SKILLS_PART,
  WORKSPACE_PART,
} from "../../bundles/format.ts";
import { tarEnd, tarHeader, tarPadding } from "../../bundles/tar.ts";
import { decodeUtf8 } from "../../lib/utf8.ts";
import { parseFileName } from "../../workspace/file-name.ts";
import { Failure } from "../failure.ts";

/**
 * Packs an OpenClaw workspace as a bundle: its files, and the skills in it. Nothing of it is run, and its settings, its
 * logins and whatever a link leads to stay where they are. `folder` is the workspace, or the one around it.
 */
export function packOpenClaw(folder: string): Uint8Array<ArrayBuffer> {
  const leftOut = createLeftOut();
  const workspace = workspaceIn(resolve(folder), leftOut);
  if (!isWorkspace(workspace)) throw new Failure(`${folder} is no agent's workspace`, EXPECTED);
  const files = collect(workspace, leftOut);
  const manifest = manifestOf({
    agent: { name: nameOf(workspace), fallbackModels: [], tools: [], heartbeat: null },
    rules: [],
    tainted: [],
    leftOut: leftOut.list(),
  });
  const parts: Uint8Array[] = [];
  const add = (name: string, bytes: Uint8Array, modifiedAtMs: number) =>
    parts.push(tarHeader({ name, size: bytes.byteLength, modifiedAtMs }), bytes, tarPadding(bytes.byteLength));
  add(MANIFEST_FILE, manifest, Date.now());
  for (const { name, path, modifiedAtMs } of files) add(name, readFileSync(path), modifiedAtMs);
  return gzipSync(Buffer.concat([...parts, tarEnd()]));
}

/**
 * The files of one skill, by name; null if it is not there. The folder is the skill's own, one of skills, or a workspace.
 * Throws if the folder is another skill's.
 */
export function skillInFolder(folder: string, skill: string): Record<string, string> | null {
  const own = [folder, join(folder, skill)].find((one) => existsSync(join(one, "SKILL.md")));
  const prefix = `${SKILLS_PART}${skill}/`;
  const found =
    own === undefined
      ? collect(workspaceIn(resolve(folder), createLeftOut()), createLeftOut())
      : collect(own, createLeftOut(), prefix);
  const files = found.filter(({ name }) => name.startsWith(prefix));
  if (files.length === 0) return null;
  const texts = Object.fromEntries(files.map(({ name, path }) => [name.slice(prefix.length), textOf(path)]));
  const [, named] = /^name:[ \t]*["']?([^\s"']+)/m.exec(texts["SKILL.md"] ?? "") ?? [];
  if (own !== folder || named === undefined || named === skill) return texts;
  throw new Failure(`the skill in ${folder} is ${named}, not ${skill}`);
}

/** Throws where it is no text: it would become another file. */
function textOf(path: string): string {
  const text = decodeUtf8(readFileSync(path));
  if (text !== null) return text;
  throw new Failure(`${path} is not UTF-8 text`, "expected a skill of text files: save it as UTF-8, or leave it out");
}

/** Settings, of OpenClaw and of what it was called before. They name secrets, and start programs. */
const SETTINGS = /^(openclaw|clawdbot|moltbot)\.json5?$/;
/** Any other folder may hold what is for nobody else, such as keys. */
const isWorkspace = (folder: string): boolean => MARKS.some((name) => existsSync(join(folder, name)));
const MARKS = ["AGENTS.md", "SOUL.md"];
const EXPECTED = `expected ${MARKS.join(" or ")} in it, or in its folder workspace`;
/** Entries that are looked at: nobody's workspace has so many. */
const MAX_ENTRIES = 100_000;

function workspaceIn(folder: string, leftOut: LeftOut): string {
  if (!isWorkspace(folder) && existsSync(join(folder, "workspace"))) {
    for (const { name } of entriesOf(folder)) if (name !== "workspace") leftOut.add(describe(folder, name));
    return join(folder, "workspace");
  }
  // Usually the settings lie beside the workspace.
  for (const { name } of entriesOf(join(folder, ".."))) {
    if (SETTINGS.test(name)) leftOut.add(describe(join(folder, ".."), name));
  }
  return folder;
}

/** Of settings, what they are about; never what they say. */
function describe(folder: string, name: string): string {
  if (!SETTINGS.test(name)) return name;
  try {
    const settings: unknown = Bun.JSON5.parse(readFileSync(join(folder, name), "utf8"));
    return `${name}: ${Object.keys(settings as object).join(", ")}`;
  } catch {
    return name;
  }
}

const entriesOf = (folder: string): Dirent[] =>
  readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));

interface Found {
  /** In the bundle. */
  name: string;
  path: string;
  modifiedAtMs: number;
}

/** All files of a workspace, or below `prefix` those of a skill's own folder. */
function collect(workspace: string, leftOut: LeftOut, prefix?: string): Found[] {
  const found: Found[] = [];
  let [entries, bytes] = [0, 0];

  function walk(folder: string, prefix: string, part: string): void {
    for (const entry of entriesOf(folder)) {
      if (++entries > MAX_ENTRIES)
        throw new Failure(`${workspace} has more than ${MAX_ENTRIES} files`, "is it a workspace?");
      const [path, name] = [join(folder, entry.name), prefix + entry.name];
      if (!isWanted(entry, name) || isDataFolder(entry, path))
        leftOut.add(SETTINGS.test(entry.name) ? describe(folder, entry.name) : name);
      else if (entry.isDirectory() && name === "skills") walkSkills(path);
      else if (entry.isDirectory()) walk(path, `${name}/`, part);
      else if (!add(path, part + name)) leftOut.add(`${name}: larger than ${BUNDLE_BOUNDS.fileBytes} bytes`);
    }
  }

  /** A folder with a SKILL.md is a skill; anything else there belongs to nobody. */
  function walkSkills(folder: string): void {
    for (const entry of entriesOf(folder)) {
      const path = join(folder, entry.name);
      const isSkill = entry.isDirectory() && isWanted(entry, entry.name) && existsSync(join(path, "SKILL.md"));
      if (isSkill) walk(path, `skills/${entry.name}/`, "");
      else leftOut.add(`skills/${entry.name}`);
    }
  }

  function add(path: string, name: string): boolean {
    const { size, mtimeMs } = lstatSync(path);
    if (size > BUNDLE_BOUNDS.fileBytes) return false;
    bytes += size;
    if (bytes > BUNDLE_BOUNDS.workspaceBytes || found.length >= BUNDLE_BOUNDS.workspaceFiles) {
      throw new Failure(
        `${workspace} has more than ${BUNDLE_BOUNDS.workspaceFiles} files or ${BUNDLE_BOUNDS.workspaceBytes} bytes`,
        "move what the agent does not need elsewhere",
      );
    }
    found.push({ name, path, modifiedAtMs: mtimeMs });
    return true;
  }

  if (prefix === undefined) walk(workspace, "", WORKSPACE_PART);
  else walk(workspace, prefix, "");
  return found;
}

/** Plain files and folders with names that a workspace takes; no settings, and nothing hidden, such as .git or .env. */
function isWanted(entry: Dirent, name: string): boolean {
  if (!(entry.isFile() || entry.isDirectory()) || SETTINGS.test(entry.name) || entry.name === "node_modules")
    return false;
  try {
    parseFileName(name);
    return true;
  } catch {
    return false;
  }
}

/** Whether Roost keeps its data there, with its keys: somebody may have made it beside the agent's files. */
const isDataFolder = (entry: Dirent, path: string): boolean =>
  entry.isDirectory() && existsSync(join(path, "roost.db"));

/** As `IDENTITY.md` says, else the folder's name. */
function nameOf(workspace: string): string {
  const path = join(workspace, "IDENTITY.md");
  const identity = existsSync(path) && lstatSync(path).isFile() ? readFileSync(path, "utf8") : "";
  const [, named = ""] = /^[\s*_-]*Name:?[*_]*:?[ \t]*(.+)$/im.exec(identity) ?? [];
  const plain = (text: string) => text.replaceAll(/[*_`\p{C}]/gu, "").trim();
  const own = plain(named);
  const isOwn = own !== "" && !own.startsWith("(");
  return [...(isOwn ? own : plain(basename(workspace)) || "Imported")].slice(0, 100).join("");
}
