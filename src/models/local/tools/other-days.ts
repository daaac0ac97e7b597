/** Times besides now that a question may be about: "in two weeks", "last Friday". English only. */

const NUMBERS = "a|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve".split("|");
const MANY = `(?<many>\\d{1,4}|an|a couple of|${NUMBERS.join("|")})`;
const UNIT = "(?<unit>minute|hour|day|week|fortnight|month|year)s?";
const DISTANCES = [
  { asked: new RegExp(`\\bin ${MANY} ${UNIT}\\b`, "i"), sign: 1 },
  { asked: new RegExp(`\\b${MANY} ${UNIT} from (?:now|today)\\b`, "i"), sign: 1 },
  { asked: new RegExp(`\\b${MANY} ${UNIT} ago\\b`, "i"), sign: -1 },
];
const DAYS = [
  { asked: /\bday after tomorrow\b/i, days: 2, is: "The day after tomorrow is" },
  { asked: /\btomorrow\b/i, days: 1, is: "Tomorrow is" },
  { asked: /\bday before yesterday\b/i, days: -2, is: "The day before yesterday was" },
  { asked: /\byesterday\b/i, days: -1, is: "Yesterday was" },
];
const WEEKDAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
const WEEKDAY = new RegExp(`\\b(?<which>next|last|this|coming|on) (?<day>${WEEKDAYS.join("|")})\\b`, "i");
const PERIOD = /\b(?:is|was|be)(?: it| that)? (?<which>next|last) (?<period>week|month|year)\W*$/i;
const RELATIVE =
  /\b(?:next|last|previous|coming|ago|from (?:now|today)|until|till|since)\b|\bin (?:[\w-]+ ){1,3}(?:minutes?|hours?|days?|weeks?|fortnights?|months?|years?)\b/i;

const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;

/** Whether the question is about another time than now. */
export const asksForOtherTime = (question: string): boolean =>
  RELATIVE.test(question) || DAYS.some(({ asked }) => asked.test(question));

/**
 * What is told of the time that the question is about; null if it is about now, or about a time that cannot be
 * calculated. `now` is the wall clock's time, as if it were UTC, in ms.
 */
export function otherTime(question: string, now: number): string | null {
  const other = DAYS.find(({ asked }) => asked.test(question));
  if (other) return `${other.is} ${fullDate(now + other.days * DAY_MS)}.`;
  for (const { asked, sign } of DISTANCES) {
    const found = asked.exec(question);
    const { many = "", unit = "" } = found?.groups ?? {};
    if (found === null) continue;
    const at = shifted(now, sign * numberOf(many.toLowerCase()), unit.toLowerCase());
    const lead = found[0].charAt(0).toUpperCase() + found[0].slice(1).toLowerCase();
    const told = /minute|hour/i.test(unit) ? `${clock(at)} on ${fullDate(at)}` : fullDate(at);
    return `${lead} it ${sign > 0 ? "will be" : "was"} ${told}.`;
  }
  return ofWeekday(question, now) ?? ofPeriod(question, now);
}

function numberOf(many: string): number {
  if (many === "an") return 1;
  if (many === "a couple of") return 2;
  return /\d/.test(many) ? Number(many) : Math.max(1, NUMBERS.indexOf(many));
}

function shifted(now: number, many: number, unit: string): number {
  switch (unit) {
    case "minute":
      return now + many * MINUTE_MS;
    case "hour":
      return now + many * 60 * MINUTE_MS;
    case "day":
      return now + many * DAY_MS;
    case "week":
      return now + many * 7 * DAY_MS;
    case "fortnight":
      return now + many * 14 * DAY_MS;
    default:
      return monthsAway(now, unit === "year" ? 12 * many : many);
  }
}

/** On the last day of a month that has no such day. */
function monthsAway(now: number, months: number): number {
  const at = new Date(now);
  const day = at.getUTCDate();
  at.setUTCDate(1);
  at.setUTCMonth(at.getUTCMonth() + months);
  const last = new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 0)).getUTCDate();
  return at.setUTCDate(Math.min(day, last));
}

function ofWeekday(question: string, now: number): string | null {
  const { which = "", day = "" } = WEEKDAY.exec(question)?.groups ?? {};
  if (day === "") return null;
  const ahead = (WEEKDAYS.indexOf(day.toLowerCase()) - new Date(now).getUTCDay() + 7) % 7;
  const name = day.charAt(0).toUpperCase() + day.slice(1).toLowerCase();
  if (/last/i.test(which)) return `Last ${name} was ${date(now + (ahead - 7) * DAY_MS)}.`;
  if (/next|coming/i.test(which)) return `Next ${name} is ${date(now + (ahead || 7) * DAY_MS)}.`;
  return `This ${name} is ${date(now + ahead * DAY_MS)}.`;
}

function ofPeriod(question: string, now: number): string | null {
  const { which = "", period = "" } = PERIOD.exec(question)?.groups ?? {};
  if (period === "") return null;
  const isNext = /next/i.test(which);
  const [lead, is, sign] = isNext ? ["Next", "is", 1] : ["Last", "was", -1];
  if (/year/i.test(period)) return `${lead} year ${is} ${new Date(now).getUTCFullYear() + sign}.`;
  if (/month/i.test(period)) return `${lead} month ${is} ${month(monthsAway(now, sign))}.`;
  const monday = now - ((new Date(now).getUTCDay() + 6) % 7) * DAY_MS;
  return `${lead} week ${isNext ? "begins" : "began"} on ${fullDate(monday + sign * 7 * DAY_MS)}.`;
}

const formatted = (options: Intl.DateTimeFormatOptions) => (at: number) =>
  new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", ...options }).format(at);
/** As the tool writes it: "Sunday, 22 November 2026". */
const fullDate = formatted({ dateStyle: "full" });
const date = formatted({ dateStyle: "long" });
const month = formatted({ month: "long", year: "numeric" });
const clock = formatted({ timeStyle: "short" });
