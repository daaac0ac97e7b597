import { expect, test } from "bun:test";
import { whenIn } from "../../src/console/browser/times.ts";

const ZONE = "Europe/Berlin";

/** What is said of a moment when it is then. */
const said = (now: string, moment: string) => whenIn(ZONE, Date.parse(moment), Date.parse(now)).replace(",", "");

test("a day is today, yesterday or tomorrow by the calendar, also where it has 23 or 25 hours", () => {
  // The clocks went forward in the night to Sunday, 29 March 2026.
  expect(said("2026-03-28T23:30+01:00", "2026-03-29T09:00+02:00")).toBe("tomorrow at 09:00");
  expect(said("2026-03-28T23:30+01:00", "2026-03-30T09:00+02:00")).toBe("Mon 30 Mar at 09:00");
  expect(said("2026-03-30T00:30+02:00", "2026-03-29T09:00+02:00")).toBe("yesterday at 09:00");
  expect(said("2026-03-30T00:30+02:00", "2026-03-28T09:00+01:00")).toBe("Sat 28 Mar at 09:00");
  // And back in the night to Sunday, 25 October.
  expect(said("2026-10-25T00:30+02:00", "2026-10-25T23:00+01:00")).toBe("today at 23:00");
  expect(said("2026-10-25T00:30+02:00", "2026-10-26T09:00+01:00")).toBe("tomorrow at 09:00");
  expect(said("2026-10-25T23:30+01:00", "2026-10-24T09:00+02:00")).toBe("yesterday at 09:00");
});
