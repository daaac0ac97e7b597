import { CommanderError } from "commander";
import { ConfigError } from "../config.ts";

/** A command that could not do its work, in words for whoever typed it; `next` says what to do about it. */
export class Failure extends Error {
  constructor(
    message: string,
    readonly next: string | null = null,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Words on the command line that make no sense, found where commander could not see it. */
export class WrongUsage extends Failure {}

const FAILED = 1;
const WRONG_USAGE = 2;
/** Settings that cannot be used (sysexits' EX_CONFIG). */
const BAD_CONFIG = 78;

/** The one line for standard error, null where it is told already, and the exit code (operations.md, Command line). */
export function explain(error: unknown): { line: string | null; exitCode: number } {
  if (error instanceof CommanderError) return { line: null, exitCode: error.exitCode === 0 ? 0 : WRONG_USAGE };
  const next = error instanceof Failure && error.next !== null ? `; ${error.next}` : "";
  const line = `roost: ${wordsOf(error)}${next}`;
  if (error instanceof ConfigError) return { line, exitCode: BAD_CONFIG };
  return { line, exitCode: error instanceof WrongUsage ? WRONG_USAGE : FAILED };
}

function wordsOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "SQLITE_BUSY") return "the database was busy for five seconds; try again";
  const words = error instanceof Error ? error.message : String(error);
  return words.replaceAll(/\s*\n\s*/g, " ");
}
