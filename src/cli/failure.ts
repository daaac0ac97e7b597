import { CommanderError } from "commander";
import { ConfigError } from "../config.ts";
import { describeSystemError } from "../lib/system-error.ts";

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

/**
 * The line for standard error, of settings one for each that is wrong, null where it is told already; and the exit code
 * (operations.md, Command line).
 */
export function explain(error: unknown): { line: string | null; exitCode: number } {
  if (error instanceof CommanderError) return { line: null, exitCode: error.exitCode === 0 ? 0 : WRONG_USAGE };
  if (error instanceof ConfigError) return { line: error.problems.map(lineOf).join("\n"), exitCode: BAD_CONFIG };
  const next = error instanceof Failure && error.next !== null ? `; ${error.next}` : "";
  const exitCode = error instanceof WrongUsage ? WRONG_USAGE : FAILED;
  return { line: lineOf(`${wordsOf(error)}${next}`), exitCode };
}

const lineOf = (words: string): string => `roost: ${words.replaceAll(/\s*\n\s*/g, " ")}`;

/** What an error says to a person. */
export function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ("code" in error && error.code === "SQLITE_BUSY") return "the database was busy for five seconds; try again";
  const where = "path" in error && typeof error.path === "string" ? error.path : "the data folder";
  return (describeSystemError(`${where} cannot be used`, error) as Error).message;
}
