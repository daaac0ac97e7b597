/**
 * Calculates with calendar dates (Gregorian, years 1 to 9999). Times have no zone here: for those there is zones.js.
 *
 * Input, one of
 *   { "date": "2026-11-22" }                                      what day that is
 *   { "date": "2026-01-31", "add": "P1M" }                        also "-P10D", "P1DT2H", or { "months": 1, "workdays": -5 }
 *   { "from": "2026-01-01", "to": "2026-11-22" }                  how far apart they are
 *   { "week": "2026-W48" }                                        the seven days of an ISO week
 *   { "year": 2026, "month": 11 }                                 the month as a calendar
 * Dates may have a time: "2026-11-22T14:30". Workdays are Monday to Friday; holidays are not known.
 */

const DAY = 86_400;
const MONTHS = "January February March April May June July August September October November December".split(" ");
const WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(" ");
/** Of a duration. */
const MAX_AMOUNT = 10_000_000_000;
const LAST_DAY = dayNumber(9999, 12, 31);
const FIRST_DAY = dayNumber(1, 1, 1);

export default function dates(input) {
  const { date, add, from, to, week, year, month } = input ?? {};
  if (date !== undefined && add !== undefined) return added(parse(date, "date"), add);
  if (date !== undefined) return describe(parse(date, "date"));
  if (from !== undefined && to !== undefined) return between(parse(from, "from"), parse(to, "to"));
  if (week !== undefined) return daysOfWeek(week);
  if (year !== undefined && month !== undefined) return calendar(year, month);
  throw new Error('expected "date", "date" and "add", "from" and "to", "week", or "year" and "month"');
}

// Days since 1970-01-01

const isLeap = (year) => (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
const daysIn = (year, month) => (month === 2 ? (isLeap(year) ? 29 : 28) : [4, 6, 9, 11].includes(month) ? 30 : 31);

function dayNumber(year, month, day) {
  // Years that begin in March, so that the leap day is the last.
  const y = month > 2 ? year : year - 1;
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
  return y * 365 + Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400) + dayOfYear - 719_468;
}

function civil(number) {
  let year = Math.floor((number + 719_468) / 365.2425);
  while (dayNumber(year + 1, 1, 1) <= number) year++;
  while (dayNumber(year, 1, 1) > number) year--;
  let month = 1;
  while (month < 12 && dayNumber(year, month + 1, 1) <= number) month++;
  return { year, month, day: number - dayNumber(year, month, 1) + 1 };
}

/** Monday is 1. */
const weekday = (number) => ((((number + 3) % 7) + 7) % 7) + 1;

// Moments: { days, seconds, hasTime }

function parse(text, field) {
  const match = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d))?)?$/.exec(String(text).trim());
  const wrong = (why) => new Error(`${field}: ${why}, got "${String(text).slice(0, 40)}"`);
  if (!match) throw wrong('expected "2026-11-22" or "2026-11-22T14:30", without a zone');
  const [year, month, day, hours = 0, minutes = 0, seconds = 0] = match.slice(1).map((part) => part && Number(part));
  if (year < 1 || month < 1 || month > 12) throw wrong("there is no such month");
  if (day < 1 || day > daysIn(year, month)) throw wrong(`${MONTHS[month - 1]} ${year} has ${daysIn(year, month)} days`);
  if (hours > 23 || minutes > 59 || seconds > 59) throw wrong("there is no such time");
  const time = hours * 3600 + minutes * 60 + seconds;
  return { days: dayNumber(year, month, day), seconds: time, hasTime: match[4] !== undefined };
}

const pad = (number, width = 2) => String(number).padStart(width, "0");

function formatDay(days) {
  if (days < FIRST_DAY || days > LAST_DAY) throw new Error("the result is not within the years 1 to 9999");
  const { year, month, day } = civil(days);
  return `${pad(year, 4)}-${pad(month)}-${pad(day)}`;
}

function format({ days, seconds, hasTime }) {
  if (!hasTime) return formatDay(days);
  const time = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return `${formatDay(days)}T${time.map((part) => pad(part)).join(":")}`;
}

function isoWeek(days) {
  const thursday = days - weekday(days) + 4;
  const { year } = civil(thursday);
  return `${pad(year, 4)}-W${pad(Math.floor((thursday - dayNumber(year, 1, 1)) / 7) + 1)}`;
}

function describe(moment) {
  const { year, month, day } = civil(moment.days);
  return {
    date: format(moment),
    weekday: WEEKDAYS[weekday(moment.days) - 1],
    month: MONTHS[month - 1],
    isoWeek: isoWeek(moment.days),
    dayOfYear: moment.days - dayNumber(year, 1, 1) + 1,
    daysLeftInYear: dayNumber(year, 12, 31) - moment.days,
    quarter: Math.ceil(month / 3),
    daysInMonth: daysIn(year, month),
    isLastOfMonth: day === daysIn(year, month),
    isLeapYear: isLeap(year),
  };
}

// Durations

const PARTS = ["years", "months", "weeks", "days", "workdays", "hours", "minutes", "seconds"];

function duration(given) {
  if (typeof given === "object" && given !== null) return given;
  const match = /^([+-]?)P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/.exec(
    String(given).trim(),
  );
  if (!match || match.slice(2).every((part) => part === undefined)) {
    throw new Error(
      'add: expected a duration such as "P1M", "-P10D" or "P1DT2H30M", or an object such as { "months": 1 }',
    );
  }
  const names = PARTS.filter((part) => part !== "workdays");
  const sign = match[1] === "-" ? -1 : 1;
  return Object.fromEntries(names.map((name, at) => [name, sign * Number(match[at + 2] ?? 0)]));
}

/** Years and months first, where the 31st becomes the last of a shorter month; then days, then workdays, then the time. */
function added(moment, given) {
  const amount = duration(given);
  for (const [name, value] of Object.entries(amount)) {
    if (!PARTS.includes(name)) throw new Error(`add: there is no "${name}"; there are: ${PARTS.join(", ")}`);
    if (!Number.isInteger(value) || Math.abs(value) > MAX_AMOUNT) throw new Error(`add: expected ${name} to be whole`);
  }
  const { years = 0, months = 0, weeks = 0, days = 0, workdays = 0, hours = 0, minutes = 0, seconds = 0 } = amount;
  const start = civil(moment.days);
  const monthCount = start.year * 12 + start.month - 1 + years * 12 + months;
  const [year, month] = [Math.floor(monthCount / 12), (((monthCount % 12) + 12) % 12) + 1];
  const day = Math.min(start.day, daysIn(year, month));
  const total = moment.seconds + hours * 3600 + minutes * 60 + seconds;
  const beforeWorkdays = dayNumber(year, month, day) + weeks * 7 + days;
  const result = {
    days: plusWorkdays(beforeWorkdays, workdays) + Math.floor(total / DAY),
    seconds: ((total % DAY) + DAY) % DAY,
    hasTime: moment.hasTime || hours !== 0 || minutes !== 0 || seconds !== 0,
  };
  const clamped = day < start.day ? { note: `${MONTHS[month - 1]} ${year} has only ${day} days` } : {};
  return { date: format(result), weekday: WEEKDAYS[weekday(result.days) - 1], ...clamped };
}

/** From a weekend, the first workday counts as one. */
function plusWorkdays(days, count) {
  if (count === 0) return days;
  const step = count > 0 ? 1 : -1;
  // To a workday, from which weeks can be added at once.
  let at = days;
  while (weekday(at) > 5) at -= step;
  at += Math.trunc(count / 5) * 7;
  for (let left = Math.abs(count % 5); left > 0; left--) {
    at += step;
    while (weekday(at) > 5) at += step;
  }
  return at;
}

// Distances

function between(from, to) {
  const total = (to.days - from.days) * DAY + to.seconds - from.seconds;
  const [first, last] = total >= 0 ? [from, to] : [to, from];
  const wholeDays = Math.floor(Math.abs(total) / DAY);
  const result = {
    days: Math.sign(total) * wholeDays,
    calendar: { ...apart(first, last), isNegative: total < 0 },
    weeks: { weeks: Math.floor(wholeDays / 7), days: wholeDays % 7 },
    workdays: workdaysBetween(first.days, last.days),
  };
  if (!from.hasTime && !to.hasTime) return result;
  return { ...result, hours: total / 3600, minutes: total / 60, seconds: total };
}

/** As one says an age: whole years, then months, then days. */
function apart(first, last) {
  const [a, b] = [civil(first.days), civil(last.days)];
  let months = (b.year - a.year) * 12 + b.month - a.month;
  const after = (count) => {
    const total = a.year * 12 + a.month - 1 + count;
    const [year, month] = [Math.floor(total / 12), (total % 12) + 1];
    return dayNumber(year, month, Math.min(a.day, daysIn(year, month))) * DAY + first.seconds;
  };
  const end = last.days * DAY + last.seconds;
  if (after(months) > end) months--;
  return { years: Math.floor(months / 12), months: months % 12, days: Math.floor((end - after(months)) / DAY) };
}

/** Counting the first day and not the last. */
function workdaysBetween(first, last) {
  const weeks = Math.floor((last - first) / 7);
  let count = weeks * 5;
  for (let day = first + weeks * 7; day < last; day++) if (weekday(day) <= 5) count++;
  return count;
}

// Weeks and months

function daysOfWeek(text) {
  const [, year, week] = /^(\d{4})-?W(\d\d)$/i.exec(String(text).trim()) ?? [];
  const january4 = dayNumber(Number(year), 1, 4);
  const monday = january4 - weekday(january4) + 1 + (Number(week) - 1) * 7;
  if (year === undefined || Number(year) < 1 || Number(week) < 1 || isoWeek(monday) !== `${year}-W${week}`) {
    throw new Error(`week: expected one such as "2026-W48", got "${String(text).slice(0, 40)}"`);
  }
  return { week: `${year}-W${week}`, days: WEEKDAYS.map((name, at) => `${formatDay(monday + at)} ${name}`) };
}

function calendar(year, month) {
  if (!Number.isInteger(year) || year < 1 || year > 9999) throw new Error("year: expected 1 to 9999");
  if (!Number.isInteger(month) || month < 1 || month > 12) throw new Error("month: expected 1 to 12");
  const first = dayNumber(year, month, 1);
  const cells = Array.from({ length: daysIn(year, month) }, (_, at) => String(at + 1).padStart(2));
  const lines = ["Mo Tu We Th Fr Sa Su"];
  const row = [...Array(weekday(first) - 1).fill("  "), ...cells];
  for (let at = 0; at < row.length; at += 7) lines.push(row.slice(at, at + 7).join(" "));
  return { month: `${MONTHS[month - 1]} ${year}`, calendar: lines.join("\n"), firstWeek: isoWeek(first) };
}
