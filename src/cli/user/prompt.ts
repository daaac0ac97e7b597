import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { Failure, UsageError } from "../failure.ts";
import { askFor, lineOf, note, noteJson } from "../output.ts";

/** Asks the user questions; without a terminal, lines of standard input are the answers. */
export interface Prompt {
  /** Returns the answer, trimmed. Throws if the input ends instead. */
  ask(question: string): Promise<string>;
  close(): void;
}

export const onTerminal = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true;

export function openPrompt(): Prompt {
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: onTerminal() });
  const waiting = lines[Symbol.asyncIterator]();
  lines.on("SIGINT", () => {
    lines.close();
    if (onTerminal()) note("");
    process.exit(130);
  });
  let isOver = false;
  lines.once("close", () => {
    isOver = true;
  });
  return {
    async ask(question) {
      // What is left of an input that has ended still answers, but nobody can be asked.
      if (!isOver) {
        lines.setPrompt(lineOf(question));
        lines.prompt();
      }
      const { done, value } = await waiting.next();
      if (done) throw new Failure(`nothing was given for "${question.trim()}"`);
      return String(value).trim();
    },
    close: () => lines.close(),
  };
}

/**
 * Asks before something is done, unless `--yes` was `given`. `about` is what somebody who wants JSON has not seen yet.
 * Throws if the answer is no, and where nobody can be asked.
 */
export async function confirm(question: string, given: true | undefined, about?: unknown): Promise<void> {
  if (given) return;
  if (!onTerminal()) {
    throw new UsageError(`without a terminal, nobody can be asked "${question}"`, "add --yes where nobody can answer");
  }
  if (about !== undefined) noteJson(about);
  const prompt = openPrompt();
  try {
    if (/^y(es)?$/i.test(await prompt.ask(`${question} [y/N] `))) return;
  } finally {
    prompt.close();
  }
  throw new Failure("nothing was changed");
}

/** Reads a line without showing what is typed. Throws for several lines that were pasted. */
export function askHidden(question: string): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: silent, terminal: true, historySize: 0 });
  // Only now: the terminal no longer echoes.
  askFor(question);
  return new Promise((resolve, reject) => {
    let given = 0;
    lines.on("line", (line) => {
      if (++given > 1) return;
      // Lines pasted at once come before this runs.
      setImmediate(() => {
        if (given === 1 && lines.line === "") resolve(line);
        else reject(new Failure("several lines cannot be given here", "pipe them to standard input: … < FILE"));
        lines.close();
      });
    });
    lines.on("SIGINT", () => {
      lines.close();
      process.exit(130);
    });
    lines.once("close", () => {
      note("");
      reject(new Failure("nothing was entered"));
    });
  });
}
