import { expect, test } from "bun:test";
import fc from "fast-check";
import { loadScript } from "./load-script.ts";

const zones = await loadScript("dates/zones.js");
const DAY_MS = 86_400_000;

const formats = new Map<string, Intl.DateTimeFormat>();

/** What this machine's own zones say: minutes ahead of UTC. */
function offsetOf(timeZone: string, ms: number): string {
  let format = formats.get(timeZone);
  if (!format) {
    format = new Intl.DateTimeFormat("en-US", { timeZone, timeZoneName: "longOffset", hour: "numeric" });
    formats.set(timeZone, format);
  }
  const name = format
    .formatToParts(ms)
    .find(({ type }) => type === "timeZoneName")
    ?.value.replace("GMT", "");
  return name === "" || name === undefined ? "+00:00" : name;
}

const NAMES: string[] = zones({ list: "" });
const [FROM, TO] = [Date.UTC(2025, 0, 2), Date.UTC(2037, 11, 30)];
const utc = (ms: number) => `${new Date(ms).toISOString().slice(0, 16)}Z`;

test("all zones of this machine are known, but for those that announce their dates each year", () => {
  const unknown = Intl.supportedValuesOf("timeZone").filter(
    (name) => !NAMES.includes(name) && !name.startsWith("Etc/"),
  );
  expect(unknown).toEqual(["Asia/Gaza", "Asia/Hebron"]);
});

test("in every zone, at any time of thirteen years, the offset is that of the tz database", () => {
  fc.assert(
    fc.property(fc.constantFrom(...NAMES), fc.integer({ min: FROM, max: TO }), (name, ms) => {
      const [told] = zones({ time: utc(ms), to: [name] }).to;
      expect({ name, at: utc(ms), offset: told.offset }).toEqual({ name, at: utc(ms), offset: offsetOf(name, ms) });
    }),
    { numRuns: 5_000 },
  );
});

/** One zone of each rule. */
const RULED = (
  "Europe/Berlin America/New_York Australia/Sydney Pacific/Auckland Pacific/Chatham America/Santiago America/Havana " +
  "Africa/Cairo Asia/Jerusalem Asia/Beirut Africa/Casablanca Australia/Lord_Howe Antarctica/Troll America/Nuuk Pacific/Easter"
).split(" ");

test.each(RULED)("the clock of %s changes in the very minute", (name) => {
  let changes = 0;
  for (let ms = FROM; ms < TO; ms += DAY_MS) {
    if (offsetOf(name, ms) === offsetOf(name, ms + DAY_MS)) continue;
    let [before, after] = [ms, ms + DAY_MS];
    while (after - before > 60_000) {
      const middle = Math.floor((before + after) / 120_000) * 60_000;
      if (offsetOf(name, middle) === offsetOf(name, ms)) before = middle;
      else after = middle;
    }
    for (const moment of [before, after]) {
      expect(zones({ time: utc(moment), to: [name] }).to[0].offset).toBe(offsetOf(name, moment));
    }
    changes++;
  }
  expect(changes).toBeGreaterThan(24);
});

test("a local time, converted to UTC and back, is the same, unless the clock leaves it out", () => {
  fc.assert(
    fc.property(fc.constantFrom(...RULED, "Asia/Kolkata"), fc.integer({ min: FROM, max: TO }), (zone, ms) => {
      const time = new Date(ms).toISOString().slice(0, 16);
      const there = zones({ time, from: zone, to: ["UTC"] });
      const back = zones({ time: there.utc, to: [zone] });
      const isLeftOut = there.note?.includes("leaves this time out") ?? false;
      expect(back.to[0].time === `${time}:00`).toBe(!isLeftOut);
    }),
    { numRuns: 2_000 },
  );
});

test("a time that comes twice is taken the first time; one that is left out goes on from before; both are told", () => {
  expect(zones({ time: "2026-10-25T02:30", from: "Berlin", to: [] })).toMatchObject({
    utc: "2026-10-25T00:30:00Z",
    note: "in Europe/Berlin this time comes twice: the first is meant",
  });
  expect(zones({ time: "2026-03-29T02:30", from: "Europe/Berlin" })).toMatchObject({
    utc: "2026-03-29T01:30:00Z",
    from: { time: "2026-03-29T03:30:00" },
    note: "Europe/Berlin leaves this time out: the clock is put forward then",
  });
});

test("zones are found by name, by city and by offset", () => {
  const time = "2026-07-01T12:00Z";
  const to = ["america/new york", "Tokyo", "Istanbul", "+05:30", "UTC-3", "Z"];
  expect(zones({ time, to }).to.map(({ time }: { time: string }) => time.slice(11, 16))).toEqual([
    "08:00",
    "21:00",
    "15:00",
    "17:30",
    "09:00",
    "12:00",
  ]);
  expect(zones({ time, to: "Oslo" }).to[0]).toEqual({
    zone: "Europe/Oslo",
    time: "2026-07-01T14:00:00",
    offset: "+02:00",
    weekday: "Wednesday",
    summerTime: true,
  });
});

test.each([
  [{ time: "2026-07-01T12:00" }, "from: expected the zone of the time"],
  [{ time: "2026-07-01T12:00", from: "Atlantis" }, 'there is no zone "Atlantis"'],
  [{ time: "2026-07-01T12:00", from: "constructor" }, "there is no zone"],
  [{ time: "2026-07-01T12:00", from: "+25:00" }, "there is no offset"],
  [{ time: "2026-02-30T12:00Z" }, "time: expected one such as"],
  [{ time: "12:00" }, "time: expected one such as"],
  [{ time: "2050-01-01T00:00", from: "Europe/Berlin" }, "known for 2025 to 2037: give an offset"],
  [{ time: "2026-01-01T00:00Z", to: Array(51).fill("UTC") }, "at most 50 zones"],
  [{}, 'expected { "time"'],
])("%p is refused: %s", (input, message) => {
  expect(() => zones(input)).toThrow(message);
});
