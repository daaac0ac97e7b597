import { expect, test } from "bun:test";
import { join } from "node:path";
import { Glob } from "bun";
import type { Command } from "commander";
import { createProgram } from "../../src/cli/cli.ts";

const ROOT = join(import.meta.dir, "../..");
/** Everything that users of this program, or of its agents, read. */
const READ = [
  "src/**/*.{ts,tsx,html}",
  "{README,ARCHITECTURE,CONTRIBUTING}.md",
  "docs/*.md",
  "{skills,workspaces}/**/*.md",
  "examples/*.{ts,mjs}",
];

/** Words after "roost" that are not commands: "roost is serving", labels of keys, what a shell completes. */
const NO_COMMANDS = ["is", "host", "-n", "http://127.0.0.1:7373/v1/mcp"];

/** The completion scripts, and the examples of the help, which another test parses. */
const OTHERS = /^src\/cli\/(completion|examples)/;

/** The commands that a text recommends: the words after `roost`, with VALUE for what is filled in. */
function adviceOf(text: string): string[] {
  const program = text
    .replaceAll(/\/\*[\s\S]*?\*\//g, "")
    .replaceAll(/^\s*\/\/.*$/gm, "")
    .replaceAll(/(\s?)\$\{(?:[^{}]|\{[^{}]*\})*\}/g, (_, space: string) => (space === "" ? "" : `${space}VALUE`));
  const written = [...program.matchAll(/(?<![-@/\w])(?:dist\/)?roost ((?:-|[a-z])[^\n"`<]*)/g)];
  const made = [...program.matchAll(/\broost\(\s*"([^"]+)"/g)];
  // A text in quotes is one value.
  return [...written, ...made].map(([, words = ""]) => words.replaceAll(/ '[^']*'/g, " TEXT"));
}

const bare = (word: string): string => word.replaceAll(/^['(]+|['.,;:)]+$/g, "");
const isValue = (word: string): boolean => /^(?:[A-Z][A-Z_]*|VALUE|\$\w+|\S+@\S+|\d\S*)$/.test(word);
/** Also a file's. */
const isName = (word: string): boolean => /^(?:[a-z]+|\S*[./]\S+)$/.test(word);

/** What is wrong with it; null if it can be run once its capitalised placeholders are filled in. */
function faultOf(advice: string): string | null {
  // The command continues on the next line, which this does not read.
  if (advice.includes("\\\\")) return null;
  const [line = ""] = advice.split(/\s[>|&#]/);
  const words = line.trim().split(/\s+/).map(bare);
  let command: Command = createProgram();
  while (command.commands.length > 0) {
    const word = words.shift() ?? "";
    if (word.startsWith("--")) return null;
    const next = command.commands.find((one) => one.name() === word);
    if (!next) return command.parent === null && NO_COMMANDS.includes(word) ? null : `there is no command ${word}`;
    command = next;
  }
  const [values, given]: [string[], Set<string>] = [[], new Set()];
  let at = 0;
  for (; at < words.length; at++) {
    const word = words[at] ?? "";
    if (word.startsWith("--")) {
      const option = command.options.find(({ long }) => long === word);
      if (!option && word !== "--help") return `${command.name()} has no ${word}`;
      given.add(word);
      if (option?.required) at++;
    } else if (isValue(word) || isName(word)) values.push(word);
    else break;
  }
  const { registeredArguments } = command;
  const needed = registeredArguments.filter(({ required }) => required).length;
  // A command may end with names, as in `chat home librarian`; a sentence goes on with other words.
  const isExample = at >= words.length && values.length <= registeredArguments.length;
  const count = isExample ? values.length : values.findIndex((word) => !isValue(word));
  if (count >= 0 && count < needed) return `${command.name()} needs ${needed} values`;
  const missing = command.options.find(({ long, mandatory }) => mandatory && !given.has(long ?? ""));
  return missing ? `${command.name()} needs ${missing.long}` : null;
}

const texts = await Promise.all(
  READ.flatMap((one) => [...new Glob(one).scanSync(ROOT)]).map(async (path) => ({
    path,
    text: await Bun.file(join(ROOT, path)).text(),
  })),
);

test("every command that a message tells somebody to run exists, and has its arguments", async () => {
  const told = texts
    .filter(({ path }) => !OTHERS.test(path))
    .flatMap(({ path, text }) => adviceOf(text).map((words) => ({ path, words, fault: faultOf(words) })));
  expect(told.length).toBeGreaterThan(40);
  expect(told.filter(({ fault }) => fault !== null)).toEqual([]);
});

test("this test catches missing arguments", () => {
  expect(adviceOf('x = "look: roost outbox";\n/** roost bogus */\ny = roost("invite create", z);')).toEqual([
    "outbox",
    "invite create",
  ]);
  expect(faultOf("account credit EMAIL AMOUNT")).toBe("credit needs --note");
  expect(faultOf("account credit EMAIL AMOUNT --note TEXT")).toBeNull();
  expect(faultOf("events shows what happened")).toBe("events needs 2 values");
  expect(faultOf("restore FILE")).toBe("there is no command restore");
  expect(faultOf("outbox --since 1h")).toBe("outbox has no --since");
  expect(faultOf("login-link you@example.com")).toBeNull();
});
