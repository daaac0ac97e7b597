import { join } from "node:path";

/** The command line that starts this program again with other words: the executable itself, or Bun and the source. */
export const ownCommand = (...words: string[]): string[] =>
  Bun.isStandaloneExecutable
    ? [process.execPath, ...words]
    : [process.execPath, "--no-env-file", join(import.meta.dir, "../main.ts"), ...words];
