import { everyInWords } from "../../lib/every-in-words.ts";
import { Failure, UsageError } from "../failure.ts";
import { printFields, printJson, printTable, say, shortTime } from "../output.ts";
import type { Client, Records } from "./client.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import { AGENT, findAgent, idsOf, only, shellWord } from "./find.ts";
import { confirm } from "./prompt.ts";

const SCHEDULES = `${AGENT}/schedules` as const;
const SCHEDULE = `${SCHEDULES}/{scheduleId}` as const;
type ScheduleRecord = Records["Schedule"];
type AgentPath = { instanceId: string; agentId: string };

const ID = /^sch_[0-9a-f]{32}$/;

interface Options extends ServerOptions {
  json?: true;
}

interface NewScheduleOptions extends Options {
  cron?: string;
  every?: number;
  timeZone?: string;
  missed?: ScheduleRecord["missed"];
  activeHours?: { from: string; to: string };
  conversation?: ScheduleRecord["conversation"];
  announce?: boolean;
  model?: string;
}

/** Times that `show` prints. */
const SHOWN_SLOTS = 10;

const TIMES = {
  empty: "There are no schedules.",
  widths: { leaveOut: ["ID"], shorten: ["NAME"] },
};

/** `roost schedule list INSTANCE AGENT` */
export async function listSchedules(instance: string, agent: string, options: Options): Promise<void> {
  const client = openClient(options);
  const path = idsOf(await findAgent(client, instance, agent));
  const schedules = await Array.fromAsync(client.all(SCHEDULES, { path }));
  if (options.json) {
    printJson(schedules);
    return;
  }
  printTable(
    ["NAME", "WHEN", "NEXT", "ID"],
    schedules.map((schedule) => [schedule.name, timesOf(schedule), nextOf(schedule), schedule.scheduleId]),
    TIMES.empty,
    TIMES.widths,
  );
}

const timesOf = ({ cron, everySeconds, timeZone }: ScheduleRecord): string =>
  cron === null ? everyInWords(everySeconds ?? 0) : `${cron} ${timeZone}`;

const hoursOf = ({ activeHours, timeZone }: ScheduleRecord): string =>
  activeHours ? `${activeHours.from} to ${activeHours.to} ${timeZone}` : "all";

const nextOf = ({ enabled, nextAt }: ScheduleRecord): string =>
  enabled && nextAt !== null ? shortTime(nextAt) : "off";

/** `roost schedule show INSTANCE AGENT SCHEDULE`: with what became of its last times. */
export async function showSchedule(instance: string, agent: string, given: string, options: Options): Promise<void> {
  const client = openClient(options);
  const { path, schedule } = await findSchedule(client, instance, agent, given);
  const { data: slots } = await client.get(`${SCHEDULE}/slots`, { path, query: { limit: SHOWN_SLOTS } });
  if (options.json) {
    printJson({ ...schedule, slots });
    return;
  }
  printFields([
    ["Name", schedule.name],
    ["Message", schedule.kind === "heartbeat" ? "what HEARTBEAT.md says" : schedule.message],
    ["When", timesOf(schedule)],
    ["Next", nextOf(schedule)],
    ["Hours", hoursOf(schedule)],
    ["Where", schedule.conversation === "own" ? "a conversation of its own" : "the default conversation"],
    ["ID", schedule.scheduleId],
  ]);
  say("");
  printTable(
    ["TIME", "WHAT", "WHY"],
    slots.map(({ slotAt, status, reason }) => [shortTime(slotAt), status, reason ?? "-"]),
    "It has not been due yet.",
    { leaveOut: [], shorten: ["WHY"] },
  );
}

/** `roost schedule create INSTANCE AGENT NAME MESSAGE` */
export async function createSchedule(
  instance: string,
  agent: string,
  name: string,
  message: string,
  { cron, every, timeZone, missed, activeHours, conversation, announce, model, ...options }: NewScheduleOptions,
): Promise<void> {
  if ((cron === undefined) === (every === undefined)) {
    throw new UsageError("when is it due?", "give either --cron '0 9 * * 1-5' or --every 30m");
  }
  const client = openClient(options);
  const path = idsOf(await findAgent(client, instance, agent));
  const zone = timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
  const body = {
    ...{ name, message, cron: cron ?? null, timeZone: zone, missed, activeHours, conversation, announce, model },
    everySeconds: every === undefined ? null : Math.round(every / 1000),
  };
  const made = await client.post(SCHEDULES, { path, body });
  if (options.json) printJson(made);
  else say(`${made.name} is due next at ${nextOf(made)} (${made.scheduleId}).`);
}

/** `roost schedule on INSTANCE AGENT SCHEDULE`, and `off` */
export async function switchSchedule(
  state: "on" | "off",
  instance: string,
  agent: string,
  given: string,
  options: Options,
): Promise<void> {
  const client = openClient(options);
  const { path, schedule } = await findSchedule(client, instance, agent, given);
  if (schedule.kind === "heartbeat") {
    const changed = await switchHeartbeat(client, state, schedule, path);
    if (options.json) printJson(changed);
    else say(changed.heartbeat === null ? "The heartbeat is off." : `The heartbeat is on, ${timesOf(schedule)}.`);
    return;
  }
  const changed = await client.patch(SCHEDULE, { path, body: { enabled: state === "on" } });
  if (options.json) printJson(changed);
  else say(changed.enabled ? `${changed.name} is due next at ${nextOf(changed)}.` : `${changed.name} is off.`);
}

/** `roost schedule run INSTANCE AGENT SCHEDULE` */
export async function runSchedule(instance: string, agent: string, given: string, options: Options): Promise<void> {
  const client = openClient(options);
  const { path } = await findSchedule(client, instance, agent, given);
  const started = await client.post(`${SCHEDULE}/run`, { path });
  if (options.json) printJson(started);
  else say(`It runs (${started.runId}). To see how: roost events ${instance} ${agent}`);
}

/** `roost schedule delete INSTANCE AGENT SCHEDULE` */
export async function deleteSchedule(
  instance: string,
  agent: string,
  given: string,
  { yes, ...options }: Options & { yes?: true },
): Promise<void> {
  const client = openClient(options);
  const { path, schedule } = await findSchedule(client, instance, agent, given);
  if (schedule.kind === "heartbeat") {
    throw new Failure("the heartbeat is the agent's", `roost agent edit ${instance} ${agent} --heartbeat off`);
  }
  await confirm(`Delete the schedule ${schedule.name}?`, yes);
  const gone = await client.delete(SCHEDULE, { path });
  if (options.json) printJson(gone);
  else say(`${schedule.name} is deleted.`);
}

/** A heartbeat is switched with its agent: the same words on it switch it on, none remove it. */
async function switchHeartbeat(client: Client, state: "on" | "off", schedule: ScheduleRecord, path: AgentPath) {
  const { everySeconds, timeZone, activeHours } = schedule;
  const heartbeat = state === "on" && everySeconds !== null ? { everySeconds, timeZone, activeHours } : null;
  return await client.patch(AGENT, { path, body: { heartbeat } });
}

/** A schedule given by its id or name. Throws if none or several have the name. */
async function findSchedule(client: Client, instance: string, agent: string, given: string) {
  const ids = idsOf(await findAgent(client, instance, agent));
  if (ID.test(given)) {
    const path = { ...ids, scheduleId: given };
    return { path, schedule: await client.get(SCHEDULE, { path }) };
  }
  const fits: ScheduleRecord[] = [];
  for await (const schedule of client.all(SCHEDULES, { path: ids })) {
    if (schedule.name === given) fits.push(schedule);
  }
  const list = `roost schedule list ${shellWord(instance)} ${shellWord(agent)}`;
  const schedule = only(fits, `schedule "${given}"`, list);
  return { path: { ...ids, scheduleId: schedule.scheduleId }, schedule };
}
