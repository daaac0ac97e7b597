import { Command } from "commander";
import packageFile from "../../package.json" with { type: "json" };

/** The command line: one file a command, loaded when it is asked for, so that `serve` starts without the others. */
export async function runCommandLine(argv: string[]): Promise<void> {
  const program = new Command("roost")
    .description("A host for AI agents in one file")
    .version(packageFile.version)
    .showHelpAfterError("(roost --help shows the commands)")
    .configureHelp({ sortSubcommands: false });

  program
    .command("serve")
    .description("run the appliance")
    .option("--data <folder>", "everything the appliance writes")
    .option("--host <address>", "the address to listen on")
    .option("--port <number>", "the port to listen on; 0 picks a free one")
    .action(async (options) => (await import("./serve.ts")).serve(options));

  await program.parseAsync(argv, { from: "user" });
}
