import { type Command, Option } from "commander";
import { dayCount } from "./arguments.ts";

/** `roost usage`. */
export const addUsageCommand = (command: Command): Command =>
  command
    .addOption(new Option("--by <what>", "agent, instance or model").choices(["agent", "instance", "model"]))
    .option("--days <n>", "so many days, up to today; by default 14", dayCount)
    .action(async (options) => (await import("./user/usage.ts")).showUsage(options));
