import { openJail } from "./jail.ts";
import { MAX_FILE_BYTES, textOf } from "./workspace.ts";

/** The texts that every prompt of an agent begins with. */
export interface Texts {
  /** The named top-level files that exist and are text, in the order of the names. */
  read(folder: string, names: readonly string[]): { name: string; text: string }[];
}

/** Of all folders together, and for each text besides its length. */
const KEPT_CHARACTERS = 8 * 1024 * 1024;
const TEXT_CHARACTERS = 256;
/** A file that was changed so recently may be changed again without a new time: such clocks tick in milliseconds. */
const SETTLED_MS = 1_000;

interface Kept {
  inode: number;
  size: number;
  mtimeMs: number;
  ctimeMs: number;
  /** Null if the file is no text. */
  text: string | null;
}

/**
 * Reads files as they are now. Those of recently used folders are kept, and read again only when the file system shows a
 * change: looking costs a fifth of opening, reading and decoding them.
 */
export function createTexts(keptCharacters = KEPT_CHARACTERS): Texts {
  /** By folder and name, least recently used first. */
  const kept = new Map<string, Map<string, Kept>>();
  let total = 0;

  const charactersOf = ({ text }: Kept) => TEXT_CHARACTERS + (text?.length ?? 0);

  function keep(folder: string, texts: Map<string, Kept>): void {
    if (texts.size > 0) kept.set(folder, texts);
    for (const one of texts.values()) total += charactersOf(one);
    for (const oldest of kept.keys()) {
      if (total <= keptCharacters) break;
      forget(oldest);
    }
  }

  function forget(folder: string): Map<string, Kept> | undefined {
    const texts = kept.get(folder);
    for (const one of texts?.values() ?? []) total -= charactersOf(one);
    kept.delete(folder);
    return texts;
  }

  return {
    read(folder, names) {
      // What was read by other names, such as a heartbeat's, stays.
      const texts = forget(folder) ?? new Map<string, Kept>();
      const settledMs = Date.now() - SETTLED_MS;
      const found = openJail(folder).readIn([], MAX_FILE_BYTES, (read, stat) =>
        names.flatMap((name) => {
          const was = texts.get(name);
          texts.delete(name);
          const is = stat(name);
          if (is === null) return [];
          const isSame =
            was?.inode === is.inode && was.size === is.size && was.mtimeMs === is.mtimeMs && was.ctimeMs === is.ctimeMs;
          const bytes = isSame ? null : read(name);
          const text = isSame ? was.text : bytes && textOf(bytes);
          if (is.ctimeMs < settledMs) texts.set(name, { ...is, text });
          return text === null ? [] : [{ name, text }];
        }),
      );
      keep(folder, texts);
      return found;
    },
  };
}
