import type { Argument, Command, Option } from "commander";
import type { Candidate, Source, Typed } from "./completion-sources.ts";
import { oneLine, sayText } from "./output.ts";
import { parseShellLine } from "./shell-line.ts";

/** `files` leaves completion to the shell. */
export type Completion = { kind: "words"; candidates: Candidate[] } | { kind: "files" };

/**
 * What may follow the words: commands, options and values, some of them fetched from the server. `words` excludes the
 * program's name and has its quotes removed; `current` is the part of the word typed so far.
 */
export async function complete(program: Command, words: readonly string[], current: string): Promise<Completion> {
  const typed: Typed = { words: [], arguments: [], options: {} };
  let command = program;
  let awaiting: Option | null = null;
  let isOperand = false;
  for (const word of words) {
    if (awaiting !== null) {
      typed.options[awaiting.attributeName()] = word;
      awaiting = null;
    } else if (!isOperand && word === "--") isOperand = true;
    else if (!isOperand && isOption(word)) {
      const { option, value } = readOption(command, word);
      if (option === undefined || !takesValue(option)) continue;
      if (value === undefined) awaiting = option;
      else typed.options[option.attributeName()] = value;
    } else {
      const below = typed.arguments.length === 0 ? command.commands.find((child) => child.name() === word) : undefined;
      if (below !== undefined) typed.words.push(word);
      else if (word !== "help" || command.commands.length === 0) typed.arguments.push(word);
      command = below ?? command;
    }
  }
  if (awaiting !== null) return await valuesOf(awaiting, awaiting.attributeName(), typed);
  if (!isOperand && isOption(current)) {
    const { option, value } = readOption(command, current);
    if (option === undefined || value === undefined || !takesValue(option)) return optionsOf(command);
    const values = await valuesOf(option, option.attributeName(), typed);
    return values.kind === "files" ? values : withPrefix(`${current.slice(0, current.indexOf("=") + 1)}`, values);
  }
  if (command.commands.length > 0 && typed.arguments.length === 0) return commandsOf(command);
  const argument = command.registeredArguments[typed.arguments.length];
  return argument === undefined ? NOTHING : await valuesOf(argument, argument.name(), typed);
}

const NOTHING: Completion = { kind: "words", candidates: [] };
/** Options whose values are paths. */
const PATHS = new Set(["data", "file", "folder", "bundle", "output", "from", "passphraseFile"]);

const isOption = (word: string): boolean => word.length > 1 && word.startsWith("-");
const takesValue = (option: Option): boolean => option.required || option.optional;

function readOption(command: Command, word: string): { option: Option | undefined; value: string | undefined } {
  const [, name = word, value] = /^(--[^=]+)=(.*)$/s.exec(word) ?? [];
  return { option: command.options.find(({ long, short }) => long === name || short === name), value };
}

function commandsOf(command: Command): Completion {
  const children = command.createHelp().visibleCommands(command);
  const candidates = children.map((child) => ({ value: child.name(), description: child.description() }));
  return { kind: "words", candidates };
}

function optionsOf(command: Command): Completion {
  const options = command.createHelp().visibleOptions(command);
  const candidates = options.flatMap(({ short, long, description }) =>
    [short, long].flatMap((value) => (value ? [{ value, description }] : [])),
  );
  return { kind: "words", candidates };
}

async function valuesOf(place: Option | Argument, name: string, typed: Typed): Promise<Completion> {
  if (PATHS.has(name)) return { kind: "files" };
  if (place.argChoices !== undefined) {
    return { kind: "words", candidates: place.argChoices.map((value) => ({ value, description: "" })) };
  }
  const { SOURCES } = await import("./completion-sources.ts");
  const source: Source | undefined = Object.hasOwn(SOURCES, name) ? SOURCES[name] : undefined;
  if (source === undefined) return NOTHING;
  // A name from the server must not be mistaken for an option.
  return { kind: "words", candidates: (await source(typed)).filter(({ value }) => !value.startsWith("-")) };
}

const withPrefix = (prefix: string, { candidates }: Extract<Completion, { kind: "words" }>): Completion => ({
  kind: "words",
  candidates: candidates.map(({ value, description }) => ({ value: prefix + value, description })),
});

/**
 * `roost __complete SHELL -- …`, which the completion scripts call: prints the kind, then one candidate per line in the
 * shell's format. A failure offers nothing: an error message would land in the line being typed.
 */
export async function answerShell(shell: string, words: string[], program: Command): Promise<void> {
  try {
    sayText((await answerOf(shell, words, program)).join("\n"));
  } catch {
    sayText("words");
  }
}

async function answerOf(shell: string, words: string[], program: Command): Promise<string[]> {
  const [breaks = "", line = ""] = words;
  const { before, current, finish } = parseShellLine(line);
  const completion =
    shell === "bash"
      ? await complete(program, before.slice(1), current)
      : await complete(program, words.slice(0, -1), words.at(-1) ?? "");
  if (completion.kind === "files") return ["files"];
  const candidates = completion.candidates
    // One per line, so without line breaks; and without invisible characters, which could disguise a name.
    .filter(({ value }) => value !== "" && value === oneLine(value))
    .map(({ value, description }) => ({ value, description: oneLine(description) }));
  const fitting = candidates.filter(({ value }) => value.startsWith(current));
  if (shell === "bash") return ["words", ...fitting.flatMap(({ value }) => finish(value, breaks) ?? [])];
  return ["words", ...candidates.map(shell === "zsh" ? zshLine : fishLine)];
}

const described = ({ value, description }: Candidate, between: string): string =>
  description === "" ? value : `${value}${between}${description}`;
const fishLine = (candidate: Candidate): string => described(candidate, "\t");

function zshLine({ value, description }: Candidate): string {
  const escaped = (text: string) => text.replaceAll(/[\\:]/g, "\\$&");
  return described({ value: escaped(value), description: escaped(description) }, ":");
}
