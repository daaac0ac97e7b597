import { notFound } from "../lib/app-error.ts";
import { readEmbeddedFolder } from "../lib/embedded-folder.ts";
import { fingerprint } from "./fingerprint.ts";
import { parseSkill, type Skill } from "./skill-file.ts";

/** A skill with the texts of its files, by name. */
export interface SkillFolder {
  skill: Skill;
  texts: ReadonlyMap<string, string>;
  /** See `fingerprint`. */
  sha256: string;
}

/** The skills that come with Roost: the folders of `skills/`. */
export interface Catalog {
  /** By name, ascending, after `after`. */
  list(after: string | null, limit: number): SkillFolder[];
  /** Throws `not_found`. */
  get(name: string): SkillFolder;
}

const rethrow = (_name: string, error: unknown): void => {
  throw error;
};

/**
 * Reads the catalog once, when it is first used. An invalid skill throws, unless `onBroken` handles it: then it is left
 * out. `read` returns the files of all skills, `<skill>/<file>` → text.
 */
export function loadCatalog(
  onBroken: (name: string, error: unknown) => void = rethrow,
  read: () => ReadonlyMap<string, string> = () => readEmbeddedFolder("skills"),
): Catalog {
  let loaded: Map<string, SkillFolder> | undefined;
  const folders = () => {
    loaded ??= parseFolders(read(), onBroken);
    return loaded;
  };
  return {
    list(after, limit) {
      const all = [...folders().values()];
      return all.filter(({ skill }) => after === null || skill.name > after).slice(0, limit);
    },
    get(name) {
      const folder = folders().get(name);
      if (!folder) throw notFound("skill");
      return folder;
    },
  };
}

function parseFolders(
  files: ReadonlyMap<string, string>,
  onBroken: (name: string, error: unknown) => void,
): Map<string, SkillFolder> {
  const textsOf = new Map<string, Map<string, string>>();
  for (const [path, text] of files) {
    const slash = path.indexOf("/");
    if (slash < 0) continue;
    const folder = path.slice(0, slash);
    const texts = textsOf.get(folder) ?? new Map<string, string>();
    textsOf.set(folder, texts.set(path.slice(slash + 1), text));
  }
  const folders = new Map<string, SkillFolder>();
  for (const name of [...textsOf.keys()].sort()) {
    const texts = textsOf.get(name) ?? new Map<string, string>();
    try {
      folders.set(name, { skill: parseSkill(texts, name), texts, sha256: fingerprint(texts) });
    } catch (error) {
      onBroken(name, error);
    }
  }
  return folders;
}
