/** The calls that do what a person has asked for (deeds.ts), one after the other, and what is said of them in the end. */
import { SAYS, sharesWords } from "../../../lib/recall.ts";
import type { Call } from "./calls.ts";
import { bare, type Deed, itemsOf, NAME } from "./deeds.ts";
import { filesMentioned } from "./details.ts";
import type { ToolName } from "./offered.ts";
import { failed, type MadeCall, namesIn, tell, withoutFence } from "./tell.ts";
import type { ToolUse } from "./tool-use.ts";

/** The model answers the request, and the answer is written into the file. */
export interface Composing {
  request: string;
  callWith(text: string): Call;
}

export type DeedStep = { call: Call } | { text: string } | { compose: Composing };

const HOW =
  "I can write, extend and delete files if you say which and give me the words, such as: " +
  "“Write ‘Buy milk’ into notes.md”, “Add eggs to my shopping list” or “Delete notes.md”.";

const HOW_TO_FORGET = "I cannot take back what I have noted: remove it from my files, in the folder memory.";

const IS_NAME = new RegExp(`^${NAME}$`, "i");

export function nextOfDeed(deed: Deed, use: ToolUse): DeedStep {
  const step = stepOf(deed, use);
  const name = "call" in step ? step.call.name : "compose" in step ? "write_file" : null;
  return name === null || use.offered.includes(name)
    ? step
    : { text: `I cannot do that: I am not allowed to use ${name}.` };
}

function stepOf(deed: Deed, { question, made }: ToolUse): DeedStep {
  const last = made.at(-1);
  switch (deed.does) {
    case "remember":
      return last ? { text: tell(last, question) } : calling("remember", { text: attributed(deed.text) });
    case "write":
      return last ? { text: toldWritten(last, question) } : writing(deed.name, deed.text);
    case "compose":
      return last
        ? { text: toldWritten(last, question) }
        : { compose: { request: deed.request, callWith: (text) => callOf(deed.name, text.trim()) } };
    case "delete":
      return last?.name === "delete_file"
        ? { text: tell(last, question) }
        : inFile(deed.file, made, (name) => calling("delete_file", { name }));
    case "read":
      return last?.name === "read_file"
        ? { text: tell(last, question) }
        : inFile(deed.file, made, (name) => calling("read_file", { name }));
    case "list":
      return last
        ? { text: tell(last, question) }
        : calling("list_files", deed.folder === null ? {} : { folder: deed.folder });
    case "recall":
      return deed.about === null ? lastNotes(made) : recalling(deed.about, made, question);
    case "add":
      return last && isRefused(last) ? { text: toldChanged(last) } : adding(deed, made);
    case "take":
    case "replace":
      return last && isRefused(last) ? { text: toldChanged(last) } : changingLine(deed, made);
    case "forget":
      return { text: HOW_TO_FORGET };
    case "unknown":
      return { text: HOW };
  }
}

const callOf = (name: string, text: string): Call => ({
  name: "write_file",
  input: { name, text: text === "" || text.endsWith("\n") ? text : `${text}\n` },
});
const calling = (name: ToolName, input: Record<string, unknown>): DeedStep => ({ call: { name, input } });
const writing = (name: string, text: string): DeedStep => ({ call: callOf(name, text) });

const attributed = (text: string): string => (/\b(?:i|my|me|we|our|us)\b/i.test(text) ? SAYS + text : text);

/** Without having read it as it is now, a run does not replace a file. */
const UNREAD = /^(?<name>\S+) is not as you read it last/;

function toldWritten(last: MadeCall, question: string): string {
  const name = last.isError ? UNREAD.exec(last.output)?.groups?.name : undefined;
  return name === undefined
    ? tell(last, question)
    : `There is a file ${name} already. Ask me to add to it, or to delete it first.`;
}

const isRefused = ({ name, isError }: MadeCall): boolean => name === "write_file" && isError;

function toldChanged(last: MadeCall): string {
  const name = UNREAD.exec(last.output)?.groups?.name;
  return name === undefined ? tell(last, "") : `${name} was changed just now. Ask me again.`;
}

/** With the file's name; the files are listed first where the person calls it something else. */
function inFile(
  file: string,
  made: readonly MadeCall[],
  step: (name: string) => DeedStep,
  missing?: () => DeedStep,
): DeedStep {
  if (IS_NAME.test(file)) return step(file);
  const listed = made.find(({ name }) => name === "list_files");
  if (listed === undefined) return calling("list_files", {});
  const [name, ...others] = filesMentioned(file, namesIn(listed.output));
  if (name !== undefined && others.length === 0) return step(name);
  if (name !== undefined) return { text: `Which one do you mean: ${[name, ...others].join(", ")}?` };
  return missing?.() ?? { text: `I do not know which file you mean. ${tell(listed, "")}` };
}

/** The notes of the last day that has any. */
function lastNotes(made: readonly MadeCall[]): DeedStep {
  const [list, read] = made;
  if (list === undefined) return calling("list_files", { folder: "memory" });
  if (list.isError) return { text: tell(list, "") };
  const last = namesIn(list.output)
    .filter((name) => /^memory\/[\d-]+\.md$/.test(name))
    .sort()
    .at(-1);
  if (last === undefined) return { text: "I have noted nothing yet. Say “Remember that …”, and I will." };
  return read === undefined ? calling("read_file", { name: last }) : { text: toldNotes(read) };
}

function toldNotes(read: MadeCall): string {
  if (read.isError) return tell(read, "");
  const notes = withoutFence(read.output).replace(/^# .*\n+/, "");
  return tell({ ...read, output: toldBack(notes) }, "").replace(/^/, "These are my last notes, in ");
}

/** To the user, who is "the user" in the notes. */
const toldBack = (notes: string): string => notes.replaceAll(SAYS, "you said: ");

const MOST_FOUND = 3;
/** "memory/2026-11-22.md, line 3, 2026-11-22:" */
const PLACE = /^(?<where>[^\n]+), \d{4}-\d\d-\d\d:\n(?<text>[\s\S]*)$/;

function recalling(about: string, made: readonly MadeCall[], question: string): DeedStep {
  const [found] = made;
  if (found === undefined) return calling("search_memory", { query: about });
  if (found.isError) return { text: tell(found, question) };
  const told = withoutFence(found.output)
    .split(/\n\n(?=[^\n]+, \d{4}-\d\d-\d\d:\n)/)
    .flatMap((block) => {
      const { where = "", text = "" } = PLACE.exec(block)?.groups ?? {};
      const said = text.replace(/^[-*] /, "").trim();
      // What it has said itself, or was asked, it was not told.
      const isTold = where !== "You said in a conversation" && said !== question && !said.endsWith("?");
      return isTold && sharesWords(said, about) ? [{ where, said, bare: said.replace(SAYS, "") }] : [];
    });
  // What was noted was said before.
  const once = told.filter(
    ({ bare }, at) => !told.slice(0, at).some((other) => bare.includes(other.bare) || other.bare.includes(bare)),
  );
  if (once.length === 0) return { text: `I have found nothing about ${aboutThem(about)} in my memory.` };
  const lines = once
    .slice(0, MOST_FOUND)
    .map(({ where, said }) => `- ${toldBack(said)} (${where.replace(/^Said in/, "you said that in")})`);
  return { text: `I have found this:\n${lines.join("\n")}` };
}

const aboutThem = (about: string): string => about.replace(/\bmy\b/gi, "your").replace(/\bour\b/gi, "your");

function adding({ file, text }: Extract<Deed, { does: "add" }>, made: readonly MadeCall[]): DeedStep {
  const isWritten = made.at(-1)?.name === "write_file";
  const begin = (name: string): DeedStep =>
    isWritten ? { text: `I have begun ${name} with ${listed(itemsOf(text))}.` } : writing(name, withMore("", text));
  return inFile(
    file,
    made,
    (name) => {
      const read = made.find((call) => call.name === "read_file");
      if (read === undefined) return calling("read_file", { name });
      if (read.isError) return isMissing(read) ? begin(name) : { text: tell(read, "") };
      const before = wholeText(read);
      if (before === null) return tooLong(name);
      if (!isWritten) return writing(name, withMore(before, text));
      return { text: `I have added ${listed(isList(before) ? itemsOf(text) : [bare(text)])} to ${name}.` };
    },
    () => begin(nameOf(file)),
  );
}

/** The item's line goes, or the item in it is replaced. */
function changingLine(deed: Extract<Deed, { does: "take" | "replace" }>, made: readonly MadeCall[]): DeedStep {
  const { file, item } = deed;
  return inFile(file, made, (name) => {
    const read = made.find((call) => call.name === "read_file");
    if (read === undefined) return calling("read_file", { name });
    if (read.isError) return { text: tell(read, "") };
    if (made.at(-1)?.name === "write_file") {
      const done =
        deed.does === "take" ? `taken ${item} off ${name}` : `put ${deed.by} in the place of ${item} in ${name}`;
      return { text: `I have ${done}.` };
    }
    const before = wholeText(read);
    if (before === null) return tooLong(name);
    const lines = before.split("\n");
    const [at, ...others] = linesWith(item, lines);
    const line = lines[at ?? -1];
    if (at === undefined || line === undefined)
      return { text: `There is nothing about “${item}” in ${tell(read, "")}` };
    if (others.length > 0) return { text: `There is more than one line about “${item}” in ${tell(read, "")}` };
    const start = line.toLowerCase().indexOf(wantedOf(item));
    const after =
      deed.does === "take" ? [] : [line.slice(0, start) + deed.by + line.slice(start + wantedOf(item).length)];
    return writing(name, lines.toSpliced(at, 1, ...after).join("\n"));
  });
}

const isMissing = ({ output }: MadeCall): boolean => /not found|no file|does not exist/i.test(output);
const tooLong = (name: string): DeedStep => ({ text: failed("it is too long for me to change", `with ${name}`) });

/** Null if only some of its lines were shown. */
function wholeText({ output }: MadeCall): string | null {
  const text = withoutFence(output);
  if (/^\[\S+ is empty\.\]$/.test(text)) return "";
  return /\n\[Lines? \d+ [^\n]*\]$/.test(text) ? null : text;
}

/** "- ", "* [ ] ", "3. " */
const MARK = /^\s*(?:[-*+] (?:\[[ xX]\] )?|(?<number>\d+)[.)] )/;
const markOf = (text: string): string => MARK.exec(text.trimEnd().split("\n").at(-1) ?? "")?.[0] ?? "";
/** What is empty may become one. */
const isList = (text: string): boolean => text.trim() === "" || markOf(text) !== "";

/** The items go below those that there are, in the form of the last one. */
function withMore(before: string, said: string): string {
  const above = before.trimEnd();
  if (!isList(above)) return `${above}\n${bare(said)}\n`;
  const mark = (markOf(above) || "- ").replace(/\[x\]/i, "[ ]");
  const lines = itemsOf(said).map(
    (item, at) => mark.replace(/\d+/, (number) => String(Number(number) + 1 + at)) + item,
  );
  return `${[above, ...lines].filter((line) => line !== "").join("\n")}\n`;
}

const LIST = new Intl.ListFormat("en");
const listed = (items: readonly string[]): string => LIST.format(items);

/** Without the article that a person gives it. */
const wantedOf = (item: string): string => item.toLowerCase().replace(/^(?:the|an?) /, "");

/** Where the item stands: as a whole line if there is one, or within lines. */
function linesWith(item: string, lines: readonly string[]): number[] {
  const wanted = wantedOf(item);
  const bareLines = lines.map((line) => line.replace(MARK, "").trim().toLowerCase());
  const placesOf = (fits: (line: string) => boolean) => bareLines.flatMap((line, at) => (fits(line) ? [at] : []));
  const whole = placesOf((line) => line === wanted);
  return whole.length > 0 ? whole : placesOf((line) => line.includes(wanted));
}

/** "My shopping list" is `shopping-list.md`. */
function nameOf(file: string): string {
  const words = file.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return `${words.filter((word) => !/^(?:my|the|our|your)$/.test(word)).join("-") || "list"}.md`;
}
