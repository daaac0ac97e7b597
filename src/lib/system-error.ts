/** What the operating system, or SQLite on its behalf, refused: words that fit behind "…: ", and what mends it. */
interface Trouble {
  cause: string;
  mend?: string;
}

const FORBIDDEN: Trouble = { cause: "this user may not", mend: "run as the user who owns it" };
const FULL: Trouble = { cause: "its disk is full", mend: "make room there" };
const FAILED: Trouble = { cause: "its disk failed", mend: "look in the system's log for what is wrong with it" };
const MANY_FILES: Trouble = { cause: "too many files are open", mend: "allow more with ulimit -n" };

const TROUBLES: Readonly<Record<string, Trouble>> = {
  EACCES: FORBIDDEN,
  EPERM: FORBIDDEN,
  EROFS: { cause: "its file system is read-only" },
  ENOSPC: FULL,
  EDQUOT: FULL,
  EIO: FAILED,
  EEXIST: { cause: "a file stands in its place" },
  ENOTDIR: { cause: "a part of its path is a file" },
  ENOENT: { cause: "there is no such place" },
  ENAMETOOLONG: { cause: "its name is too long" },
  ELOOP: { cause: "it is a link that leads back to itself" },
  EISDIR: { cause: "it is a folder", mend: "move it away" },
  EMFILE: MANY_FILES,
  ENFILE: MANY_FILES,
  SQLITE_FULL: FULL,
  SQLITE_IOERR: FAILED,
  SQLITE_READONLY: { cause: "it cannot be written", mend: "make it writable" },
  SQLITE_CANTOPEN: { cause: "it is nothing that this user may open", mend: "look at what is there" },
};

function troubleOf(error: unknown): Trouble | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  const code = String(error.code);
  // SQLite's codes say more behind the second underscore: SQLITE_IOERR_WRITE.
  return TROUBLES[code] ?? TROUBLES[code.split("_").slice(0, 2).join("_")];
}

export const isSystemTrouble = (error: unknown): error is Error => troubleOf(error) !== undefined;

/**
 * An error with words in place of the system's: `what` could not be done, and the mend, `otherwise` another one. An error
 * that is not the system's is given back as it is.
 */
export function inWords(what: string, error: unknown, otherwise?: string): unknown {
  const trouble = troubleOf(error);
  if (!trouble) return error;
  const mend = [trouble.mend, otherwise].filter((text) => text !== undefined).join(", or ");
  return new Error(`${what}: ${trouble.cause}${mend === "" ? "" : `; ${mend}`}`, { cause: error });
}
