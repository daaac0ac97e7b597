import { z } from "zod";
import { isoTime, isoTimeOrNull } from "../lib/clock.ts";
import { idForm } from "../lib/forms.ts";
import { record } from "../lib/record.ts";
import { CONVERSATIONS, KINDS, WHEN_MISSED } from "./choices.ts";
import { type Schedule, SLOT_STATUSES, type Slot } from "./schema.ts";

/** A schedule as the API shows it (docs/contract/api.md, Schedules). */
export const ScheduleRecord = record("Schedule", () =>
  z.object({
    scheduleId: idForm("sch"),
    agentId: idForm("agt"),
    kind: z.enum(KINDS).describe("An agent's heartbeat is changed with the agent"),
    name: z.string(),
    message: z.string().describe("Empty for a heartbeat, whose message is HEARTBEAT.md as it is at the time"),
    cron: z.string().nullable(),
    everySeconds: z.int().nullable(),
    timeZone: z.string(),
    enabled: z.boolean(),
    missed: z.enum(WHEN_MISSED),
    activeHours: z.object({ from: z.string(), to: z.string() }).nullable(),
    conversation: z.enum(CONVERSATIONS),
    announce: z.boolean(),
    model: z.string().nullable(),
    nextAt: z.iso.datetime().nullable().describe("Null while it is off"),
    lastSlot: z.iso.datetime().nullable().describe("The last time that was decided"),
    failuresInARow: z.int(),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  }),
);
export type ScheduleRecord = z.output<typeof ScheduleRecord>;

/** What became of one of a schedule's times. */
export const SlotRecord = record("ScheduleSlot", () =>
  z.object({
    slotAt: z.iso.datetime(),
    status: z.enum(SLOT_STATUSES),
    reason: z.string().nullable(),
    runId: idForm("run").nullable(),
  }),
);
export type SlotRecord = z.output<typeof SlotRecord>;

export const showSchedule = (row: Schedule): ScheduleRecord => ({
  scheduleId: row.scheduleId,
  agentId: row.agentId,
  kind: row.kind,
  name: row.name,
  message: row.message,
  cron: row.cron,
  everySeconds: row.everySeconds,
  timeZone: row.timeZone,
  enabled: row.enabled,
  missed: row.missed,
  activeHours: row.activeFrom === null || row.activeTo === null ? null : { from: row.activeFrom, to: row.activeTo },
  conversation: row.conversation,
  announce: row.announce,
  model: row.model,
  nextAt: isoTimeOrNull(row.nextAt),
  lastSlot: isoTimeOrNull(row.lastSlot),
  failuresInARow: row.failuresInARow,
  createdAt: isoTime(row.createdAt),
  updatedAt: isoTime(row.updatedAt),
});

export const showSlot = ({ slotAt, status, reason, runId }: Slot): SlotRecord => ({
  slotAt: isoTime(slotAt),
  status,
  reason,
  runId,
});
