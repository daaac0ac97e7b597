import { z } from "zod";
import { isTimeZone } from "../lib/wall-time.ts";
import type { Tool } from "./tool.ts";

const TIME_ZONE = "an IANA time zone, such as Europe/Oslo";

const input = z.lazy(() =>
  z.object({
    timeZone: z
      .string()
      .refine(isTimeZone, { error: `expected ${TIME_ZONE}` })
      .default("UTC")
      .describe(TIME_ZONE),
  }),
);

/** The date, the time and the day of the week: what a model cannot know. */
export const now: Tool<typeof input> = {
  name: "now",
  description: "Tells the current date, time and day of the week.",
  input,
  deadlineMs: 1_000,
  changes: "nothing",
  untrustedOutput: false,
  async run({ timeZone }, { clock }) {
    const moment = new Date(clock.now());
    const local = new Intl.DateTimeFormat("en-GB", { timeZone, dateStyle: "full", timeStyle: "long" }).format(moment);
    return `${local} (${moment.toISOString()})`;
  },
};
