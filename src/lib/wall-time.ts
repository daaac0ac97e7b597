import { DAY_MS } from "./calendar.ts";

/**
 * Times as clocks on walls show them: milliseconds as if the zone were UTC. Where summer time begins, an hour of them
 * does not exist; where it ends, an hour comes twice.
 */

const formats = new Map<string, Intl.DateTimeFormat>();
/** There are fewer names of zones, but several spellings of each. */
const MAX_FORMATS = 1_000;

/** Whether the machine knows this time zone, such as `Europe/Berlin`. */
export function isTimeZone(name: string): boolean {
  try {
    formatOf(name);
    return true;
  } catch {
    return false;
  }
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone);
  if (known) return known;
  const made = new Intl.DateTimeFormat("en-US", { timeZone, timeZoneName: "longOffset" });
  if (formats.size >= MAX_FORMATS) formats.clear();
  formats.set(timeZone, made);
  return made;
}

/** How far the zone is ahead of UTC at a moment, in milliseconds. */
function offsetAt(timeZone: string, ms: number): number {
  const name = formatOf(timeZone)
    .formatToParts(ms)
    .find(({ type }) => type === "timeZoneName")?.value;
  const [, sign, hours, minutes, seconds = 0] = /^GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(name ?? "") ?? [];
  if (sign === undefined) return 0;
  return (sign === "-" ? -1 : 1) * ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000;
}

/** What a clock on the wall shows at a moment. */
export const wallTimeAt = (timeZone: string, ms: number): number => ms + offsetAt(timeZone, ms);

/** When a clock on the wall first shows this: a time that is skipped is when the clocks have gone forward. */
export function momentOf(timeZone: string, wallMs: number): number {
  const before = offsetAt(timeZone, wallMs - DAY_MS);
  const after = offsetAt(timeZone, wallMs + DAY_MS);
  const early = wallMs - before;
  if (before === after || offsetAt(timeZone, early) === before) return early;
  const late = wallMs - after;
  if (offsetAt(timeZone, late) === after) return late;
  // The clocks go forward between the two: find the first moment of the new time.
  let [old, renewed] = [late, early];
  while (renewed - old > 1) {
    const middle = Math.floor((old + renewed) / 2);
    if (offsetAt(timeZone, middle) === before) old = middle;
    else renewed = middle;
  }
  return renewed;
}
