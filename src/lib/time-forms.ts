import { z } from "zod";
import { isTimeZone } from "./wall-time.ts";

/** Fields that say when something is to be done. */

const WALL_TIME = "a time such as 08:00";
const wallTime = () =>
  z
    .string({ error: WALL_TIME })
    .regex(/^([01]\d|2[0-3]):[0-5]\d$/, { error: WALL_TIME })
    .meta({ examples: ["08:00"] });

/** From a time of the day to another; from 22:00 to 06:00 is over midnight. */
export const hoursOfDay = () =>
  z
    .object({ from: wallTime(), to: wallTime() }, { error: "an object with from and to" })
    .refine(({ from, to }) => from !== to, { error: "from and to that differ; null is the whole day" });
export type HoursOfDay = z.output<ReturnType<typeof hoursOfDay>>;

const ZONE = "a name such as Europe/Berlin or UTC";
export const timeZoneName = () =>
  z
    .string({ error: ZONE })
    .min(1, { error: ZONE })
    .max(64, { error: ZONE })
    .refine(isTimeZone, { error: ZONE })
    .meta({ examples: ["Europe/Berlin"] });

/** Whole seconds, a year at most. */
export function seconds(min: number) {
  const form = `a whole number from ${min} to 31536000`;
  return z.int({ error: form }).min(min, { error: form }).max(31_536_000, { error: form });
}
