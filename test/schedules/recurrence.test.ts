import { expect, test } from "bun:test";
import fc from "fast-check";
import { momentOf, wallTimeAt } from "../../src/lib/wall-time.ts";
import { nextSlot, parseCron, type Recurrence, slotsBetween } from "../../src/schedules/recurrence.ts";

const at = (time: string) => Date.parse(time);
const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString().replace(":00.000Z", "Z"));
const cron = (pattern: string, timeZone = "UTC"): Recurrence => ({ cron: pattern, everySeconds: null, timeZone });

/** All times after one moment, up to another. */
function all(recurrence: Recurrence, after: string, until: string): (string | null)[] {
  const slots: number[] = [];
  for (
    let slot = nextSlot(recurrence, at(after));
    slot !== null && slot <= at(until);
    slot = nextSlot(recurrence, slot)
  ) {
    slots.push(slot);
  }
  return slots.map(iso);
}

test("a time that summer time skips is due once, when the clocks have gone forward", () => {
  expect(all(cron("30 2 * * *", "Europe/Berlin"), "2026-03-28T00:00Z", "2026-03-30T12:00Z")).toEqual([
    "2026-03-28T01:30Z",
    "2026-03-29T01:00Z",
    "2026-03-30T00:30Z",
  ]);
});

test("several skipped times are due once together with the one after the gap", () => {
  expect(all(cron("*/20 * * * *", "Europe/Berlin"), "2026-03-29T00:30Z", "2026-03-29T01:45Z")).toEqual([
    "2026-03-29T00:40Z",
    "2026-03-29T01:00Z",
    "2026-03-29T01:20Z",
    "2026-03-29T01:40Z",
  ]);
});

test("a time that comes twice when summer time ends is due at the first", () => {
  expect(all(cron("30 2 * * *", "Europe/Berlin"), "2026-10-24T12:00Z", "2026-10-26T12:00Z")).toEqual([
    "2026-10-25T00:30Z",
    "2026-10-26T01:30Z",
  ]);
  expect(all(cron("*/30 * * * *", "Europe/Berlin"), "2026-10-24T23:45Z", "2026-10-25T02:15Z")).toEqual([
    "2026-10-25T00:00Z",
    "2026-10-25T00:30Z",
    "2026-10-25T02:00Z",
  ]);
});

test("half-hour zones, zones west of Greenwich and a day that was left out are kept", () => {
  expect(all(cron("0 9 * * *", "Asia/Kolkata"), "2026-01-01T00:00Z", "2026-01-01T23:00Z")).toEqual([
    "2026-01-01T03:30Z",
  ]);
  expect(all(cron("30 2 * * *", "America/New_York"), "2026-03-07T12:00Z", "2026-03-09T12:00Z")).toEqual([
    "2026-03-08T07:00Z",
    "2026-03-09T06:30Z",
  ]);
  expect(all(cron("0 12 * * *", "Pacific/Apia"), "2011-12-29T20:00Z", "2011-12-31T23:00Z")).toEqual([
    "2011-12-29T22:00Z",
    "2011-12-30T10:00Z",
    "2011-12-30T22:00Z",
    "2011-12-31T22:00Z",
  ]);
});

test("every moment's wall time leads back to it, or to the first of two", () => {
  for (const zone of ["Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"]) {
    for (let ms = at("2018-01-01T00:00Z"); ms < at("2019-01-01T00:00Z"); ms += 37 * 60_000) {
      const moment = momentOf(zone, wallTimeAt(zone, ms));
      expect(moment).toBeLessThanOrEqual(ms);
      expect(ms - moment).toBeLessThanOrEqual(60 * 60_000);
      expect(wallTimeAt(zone, moment)).toBe(wallTimeAt(zone, ms));
    }
  }
});

test("weekdays and days of the month are both due, as in cron", () => {
  expect(all(cron("0 9 13 * FRI"), "2026-11-10T00:00Z", "2026-11-21T00:00Z")).toEqual([
    "2026-11-13T09:00Z",
    "2026-11-20T09:00Z",
  ]);
});

test.each([
  "0 9 * *",
  "0 9 * * * *",
  "@daily",
  "60 * * * *",
  "*/0 * * * *",
  "0 0 L * *",
  "0 0 * * 5#2",
  "0 0 15W * *",
  "0 9 * * MOO",
  "",
])("%p is no pattern", (pattern) => expect(parseCron(pattern)).toBeNull());

test.each(["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31 FEB *", "0 0 30-31 2 *"])("%p is never due", (pattern) =>
  expect(parseCron(pattern)).toBeNull(),
);

test.each(["0 0 29 2 *", "0 0 31 1-4 *", "0 0 31 2 MON", "*/15 8-18 * * 1-5", "0 0 */31 2 *", "5,10 0 1 JAN *"])(
  "%p is due some day",
  (pattern) => expect(nextSlot(cron(pattern), at("2026-11-22T00:00Z"))).not.toBeNull(),
);

test("an interval counts from its beginning, whatever is asked when", () => {
  const hourly: Recurrence = { cron: null, everySeconds: 3600, anchor: at("2026-01-01T00:10Z") };
  expect(iso(nextSlot(hourly, at("2025-12-01T00:00Z")))).toBe("2026-01-01T01:10Z");
  expect(iso(nextSlot(hourly, at("2026-01-01T01:10Z")))).toBe("2026-01-01T02:10Z");
  expect(iso(nextSlot(hourly, at("2026-01-01T04:00Z")))).toBe("2026-01-01T04:10Z");
});

test("the slots of a downtime are the last of them, oldest first", () => {
  const from = at("2026-03-28T00:00Z");
  expect(slotsBetween(cron("30 2 * * *", "Europe/Berlin"), from, at("2026-03-30T12:00Z"), 2).map(iso)).toEqual([
    "2026-03-29T01:00Z",
    "2026-03-30T00:30Z",
  ]);
  const minutely: Recurrence = { cron: null, everySeconds: 60, anchor: from };
  expect(slotsBetween(minutely, from, at("2026-03-28T00:02Z"), 100).map(iso)).toEqual([
    "2026-03-28T00:01Z",
    "2026-03-28T00:02Z",
  ]);
  expect(slotsBetween(minutely, from, at("2027-03-28T00:00Z"), 100)).toHaveLength(100);
});

test.each([
  ["40 1 * * *", "Australia/Lord_Howe", "2026-04-04T14:40Z", "2026-04-04T15:05Z"],
  ["30 1 * * *", "America/New_York", "2026-11-01T05:30Z", "2026-11-01T06:10Z"],
  ["30 1 * * *", "Antarctica/Troll", "2026-10-24T23:30Z", "2026-10-25T01:10Z"],
])(
  "a time just before the clocks of %s %s go back is not lost to who looks when they show less",
  (pattern, zone, due, now) => {
    expect(slotsBetween(cron(pattern, zone), at(due), at(now), 100).map(iso)).toEqual([due]);
    expect(slotsBetween(cron("* * * * *", zone), at("2026-01-01T00:00Z"), at(now), 100)).toHaveLength(100);
  },
);

test("the few times of a short while are those that a long one ends with", () => {
  const patterns = ["*/20 * * * *", "30 2 * * *", "0 1-3 * * *", "59 12 28 11 *", "15 0 * * 0", "0 3 31 10 *"];
  const zones = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Antarctica/Troll"];
  /** Around the days on which clocks of these zones go forward or back. */
  const turns = [
    "2026-03-08T08:00Z",
    "2026-03-29T01:00Z",
    "2026-04-04T15:00Z",
    "2026-10-25T01:00Z",
    "2026-11-28T12:00Z",
  ];
  const minutes = (most: number) => fc.integer({ min: -most, max: most }).map((count) => count * 60_000);
  fc.assert(
    fc.property(
      fc.constantFrom(...patterns),
      fc.constantFrom(...zones),
      fc.constantFrom(...turns),
      minutes(2_000),
      fc.integer({ min: 0, max: 3_000 }),
      (pattern, zone, turn, later, long) => {
        const recurrence = cron(pattern, zone);
        const to = at(turn) + later;
        const from = to - long * 60_000;
        const years = slotsBetween(recurrence, from - 6 * 365 * 24 * 3_600_000, to, 1_000);
        expect(slotsBetween(recurrence, from, to, 1_000)).toEqual(years.filter((slot) => slot >= from));
      },
    ),
    { numRuns: 50 },
  );
});
