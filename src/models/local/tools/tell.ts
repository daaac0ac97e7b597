/**
 * What a tool said, in plain words. The model does not retell it: it would change numbers and names. These words are
 * fixed, and everything in them comes from the call and its result.
 */

import { withoutAgentsOwn } from "./details.ts";
import { formulaIn, unitFor } from "./formula.ts";
import { inputOf, type MadeCall } from "./made-call.ts";
import { asksForOtherTime, otherTime } from "./other-days.ts";

/** Names of files that one answer has room for. */
const MAX_NAMES = 40;
/** Characters of a file that one answer shows. */
const MAX_SHOWN = 4_000;

export function tell({ name, input, output, isError }: MadeCall, question: string): string {
  const given = inputOf(input);
  const said = withoutFence(output);
  if (given === null) return isError ? failed(said) : said;
  if (isError) return failed(said, typeof given.name === "string" ? `with ${given.name}` : undefined);
  switch (name) {
    case "now":
      return tellTime(said, given, question) ?? failed(said);
    case "run_javascript":
      return tellResult(said, String(given.code), question) ?? said;
    case "list_files":
      return tellNames(said);
    case "read_file":
      return tellText(said, String(given.name));
    case "write_file":
      return tellWritten(said, given) ?? failed(said);
    case "remember":
      return tellNoted(said) ?? failed(said);
    case "delete_file":
      return `I have deleted ${given.name}.`;
    default:
      return said;
  }
}

export const failed = (why: string, where = ""): string =>
  `That did not work${where === "" ? "" : ` ${where}`}: ${why.replace(/\.?$/, ".")}`;

/** What a stranger may have written comes between two marks (src/lib/untrusted.ts), which are only for models. */
export const withoutFence = (output: string): string =>
  /^\[The text between the two marks ([0-9a-f]{16}) [^\n]*\n<untrusted-\1>\n([\s\S]*)\n<\/untrusted-\1>$/.exec(
    output,
  )?.[2] ?? output;

const ASKS_TIME = /\b(?:time|clock|late|hour|o'clock)\b/i;

/** "Sunday 22 November 2026 at 15:08:19 GMT+9 (2026-11-22T06:08:19.000Z)" */
function tellTime(said: string, { timeZone }: Record<string, unknown>, question: string): string | null {
  const [, day, date, time] = /^(\p{L}+,? (\d+ \p{L}+ \d{4}))(?: at|,)? (\d\d:\d\d):\d\d/u.exec(said) ?? [];
  if (day === undefined || time === undefined) return null;
  const other = otherTime(question, Date.parse(`${date} ${time} UTC`));
  if (other !== null) return other;
  if (asksForOtherTime(question)) return `I only know that today is ${day}.`;
  const city = typeof timeZone === "string" ? timeZone.slice(timeZone.lastIndexOf("/") + 1).replaceAll("_", " ") : null;
  if (city !== null) return `In ${city} it is ${time} on ${day}.`;
  return ASKS_TIME.test(question) ? `It is ${time} UTC on ${day}.` : `Today is ${day}.`;
}

/** Numbers, brackets and the signs between them, in one line without a comment. */
const ARITHMETIC = /^(?!.*\/[/*])[-+*/(). \d]*\d[-+*/(). \d]*$/;

/** "result: 391". Null for what other models run: scripts, of which the result says more than their text. */
function tellResult(said: string, code: string, question: string): string | null {
  const json = /^result: (\S+)$/.exec(said)?.[1];
  const formula = formulaIn(question);
  const isFormula = formula?.code === code;
  if (json === undefined || !(isFormula || ARITHMETIC.test(code))) return null;
  const shown = isFormula
    ? formula.shown
    : code
        .replace(/ ?\*\* ?/g, "^")
        .replaceAll("*", "×")
        .replaceAll("/", "÷")
        .replaceAll(" - ", " − ");
  // JSON has no infinity: something was divided by zero.
  if (json === "null") return code.includes("/") ? `${shown} has no result.` : null;
  const value = Number(json);
  if (Number.isNaN(value)) return null;
  const exact = Number(value.toPrecision(12));
  const short = Number(value.toPrecision(6));
  const unit = isFormula && formula.unit !== "" ? ` ${unitFor(exact, formula.unit)}` : "";
  const isExact = Number(value.toFixed(6)) === exact && Math.abs(value) <= Number.MAX_SAFE_INTEGER;
  return isExact ? `${shown} = ${exact}${unit}` : `${shown} ≈ ${short}${unit}`;
}

/** "notes/oslo.md (57 bytes)", one a line. */
function tellNames(said: string): string {
  const names = [...said.matchAll(/^(.+) \(\d+ bytes\)$/gm)].flatMap(([, name]) => name ?? []);
  return names.length === 0 ? said : toldNames(names, /^\[There are more/m.test(said));
}

function toldNames(names: readonly string[], areMore = false): string {
  const more = names.length > MAX_NAMES || areMore ? "\n- … and more" : "";
  const list = names.slice(0, MAX_NAMES).map((name) => `- ${name}`);
  return `I have these files:\n${list.join("\n")}${more}`;
}

/** The names in the output of `list_files`. */
export const namesIn = (output: string): readonly string[] =>
  [...withoutFence(output).matchAll(/^(.+) \(\d+ bytes\)$/gm)].flatMap(([, name]) => name ?? []);

/** With the files that may be meant: its own only if there are no others. */
export function notKnown(listed: MadeCall): string {
  const others = withoutAgentsOwn(namesIn(listed.output));
  return `I do not know which file you mean. ${others.length > 0 ? toldNames(others) : tell(listed, "")}`;
}

function tellText(said: string, name: string): string {
  const cut =
    said.length > MAX_SHOWN
      ? `${said.slice(0, MAX_SHOWN).toWellFormed()}\n[… ${said.length - MAX_SHOWN} more characters]`
      : said;
  return `${name}:\n\n${cut.trim()}`;
}

/** A longer text is shown below. In UTF-16 code units. */
const IN_LINE = 100;

function tellWritten(said: string, { name, text }: Record<string, unknown>): string | null {
  if (!/^(?:Created|Replaced) /.test(said)) return null;
  const written = String(text).trim();
  if (written === "") return `I have created ${name}. It is empty.`;
  if (written.length <= IN_LINE && !written.includes("\n")) return `I have written “${written}” into ${name}.`;
  return `I have written this into ${name}:\n\n${written}`;
}

/** "Noted in memory/2026-11-22.md." */
function tellNoted(said: string): string | null {
  const file = /^Noted in (\S+)\.$/.exec(said)?.[1];
  return file === undefined ? null : `I will remember that. I have noted it in ${file}.`;
}
