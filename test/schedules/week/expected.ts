import { MINUTE } from "../../lib/hand-clock.ts";

/** What a clock on the wall shows. */
export interface Wall {
  hour: number;
  minute: number;
  /** 0 for Sunday. */
  weekday: number;
}

export type Fits = (wall: Wall) => boolean;

/**
 * When something is due between two moments, found by looking at the wall in each minute: a time that the clocks leave out
 * is due when they have gone forward, and one that they show twice is due at the first.
 */
export function dueTimes(timeZone: string, fits: Fits, fromMs: number, toMs: number): number[] {
  const due: number[] = [];
  const read = wallReader(timeZone);
  let latest = read(fromMs);
  for (let at = fromMs + MINUTE; at <= toMs; at += MINUTE) {
    const shown = read(at);
    let isDue = false;
    for (let minute = latest + MINUTE; minute <= shown; minute += MINUTE) isDue ||= fits(wallOf(minute));
    latest = Math.max(latest, shown);
    if (isDue) due.push(at);
  }
  return due;
}

const wallOf = (shownMs: number): Wall => {
  const date = new Date(shownMs);
  return { hour: date.getUTCHours(), minute: date.getUTCMinutes(), weekday: date.getUTCDay() };
};

/** Reads the parts of a date as people see them, and nothing of how the code under test does it. */
function wallReader(timeZone: string): (ms: number) => number {
  const format = new Intl.DateTimeFormat("en-GB", {
    ...{ timeZone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric" },
    ...{ hour: "numeric", minute: "numeric" },
  });
  return (ms) => {
    const part = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0 } = part;
    return Date.UTC(year, month - 1, day, hour, minute);
  };
}
