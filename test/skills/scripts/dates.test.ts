import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { loadScript } from "./load-script.ts";

const dates = await loadScript("dates/dates.js");
const DAY_MS = 86_400_000;
const day = (ms: number) => new Date(ms).toISOString().slice(0, 10);

/** A date of the years 1000 to 9000. */
const anyDay = fc.integer({ min: -354_000, max: 2_567_000 }).map((days) => day(days * DAY_MS));

test("a date's weekday, week and place in the year", () => {
  expect(dates({ date: "2026-11-22" })).toEqual({
    date: "2026-11-22",
    weekday: "Sunday",
    month: "November",
    isoWeek: "2026-W47",
    dayOfYear: 326,
    daysLeftInYear: 39,
    quarter: 4,
    daysInMonth: 30,
    isLastOfMonth: false,
    isLeapYear: false,
  });
});

test.each([
  [2024, true],
  [2023, false],
  [2000, true],
  [1900, false],
  [2100, false],
  [2400, true],
  [4, true],
])("whether %p is a leap year: %p", (year, isLeapYear) => {
  const date = `${String(year).padStart(4, "0")}-12-31`;
  expect(dates({ date })).toMatchObject({ isLeapYear, dayOfYear: isLeapYear ? 366 : 365, daysLeftInYear: 0 });
});

test.each([
  ["2020-12-31", "2020-W53"],
  ["2021-01-03", "2020-W53"],
  ["2021-01-04", "2021-W01"],
  ["2024-12-30", "2025-W01"],
  ["2027-01-01", "2026-W53"],
  ["2026-12-31", "2026-W53"],
])("%s is in the ISO week %s", (date, isoWeek) => {
  expect(dates({ date }).isoWeek).toBe(isoWeek);
});

test.each([
  ["2026-01-31", "P1M", "2026-02-28"],
  ["2024-01-31", "P1M", "2024-02-29"],
  ["2024-02-29", "P1Y", "2025-02-28"],
  ["2026-03-31", "-P1M", "2026-02-28"],
  ["2026-11-22", "P30D", "2026-12-22"],
  ["2026-11-22", "-P1Y2M3W4D", "2025-08-28"],
  ["2026-11-22T23:30", "PT45M", "2026-11-23T00:15:00"],
  ["2026-11-22", "PT36H", "2026-11-23T12:00:00"],
  ["2026-11-22T00:00", "-PT1S", "2026-11-21T23:59:59"],
  ["2026-11-20", { workdays: 10 }, "2026-12-04"],
  ["2026-11-21", { workdays: 1 }, "2026-11-23"],
  ["2026-11-22", { workdays: -1 }, "2026-11-20"],
  ["2026-11-25", { weeks: 2, days: -1 }, "2026-12-08"],
])("%s and %p is %s", (date, add, expected) => {
  expect(dates({ date, add }).date).toBe(expected);
});

test("a day that a month lacks is told", () => {
  expect(dates({ date: "2026-01-31", add: "P1M" }).note).toBe("February 2026 has only 28 days");
  expect(dates({ date: "2026-01-28", add: "P1M" }).note).toBeUndefined();
});

test("how far apart two dates are, as days, as weeks, as an age and as workdays", () => {
  expect(dates({ from: "1990-02-28", to: "2026-11-22" })).toEqual({
    days: 13_416,
    calendar: { years: 36, months: 8, days: 25, isNegative: false },
    weeks: { weeks: 1_916, days: 4 },
    workdays: 9_583,
  });
  expect(dates({ from: "2026-01-03T09:00", to: "2026-01-01T10:00" })).toMatchObject({
    days: -1,
    calendar: { isNegative: true },
    hours: -47,
    seconds: -169_200,
  });
});

test("a week's days and a month's calendar", () => {
  expect(dates({ week: "2026-W53" }).days[6]).toBe("2027-01-03 Sunday");
  expect(dates({ year: 2024, month: 2 }).calendar).toBe(
    [
      "Mo Tu We Th Fr Sa Su",
      "          1  2  3  4",
      " 5  6  7  8  9 10 11",
      "12 13 14 15 16 17 18",
      "19 20 21 22 23 24 25",
      "26 27 28 29",
    ].join("\n"),
  );
});

test.each([
  [{ date: "2026-02-29" }, "date: February 2026 has 28 days"],
  [{ date: "2026-13-01" }, "date: there is no such month"],
  [{ date: "0000-01-01" }, "there is no such month"],
  [{ date: "2026-11-22T24:00" }, "there is no such time"],
  [{ date: "22.11.2026" }, 'expected "2026-11-22"'],
  [{ date: "2026-11-22T10:00Z" }, "without a zone"],
  [{ date: "2026-11-22", add: "1M" }, "add: expected a duration"],
  [{ date: "2026-11-22", add: "P" }, "add: expected a duration"],
  [{ date: "2026-11-22", add: { month: 1 } }, 'add: there is no "month"; there are: years'],
  [{ date: "2026-11-22", add: { days: 1.5 } }, "add: expected days to be whole"],
  [{ date: "2026-11-22", add: { days: 1e300 } }, "add: expected days to be whole"],
  [{ date: "9999-12-31", add: "P1D" }, "not within the years 1 to 9999"],
  [{ date: "0001-01-01", add: { workdays: -9_999_999_999 } }, "not within the years 1 to 9999"],
  [{ date: "2026-01-01", add: { years: 9_999_999_999 } }, "not within the years 1 to 9999"],
  [{ week: "2025-W53" }, "week: expected"],
  [{ week: "2026-W00" }, "week: expected"],
  [{ year: 2026, month: 0 }, "month: expected 1 to 12"],
  [{}, 'expected "date"'],
])("%p is refused: %s", (input, message) => {
  expect(() => dates(input)).toThrow(message);
});

describe("for all dates of eight thousand years,", () => {
  test("days are added as the language's own calendar does", () => {
    fc.assert(
      fc.property(anyDay, fc.integer({ min: -300_000, max: 300_000 }), (date, days) => {
        const expected = new Date(Date.parse(date) + days * DAY_MS);
        if (expected.getUTCFullYear() < 1 || expected.getUTCFullYear() > 9999) return;
        expect(dates({ date, add: { days } }).date).toBe(expected.toISOString().slice(0, 10));
        expect(dates({ from: date, to: day(expected.getTime()) }).days).toBe(days);
      }),
      { numRuns: 500 },
    );
  });

  test("the week is that of its Thursday, and has the day in it", () => {
    fc.assert(
      fc.property(anyDay, (date) => {
        const { isoWeek, weekday, dayOfYear } = dates({ date });
        const at = new Date(date);
        const thursday = new Date(Date.parse(date) + (4 - (at.getUTCDay() || 7)) * DAY_MS);
        const first = Date.UTC(thursday.getUTCFullYear(), 0, 1);
        const week = Math.floor((thursday.getTime() - first) / DAY_MS / 7) + 1;
        expect(isoWeek).toBe(`${thursday.getUTCFullYear()}-W${String(week).padStart(2, "0")}`);
        expect(dayOfYear).toBe((Date.parse(date) - Date.UTC(at.getUTCFullYear(), 0, 1)) / DAY_MS + 1);
        expect(dates({ week: isoWeek }).days).toContain(`${date} ${weekday}`);
      }),
      { numRuns: 500 },
    );
  });

  test("an age, added to the earlier date, gives the later one", () => {
    fc.assert(
      fc.property(anyDay, fc.integer({ min: 0, max: 200_000 }), (from, days) => {
        const to = day(Date.parse(from) + days * DAY_MS);
        const { years, months, days: rest } = dates({ from, to }).calendar;
        expect([years >= 0, months >= 0 && months < 12, rest >= 0 && rest < 31]).toEqual([true, true, true]);
        expect(dates({ date: from, add: { years, months, days: rest } }).date).toBe(to);
      }),
      { numRuns: 500 },
    );
  });

  test("workdays are those that counting one by one finds", () => {
    fc.assert(
      fc.property(anyDay, fc.integer({ min: -40, max: 40 }), (date, workdays) => {
        let at = Date.parse(date);
        const isWorkday = (ms: number) => new Date(ms).getUTCDay() % 6 !== 0;
        for (let left = Math.abs(workdays); left > 0; ) {
          at += Math.sign(workdays) * DAY_MS;
          if (isWorkday(at)) left--;
        }
        expect(dates({ date, add: { workdays } }).date).toBe(day(at));
        const [from, to] = [date, day(at)].sort();
        let count = 0;
        for (let ms = Date.parse(from ?? ""); ms < Date.parse(to ?? ""); ms += DAY_MS) if (isWorkday(ms)) count++;
        expect(dates({ from: date, to: day(at) }).workdays).toBe(count);
      }),
      { numRuns: 300 },
    );
  });
});
