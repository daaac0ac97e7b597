import { Argument, Command, Help } from "commander";
import packageFile from "../../package.json" with { type: "json" };
import { addExamples } from "./examples.ts";
import { explain, UsageError } from "./failure.ts";
import { addOperatorCommands, addServe } from "./operator-commands.ts";
import { noteFailure } from "./output.ts";
import { addUserCommands } from "./user-commands.ts";

/**
 * The command line. Two files list the commands; each command is implemented in its own file, loaded only when it runs,
 * so that `serve` starts without the others. Exits with the codes of (docs/contract/operations.md, Command line).
 */
export async function runCommandLine(argv: string[]): Promise<void> {
  // `roost events … | head` closes the pipe early, which is not a failure.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
  let typed: Record<string, string> = {};
  try {
    const program = createProgram(argv[0]);
    const words = withHelpLast(program, argv);
    program.hook("preAction", (_program, { registeredArguments, args }) => {
      typed = Object.fromEntries(registeredArguments.map((argument, at) => [argument.name(), args[at] ?? ""]));
    });
    await program.parseAsync(words, { from: "user" });
    // Without this, an open standard input would keep a finished command running.
    process.exit();
  } catch (error) {
    const { line, exitCode } = explain(error, typed);
    for (const one of line?.split("\n") ?? []) noteFailure(one);
    process.exit(exitCode);
  }
}

/**
 * `help agent edit` and `agent help edit` are `agent edit --help`: commander's own `help` looks at one word only, and takes
 * any. Throws if there is no such command.
 */
function withHelpLast(program: Command, argv: string[]): string[] {
  let command: Command | undefined = program;
  const at = argv.findIndex((word) => {
    const isGroup = command !== undefined && command.commands.length > 0;
    if (isGroup && word !== "help") command = command?.commands.find((child) => child.name() === word);
    return isGroup && word === "help";
  });
  const asked = argv.slice(at + 1);
  if (at < 0 || asked.length === 0 || asked[0]?.startsWith("-")) return argv;
  for (const word of asked) {
    const known: Command | undefined = command?.commands.find((child) => child.name() === word);
    if (known === undefined) {
      const words = [...argv.slice(0, at), ...asked].join(" ");
      throw new UsageError(`there is no command "${words}"`, "to list all: roost --help");
    }
    command = known;
  }
  return [...argv.slice(0, at), ...asked, "--help"];
}

/**
 * The command tree, with no command's implementation loaded. Building all of it takes a tenth of the server's start, so
 * for `serve` and `--version`, as the first word, it has no other command.
 */
export function createProgram(firstWord?: string): Command {
  const program = new Command("roost")
    .description("A host for AI agents in one file")
    .version(packageFile.version)
    .showHelpAfterError("(add --help for usage)")
    .addHelpText("after", "\nSettings: roost config --help")
    .configureHelp(TIGHT_HELP)
    .configureOutput({ outputError: showWrongUsage })
    .exitOverride();
  addExamples(program);
  if (firstWord === "--version") return program;
  addServe(program);
  if (firstWord === "serve") return program;
  addUserCommands(program);
  addOperatorCommands(program);
  program
    .command("completion")
    .description("print a completion script for a shell")
    .addArgument(new Argument("<shell>", "the shell").choices(SHELLS))
    .addHelpText("after", COMPLETION_HELP)
    .action(async (shell) => (await import("./completion-scripts.ts")).printScript(shell));
  program
    .command("__complete", { hidden: true })
    .argument("<shell>")
    .argument("[words...]")
    .action(async (shell, words) => (await import("./completion.ts")).answerShell(shell, words, program));
  return program;
}

/** As every other error is shown. */
function showWrongUsage(text: string): void {
  for (const line of text.trimEnd().split("\n")) noteFailure(line.replace(/^error: /, "roost: "));
}

/** Lists of commands that fit 80 columns: every command has options, and its help shows them, and which it needs. */
const TIGHT_HELP: Partial<Help> = {
  minWidthToWrap: 24,
  subcommandTerm: (command) => new Help().subcommandTerm(command).replace(" [options]", ""),
  optionDescription: (option) => new Help().optionDescription(option) + (option.mandatory ? " (required)" : ""),
};

const SHELLS = ["bash", "zsh", "fish"];
const COMPLETION_HELP = `
To load it in every new shell:
  bash  mkdir -p ~/.local/share/bash-completion/completions
        roost completion bash > ~/.local/share/bash-completion/completions/roost
  zsh   mkdir -p ~/.zfunc
        roost completion zsh > ~/.zfunc/_roost      (with ~/.zfunc in fpath)
  fish  mkdir -p ~/.config/fish/completions
        roost completion fish > ~/.config/fish/completions/roost.fish`;
