import { z } from "zod";
import { hoursOfDay, seconds, timeZoneName } from "../lib/time-forms.ts";
import { MAX_MESSAGE } from "../limits/message-length.ts";
import { CONVERSATIONS, WHEN_MISSED } from "../schedules/choices.ts";
import type { ScheduleSettings } from "../schedules/schedules.ts";
import type { Schedule } from "../schedules/schema.ts";
import { cut, jsonOf, label, MAX_LABEL, refusal } from "./format.ts";

const message = z.lazy(() =>
  z.string().refine((text) => text.isWellFormed() && text.trim() !== "" && [...text].length <= MAX_MESSAGE, {
    error: `text that is not blank, at most ${MAX_MESSAGE} characters`,
  }),
);

/** A schedule in a bundle: what its owner decided. When it ran, and whether it is on, stay behind. */
const Line = z.lazy(() =>
  z.object({
    name: label,
    message,
    cron: z.string().max(200).nullable(),
    everySeconds: seconds(60).nullable(),
    timeZone: timeZoneName(),
    missed: z.enum(WHEN_MISSED),
    activeHours: hoursOfDay().nullable(),
    conversation: z.enum(CONVERSATIONS),
    announce: z.boolean(),
    model: z.string().min(1).max(200).nullable(),
  }),
);

export function scheduleFile(schedule: Schedule): Buffer {
  const { name, message, cron, everySeconds, timeZone, missed, conversation, announce, model } = schedule;
  const { activeFrom: from, activeTo: to } = schedule;
  const activeHours = from === null || to === null ? null : { from, to };
  const said = { name: cut(name, MAX_LABEL), message: cut(message, MAX_MESSAGE) };
  const line = { ...said, cron, everySeconds, timeZone, missed, activeHours, conversation, announce, model };
  return Buffer.from(`${JSON.stringify(line, null, 2)}\n`);
}

/** Switched off, whatever the file says. Throws `invalid_request`. */
export function parseSchedule(bytes: Uint8Array, file: string): ScheduleSettings {
  const result = Line.safeParse(jsonOf(bytes, file));
  if (!result.success) {
    const [issue] = result.error.issues;
    throw refusal(`${file}: expected another value for ${(issue?.path ?? []).map(String).join(".").slice(0, 100)}`);
  }
  const { activeHours, ...settings } = result.data;
  return { ...settings, enabled: false, activeFrom: activeHours?.from ?? null, activeTo: activeHours?.to ?? null };
}
