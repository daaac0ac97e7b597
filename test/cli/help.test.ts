import { describe, expect, test } from "bun:test";
import type { Command } from "commander";
import { createProgram } from "../../src/cli/cli.ts";
import { examplesOf } from "../../src/cli/examples.ts";
import { parseShellLine } from "../../src/cli/shell-line.ts";
import { BINARY, makeHome, run } from "./command-line.ts";

interface Place {
  words: string[];
  command: Command;
}

/** Every command that help shows, the program itself first. */
function placesOf(command: Command, words: string[] = []): Place[] {
  const shown = new Set(command.createHelp().visibleCommands(command));
  const below = command.commands.filter((child) => shown.has(child));
  return [{ words, command }, ...below.flatMap((child) => placesOf(child, [...words, child.name()]))];
}

const PLACES = placesOf(createProgram());
const nameOf = ({ words }: Place): string => ["roost", ...words].join(" ");

function helpOf(command: Command): string {
  let help = "";
  command.configureOutput({ writeOut: (text) => (help += text) });
  command.outputHelp();
  return help;
}

/** A program whose commands do nothing, and the parsed arguments of the last line. */
function rehearse(): (line: string) => Promise<string> {
  const program = createProgram();
  let ran = "";
  for (const { words, command } of placesOf(program)) {
    command.exitOverride().configureOutput({ writeErr: () => {}, outputError: () => {} });
    if (command.commands.length === 0) {
      command.action(() => {
        ran = words.join(" ");
      });
    }
  }
  return async (line) => {
    ran = "";
    // The rest belongs to the shell, or another program.
    const words = parseShellLine(`${line.replace(/ [<>|] .*$/, "")} `).before;
    await program.parseAsync(words.slice(1), { from: "user" });
    return ran;
  };
}

describe("help shows examples, and each of them parses:", () => {
  test.each(PLACES.map((place) => [nameOf(place), place] as const))("%s", async (name, { words, command }) => {
    const examples = examplesOf(command, words);
    expect(examples.length).toBeGreaterThan(0);
    expect(helpOf(command)).toContain(`Examples:\n${examples.map((line) => `  ${line}\n`).join("")}`);
    const own = examples.map((line) => line.slice(line.search(/\broost /)));
    for (const line of own) {
      expect(`roost ${await rehearse()(line)}`).toStartWith(words.length === 0 ? "roost " : name);
    }
  });
});

test("the tree with which the server starts knows it as the whole tree does", () => {
  const [whole, short] = [createProgram(), createProgram("serve")].map(
    (program) => placesOf(program).find(({ words }) => words.join(" ") === "serve")?.command,
  );
  if (whole === undefined || short === undefined) throw new Error("there is no serve");
  expect(helpOf(short)).toBe(helpOf(whole));
  expect(short.options.map(({ flags }) => flags)).toEqual(whole.options.map(({ flags }) => flags));
});

test("help of a command within another is that command's", async () => {
  const home = makeHome();
  const asked = await run(home, ["help", "agent", "edit"]);
  const option = await run(home, ["agent", "edit", "--help"]);
  const within = await run(home, ["agent", "help", "edit"]);
  home.remove();
  expect([within.code, within.output]).toEqual([0, option.output]);
  expect([asked.code, asked.output]).toEqual([0, option.output]);
  expect(asked.output).toStartWith("Usage: roost agent edit ");
});

test("completion is set up in an empty home as its help says", async () => {
  const { command } = PLACES.find(({ words }) => words.join(" ") === "completion") ?? {};
  const home = makeHome();
  const lines = helpOf(command ?? createProgram()).match(/^ {2}(?:bash|zsh |fish) .*\n {8}.*/gm) ?? [];
  const script = lines
    .join("\n")
    .replaceAll(/^ {2}\w+|\(.*\)$/gm, "")
    .replaceAll(" roost ", ` ${BINARY} `);
  const { exitCode, stderr } = Bun.spawnSync(["sh", "-ec", script], { cwd: home.folder, env: home.env });
  home.remove();
  expect([lines.length, exitCode, stderr.toString()]).toEqual([3, 0, ""]);
});

test("help fits 80 columns", () => {
  const wide = PLACES.flatMap(({ command }) => helpOf(command).split("\n")).filter((line) => line.length > 80);
  expect(wide).toEqual([]);
});

test("help says which options a command needs, and shows no default that is only the program's", () => {
  for (const { command } of PLACES) {
    const help = helpOf(command);
    expect(help.includes("(required)")).toBe(command.options.some(({ mandatory }) => mandatory));
    expect(help).not.toContain("default: {");
  }
});

test("examples fit 80 columns", () => {
  const long = PLACES.flatMap(({ command, words }) => examplesOf(command, words)).filter((line) => line.length > 78);
  expect(long).toEqual([]);
});

test("an example that does not parse is caught", async () => {
  await expect(rehearse()("roost send home")).rejects.toThrow("missing required argument");
  await expect(rehearse()("roost account credit ada@example.org 5.00")).rejects.toThrow("--note");
});
