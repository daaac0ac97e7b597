import { CommanderError } from "commander";
import { ConfigError } from "../config.ts";
import { describeSystemError } from "../lib/system-error.ts";
import { explainError, RoostError, type Typed } from "./user/client.ts";

/** A command failed. The message is for the person who ran it; `next` says what to do about it. */
export class Failure extends Error {
  constructor(
    message: string,
    readonly next: string | null = null,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** A wrong command line that commander itself could not detect. */
export class UsageError extends Failure {}

const FAILED = 1;
const WRONG_USAGE = 2;
/** Settings that cannot be used (sysexits' EX_CONFIG). */
const BAD_CONFIG = 78;

/**
 * The text for standard error (for settings, a line for each that is wrong; null when commander has printed it already)
 * and the exit code (docs/contract/operations.md, Command line). What the command was given stands in what is to be done.
 */
export function explain(error: unknown, typed: Typed = {}): { line: string | null; exitCode: number } {
  if (error instanceof CommanderError) return { line: null, exitCode: error.exitCode === 0 ? 0 : WRONG_USAGE };
  if (error instanceof ConfigError) return { line: error.problems.map(lineOf).join("\n"), exitCode: BAD_CONFIG };
  const exitCode = error instanceof UsageError ? WRONG_USAGE : FAILED;
  const { message, next } =
    error instanceof RoostError ? explainError(error, typed) : { message: readableMessage(error), next: null };
  const advice = error instanceof Failure ? error.next : next;
  return { line: lineOf(advice === null ? message : `${message.replace(SENTENCE_END, "")}; ${advice}`), exitCode };
}

/** Not the dot of a folder that is named last. */
const SENTENCE_END = /(?<=[^\s./])\.$/;

const lineOf = (words: string): string => `roost: ${words.replaceAll(/\s*\n\s*/g, " ")}`;

/** The message to show a person. */
export function readableMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ("code" in error && error.code === "SQLITE_BUSY") return "the database was busy for five seconds; try again";
  const unnamed = "code" in error && String(error.code).startsWith("SQLITE_") ? "the database" : "a file";
  const where = "path" in error && typeof error.path === "string" ? error.path : unnamed;
  return (describeSystemError(`${where} cannot be used`, error) as Error).message;
}
