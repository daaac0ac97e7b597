import { z } from "zod";
import type { Agents } from "../agents/agents.ts";
import { modelName } from "../agents/input.ts";
import { Reply } from "../http/answer.ts";
import { changeOf, flag, spokenText, trimmedText } from "../http/fields.ts";
import { pageOf, pageQuery, toPage } from "../http/paging.ts";
import { type Asked, type Route, route } from "../http/route.ts";
import { idForm } from "../lib/forms.ts";
import { hoursOfDay, seconds, timeZoneName } from "../lib/time-forms.ts";
import { MAX_MESSAGE } from "../limits/message-length.ts";
import { CONVERSATIONS, WHEN_MISSED } from "./choices.ts";
import type { Deciding } from "./deciding.ts";
import { ScheduleRecord, SlotRecord, showSchedule, showSlot } from "./record.ts";
import type { ScheduleSettings, Schedules } from "./schedules.ts";

export interface ScheduleRouteParts {
  agents: Agents;
  schedules: Schedules;
  deciding: Pick<Deciding, "runNow">;
}

const SCHEDULES = "/v1/instances/:instanceId/agents/:agentId/schedules";
const SCHEDULE = `${SCHEDULES}/:scheduleId` as const;

const fields = () => ({
  name: trimmedText(1, 100),
  message: spokenText(MAX_MESSAGE).describe("What the agent is told each time"),
  cron: z
    .string({ error: "five fields" })
    .max(200, { error: "five fields" })
    .meta({ examples: ["0 9 * * 1-5"] })
    .nullish()
    .describe("Minute, hour, day, month, weekday, in the time zone; this or everySeconds"),
  everySeconds: seconds(60).nullish().describe("Counted from when it was set; this or cron"),
  timeZone: timeZoneName().optional().describe("By default UTC"),
  enabled: flag.optional(),
  missed: z
    .enum(WHEN_MISSED, { error: WHEN_MISSED.join(" or ") })
    .optional()
    .describe("What happens to times while the host did not run; by default the last of them runs once"),
  activeHours: hoursOfDay().nullish().describe("Other times are skipped; from 22:00 to 06:00 is over midnight"),
  conversation: z
    .enum(CONVERSATIONS, { error: CONVERSATIONS.join(" or ") })
    .optional()
    .describe("Where it runs; by default in a conversation of its own"),
  announce: flag
    .optional()
    .describe("Whether the last text of a run is put into the default conversation; by default it is"),
  model: modelName().nullish().describe("Answers its runs; null for the agent's own"),
});

/** What an agent does at certain times (docs/contract/api.md, Schedules). */
export function scheduleRoutes({ agents, schedules, deciding }: ScheduleRouteParts): Route[] {
  const own = ({ caller, params }: Asked<{ instanceId: string; agentId: string }>) =>
    agents.get(caller, params.instanceId, params.agentId);
  const one = (asked: Asked<{ instanceId: string; agentId: string; scheduleId: string }>) => {
    const found = own(asked);
    return { ...found, schedule: schedules.get(found.agent.agentId, asked.params.scheduleId) };
  };
  const NewSchedule = z.lazy(() => z.object(fields()));
  const ScheduleChange = z.lazy(change);

  const oneSchedule = route({
    method: "GET",
    path: SCHEDULE,
    name: "getAgentSchedule",
    tag: "schedules",
    summary: "One schedule",
    access: "read",
    bound: "record",
    answer: ScheduleRecord,
    find: one,
    handle: ({ found }) => showSchedule(found.schedule),
  });

  return [
    route({
      method: "POST",
      path: SCHEDULES,
      name: "createAgentSchedule",
      tag: "schedules",
      summary: "Have the agent told something at certain times",
      access: "write",
      bound: "record",
      status: 201,
      body: NewSchedule,
      example: { name: "Morning", message: "Suggest a poem.", cron: "0 8 * * *", timeZone: "Europe/Berlin" },
      answer: ScheduleRecord,
      errors: ["conflict"],
      reread: { by: oneSchedule, id: "scheduleId" },
      find: own,
      commit: "shared",
      write({ found: { instance, agent }, body }) {
        const { name, message } = body;
        const settings = { ...BY_DEFAULT, ...settingsOf(body), name, message };
        return showSchedule(schedules.create(agent, instance.accountId, settings));
      },
    }),
    route({
      method: "GET",
      path: SCHEDULES,
      name: "listAgentSchedules",
      tag: "schedules",
      summary: "The agent's schedules, oldest first",
      access: "read",
      bound: "page",
      query: pageQuery,
      answer: pageOf(ScheduleRecord),
      find: own,
      handle({ found: { agent }, query, startPage }) {
        const start = startPage(`schedules ${agent.agentId}`, query());
        const rows = schedules.page(agent.agentId, start.position, start.limit + 1);
        return toPage(start, rows, ({ scheduleId }) => scheduleId, showSchedule);
      },
    }),
    oneSchedule,
    route({
      method: "PATCH",
      path: SCHEDULE,
      name: "updateAgentSchedule",
      tag: "schedules",
      summary: "Change a schedule, or switch it on or off",
      access: "write",
      bound: "record",
      body: ScheduleChange,
      example: { enabled: false },
      answer: ScheduleRecord,
      errors: ["conflict"],
      find: one,
      commit: "shared",
      write: ({ found: { agent, schedule }, body }) =>
        showSchedule(schedules.update(schedule, agent, settingsOf(body))),
    }),
    route({
      method: "DELETE",
      path: SCHEDULE,
      name: "deleteAgentSchedule",
      tag: "schedules",
      summary: "Delete a schedule; a run of it goes on",
      access: "write",
      bound: "record",
      answer: z.object({ scheduleId: idForm("sch"), deleted: z.literal(true) }),
      errors: ["conflict"],
      find: one,
      commit: "shared",
      write({ found: { schedule } }) {
        schedules.remove(schedule);
        return { scheduleId: schedule.scheduleId, deleted: true };
      },
    }),
    route({
      method: "POST",
      path: `${SCHEDULE}/run`,
      name: "runAgentSchedule",
      tag: "schedules",
      summary: "Run a schedule now, besides its times",
      access: "chat",
      bound: "record",
      status: 202,
      answer: z.object({ runId: idForm("run") }),
      errors: ["conflict", "rate_limited", "budget_exceeded", "forbidden", "instance_not_ready"],
      find: one,
      commit: "shared",
      write: ({ found }) => new Reply(202, { runId: deciding.runNow(found.schedule, found).runId }),
    }),
    route({
      method: "GET",
      path: `${SCHEDULE}/slots`,
      name: "listAgentScheduleSlots",
      tag: "schedules",
      summary: "What became of the schedule's times, newest first",
      access: "read",
      bound: "page",
      query: pageQuery,
      answer: pageOf(SlotRecord),
      find: one,
      handle({ found: { schedule }, query, startPage }) {
        const start = startPage(`slots ${schedule.scheduleId}`, query());
        const before = start.position === null ? null : Number(start.position);
        const rows = schedules.slots(schedule, before, start.limit + 1);
        return toPage(start, rows, ({ slotAt }) => String(slotAt), showSlot);
      },
    }),
  ];
}

const BY_DEFAULT = {
  cron: null,
  everySeconds: null,
  timeZone: "UTC",
  enabled: true,
  missed: "run_once",
  activeFrom: null,
  activeTo: null,
  conversation: "own",
  announce: true,
  model: null,
} as const;

const change = () => changeOf(z.object(fields()).partial().shape);

/** The columns of the fields that were given. */
function settingsOf({ activeHours, ...given }: z.output<ReturnType<typeof change>>): Partial<ScheduleSettings> {
  const hours = { activeFrom: activeHours?.from ?? null, activeTo: activeHours?.to ?? null };
  const plain = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return { ...plain, ...(activeHours !== undefined && hours) };
}
