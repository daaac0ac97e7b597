import { type Command, Option } from "commander";
import { CONVERSATIONS, WHEN_MISSED } from "../schedules/choices.ts";
import { activeHours, interval } from "./arguments.ts";

/** `roost schedule …`; `onAgent` adds the arguments and options of every command about an agent. */
export function addScheduleCommands(schedule: Command, onAgent: (command: Command) => Command): void {
  const ofAll = (name: string, description: string): Command =>
    onAgent(schedule.command(name).description(description));
  const one = (name: string, description: string): Command =>
    ofAll(name, description).argument("<schedule>", "its id or name");
  ofAll("list", "list an agent's schedules").action(async (instance, agent, options) =>
    (await import("./user/schedule.ts")).listSchedules(instance, agent, options),
  );
  one("show", "show a schedule, and what became of its last times").action(async (instance, agent, given, options) =>
    (await import("./user/schedule.ts")).showSchedule(instance, agent, given, options),
  );
  ofAll("create", "tell an agent something at certain times")
    .argument("<name>", "the schedule's name")
    .argument("<message>", "what the agent is told")
    .option("--cron <fields>", "minute, hour, day, month and weekday, such as '0 9 * * 1-5'")
    .option("--every <duration>", "an interval in place of cron, such as 30m", interval("1m"))
    .option("--time-zone <zone>", "whose clocks cron means, such as Europe/Berlin; else this machine's")
    .addOption(
      new Option("--missed <what>", "times while the host did not run: run the last one, or none")
        .choices(WHEN_MISSED)
        .default("run_once" satisfies (typeof WHEN_MISSED)[number]),
    )
    .option("--active-hours <from-to>", "skip other times, such as 08:00-20:00", activeHours)
    .addOption(new Option("--conversation <which>", "where it runs").choices(CONVERSATIONS).default("own"))
    .option("--no-announce", "keep the answer out of the default conversation")
    .option("--model <model>", "the model that answers, if not the agent's")
    .action(async (instance, agent, name, message, options) =>
      (await import("./user/schedule.ts")).createSchedule(instance, agent, name, message, options),
    );
  for (const state of ["on", "off"] as const) {
    one(state, `switch a schedule ${state}`).action(async (instance, agent, given, options) =>
      (await import("./user/schedule.ts")).switchSchedule(state, instance, agent, given, options),
    );
  }
  one("run", "run a schedule now").action(async (instance, agent, given, options) =>
    (await import("./user/schedule.ts")).runSchedule(instance, agent, given, options),
  );
  one("delete", "delete a schedule")
    .option("-y, --yes", "do not ask; needed where there is no terminal")
    .action(async (instance, agent, given, options) =>
      (await import("./user/schedule.ts")).deleteSchedule(instance, agent, given, options),
    );
}
