import { everyInWords } from "../../lib/every-in-words.ts";
import { Failure, UsageError } from "../failure.ts";
import { printFields, printJson, printTable, say, shortTime } from "../output.ts";
import { shellWord } from "../shell-word.ts";
import type { Client, Records } from "./client.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import { AGENT, findAgent, idsOf, only } from "./find.ts";
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
    "There are no schedules.",
    { leaveOut: ["ID"], shorten: ["NAME"] },
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
  if (cron === undefined && every === undefined) {
    throw new UsageError("nothing says when it is due", "give --cron '0 9 * * 1-5' or --every 30m");
  }
  if (cron !== undefined && every !== undefined) {
    throw new UsageError("both --cron and --every say when it is due", "give only one of them");
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
    if (state === "off") throw heartbeatIsOfAgent(instance, agent);
    const changed = await switchHeartbeatOn(client, schedule, path);
    if (options.json) printJson(changed);
    else say(`The heartbeat is on, ${timesOf(schedule)}.`);
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
  else say(`It runs (${started.runId}). To see how: roost events ${shellWord(instance)} ${shellWord(agent)}`);
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
  if (schedule.kind === "heartbeat") throw heartbeatIsOfAgent(instance, agent);
  await confirm(`Delete the schedule ${schedule.name}?`, yes);
  const gone = await client.delete(SCHEDULE, { path });
  if (options.json) printJson(gone);
  else say(`${schedule.name} is deleted.`);
}

/** Switched off, it would forget its times and hours, which "on" could not bring back. */
const heartbeatIsOfAgent = (instance: string, agent: string) =>
  new Failure(
    "the heartbeat is the agent's: switched off, it is removed with its times",
    `roost agent edit ${shellWord(instance)} ${shellWord(agent)} --heartbeat off`,
  );

/** Failures have switched it off: the same words on it, said of its agent, switch it on again. */
async function switchHeartbeatOn(client: Client, schedule: ScheduleRecord, path: AgentPath) {
  const { everySeconds, timeZone, activeHours } = schedule;
  const heartbeat = everySeconds === null ? null : { everySeconds, timeZone, activeHours };
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
