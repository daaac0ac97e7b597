import { type Command, Option } from "commander";
import { passages } from "./arguments.ts";

/** What the commands of an agent's memory need of the others'. */
export interface MemoryCommandParts {
  /** On a server, for one agent. */
  ofAgent(command: Command): Command;
  /** Does not ask. */
  sure(command: Command): Command;
  asJson(command: Command): Command;
}

/** `roost memory` on a server; on a host's own data folder there is `rebuild` too (operator-commands.ts). */
export function addMemoryCommands(memory: Command, { ofAgent, sure, asJson }: MemoryCommandParts): void {
  asJson(ofAgent(memory.command("search").description("search an agent's files and conversations")))
    .argument("<query>", "what to look for, in words or as a question")
    .addOption(new Option("--limit <n>", "how many passages, up to 50").argParser(passages).default(10))
    .action(async (instance, agent, query, options) =>
      (await import("./user/memory.ts")).searchMemory(instance, agent, query, options),
    );
  sure(ofAgent(memory.command("forget").description("forget what a run, or a conversation, noted and said")))
    .option("--run <run>", "the id of a run")
    .option("--conversation <conversation>", "its id or title, or default")
    .option("--dry-run", "only show what would be forgotten")
    .action(async (instance, agent, options) =>
      (await import("./user/memory.ts")).forgetMemory(instance, agent, options),
    );
}
