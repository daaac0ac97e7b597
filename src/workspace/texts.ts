import { decodeUtf8 } from "../lib/utf8.ts";
import { type Jail, openJail } from "./jail.ts";
import type { FileVersion } from "./jail-portable.ts";
import { MAX_FILE_BYTES } from "./workspace.ts";

/** The texts that every prompt of an agent begins with. */
export interface Texts {
  /** The named top-level files that exist and are text, in the order of the names. */
  read(folder: string, names: readonly string[]): FileText[];
}

export interface FileText {
  readonly name: string;
  readonly text: string;
}

/** Of all folders together, and for each text besides its length. */
const KEPT_CHARACTERS = 8 * 1024 * 1024;
const TEXT_CHARACTERS = 256;
/** A file that was changed so recently may be changed again without a new time: such clocks tick in milliseconds. */
const SETTLED_MS = 1_000;

interface Kept {
  version: FileVersion;
  /** Null if the file is no text. */
  text: FileText | null;
}

interface KeptFolder {
  jail: Jail;
  files: Map<string, Kept>;
  characters: number;
}

/**
 * Reads files as they are now. Those of recently used folders are kept, and read again only when the file system shows a
 * change: looking costs a fifth of opening, reading and decoding them.
 */
export function createTexts(keptCharacters = KEPT_CHARACTERS): Texts {
  /** Least recently used first. */
  const kept = new Map<string, KeptFolder>();
  let total = 0;

  function keep(path: string, folder: KeptFolder): void {
    if (folder.files.size === 0) return;
    kept.set(path, folder);
    total += folder.characters;
    for (const oldest of kept.keys()) {
      if (total <= keptCharacters) break;
      take(oldest);
    }
  }

  function take(path: string): KeptFolder | undefined {
    const folder = kept.get(path);
    total -= folder?.characters ?? 0;
    kept.delete(path);
    return folder;
  }

  return {
    read(path, names) {
      const folder = take(path) ?? { jail: openJail(path), files: new Map(), characters: 0 };
      const settledMs = Date.now() - SETTLED_MS;
      const texts: FileText[] = [];
      folder.jail.readIn([], MAX_FILE_BYTES, (read, stat) => {
        for (const name of names) {
          const version = stat(name);
          let file = folder.files.get(name);
          if (file && !isSame(file.version, version)) {
            drop(folder, name, file);
            file = undefined;
          }
          if (version === null) continue;
          file ??= add(folder, name, { version, text: readText(name, read) }, settledMs);
          if (file.text) texts.push(file.text);
        }
      });
      keep(path, folder);
      return texts;
    },
  };
}

const isSame = (was: FileVersion, is: FileVersion | null): boolean =>
  was.inode === is?.inode && was.size === is.size && was.mtimeMs === is.mtimeMs && was.ctimeMs === is.ctimeMs;

function readText(name: string, read: (name: string) => Buffer | null): FileText | null {
  const bytes = read(name);
  const text = bytes && decodeUtf8(bytes);
  return text === null ? null : { name, text };
}

const charactersOf = ({ text }: Kept): number => TEXT_CHARACTERS + (text?.text.length ?? 0);

function add(folder: KeptFolder, name: string, file: Kept, settledMs: number): Kept {
  if (file.version.ctimeMs >= settledMs) return file;
  folder.files.set(name, file);
  folder.characters += charactersOf(file);
  return file;
}

function drop(folder: KeptFolder, name: string, file: Kept): void {
  folder.files.delete(name);
  folder.characters -= charactersOf(file);
}
