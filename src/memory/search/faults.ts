const codeOf = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "");

/** The file of an index is none. */
export const isDamage = (error: unknown): boolean => /^SQLITE_(NOTADB|CORRUPT)/.test(codeOf(error));

/** The disk does not serve it at the moment: in SQLite's words, or the operating system's, such as ENOSPC. */
export const isTrouble = (error: unknown): boolean =>
  /^(SQLITE_(FULL|IOERR|CANTOPEN|READONLY|PERM|BUSY|LOCKED|NOMEM)|E[A-Z0-9]+$)/.test(codeOf(error));
