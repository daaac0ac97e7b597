/** Why the operating system, or SQLite, refused something (a text to follow a colon), and how to fix it. */
interface Explanation {
  cause: string;
  fix?: string;
}

const FORBIDDEN: Explanation = { cause: "permission denied", fix: "run as the user who owns it" };
const FULL: Explanation = { cause: "its disk is full", fix: "free some space there" };
const FAILED: Explanation = { cause: "its disk failed", fix: "see the system's log for the reason" };
const MANY_FILES: Explanation = { cause: "too many files are open", fix: "raise the limit with ulimit -n" };

const EXPLANATIONS: Readonly<Record<string, Explanation>> = {
  EACCES: FORBIDDEN,
  EPERM: FORBIDDEN,
  EROFS: { cause: "its file system is read-only" },
  ENOSPC: FULL,
  EDQUOT: FULL,
  EIO: FAILED,
  EEXIST: { cause: "a file is in its place" },
  ENOTDIR: { cause: "part of its path is a file" },
  ENOENT: { cause: "there is no such file or folder" },
  ENAMETOOLONG: { cause: "its name is too long" },
  ELOOP: { cause: "it is a symbolic link that leads back to itself" },
  EISDIR: { cause: "it is a folder", fix: "move it elsewhere" },
  EMFILE: MANY_FILES,
  ENFILE: MANY_FILES,
  SQLITE_FULL: FULL,
  SQLITE_IOERR: FAILED,
  SQLITE_READONLY: { cause: "it cannot be written", fix: "make it writable" },
  SQLITE_CANTOPEN: { cause: "this user cannot open it", fix: "check what is there" },
};

function explain(error: unknown): Explanation | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  const code = String(error.code);
  // SQLite's extended codes have more parts: SQLITE_IOERR_WRITE.
  return EXPLANATIONS[code] ?? EXPLANATIONS[code.split("_").slice(0, 2).join("_")];
}

export const isSystemError = (error: unknown): error is Error => explain(error) !== undefined;

/**
 * Explains a system error in plain words: `what` failed, why, and how to fix it; `alternative` is another way. Returns
 * any other error as it is.
 */
export function describeSystemError(what: string, error: unknown, alternative?: string): unknown {
  const explanation = explain(error);
  if (!explanation) return error;
  const fix = [explanation.fix, alternative].filter((text) => text !== undefined).join(", or ");
  return new Error(`${what}: ${explanation.cause}${fix === "" ? "" : `; ${fix}`}`, { cause: error });
}

/** Whether it is a system error with one of these codes. */
export const hasCode = (error: unknown, ...codes: string[]): boolean =>
  error instanceof Error && "code" in error && typeof error.code === "string" && codes.includes(error.code);

/** Whether this process, or the system, has as many files and connections open as it may. */
export const isOutOfFiles = (error: unknown): boolean => hasCode(error, "EMFILE", "ENFILE");

/** Whether the disk, or the user's part of it, has no room left. */
export const isDiskFull = (error: unknown): boolean =>
  hasCode(error, "SQLITE_FULL", "ENOSPC", "EDQUOT", "EFBIG", "SQLITE_IOERR_WRITE");
