/** What is done with the lines of a list. */
import type { Deed } from "./deed.ts";
import { calling, type DeedStep, inFile, isMissing, tooLong, wholeText, writing } from "./file-steps.ts";
import { bare, itemsOf } from "./given-words.ts";
import type { MadeCall } from "./made-call.ts";
import { tell } from "./tell.ts";

export function adding({ file, text }: Extract<Deed, { does: "add" }>, made: readonly MadeCall[]): DeedStep {
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
    { isLoose: true, missing: () => begin(nameOf(file)) },
  );
}

/** The lines of the items go, or are checked off, or the item in one is replaced. */
export function changingLine(
  deed: Extract<Deed, { does: "take" | "replace" | "check" }>,
  made: readonly MadeCall[],
): DeedStep {
  const { file, item } = deed;
  const step = (name: string): DeedStep => {
    const read = made.find((call) => call.name === "read_file");
    if (read === undefined) return calling("read_file", { name });
    if (read.isError) return { text: tell(read, "") };
    const before = wholeText(read);
    if (before === null) return tooLong(name);
    const lines = before.split("\n");
    const parts = itemsOf(item);
    const isOne = deed.does === "replace" || parts.length < 2 || linesWith(item, lines).length > 0;
    const changes: { at: number; line: string; by: string[] }[] = [];
    for (const one of isOne ? [item] : parts) {
      const [at, ...others] = linesWith(one, lines);
      const line = lines[at ?? -1];
      if (at === undefined || line === undefined)
        return { text: `There is nothing about “${one}” in ${tell(read, "")}` };
      if (others.length > 0) return { text: `There is more than one line about “${one}” in ${tell(read, "")}` };
      if (deed.does === "check" && CHECKED.test(line))
        return { text: `“${itemIn(line)}” is checked off already in ${name}.` };
      changes.push({ at, line, by: changed(line, deed) });
    }
    if (made.at(-1)?.name === "write_file") return { text: `I have ${doneTo(deed, changes, name)}.` };
    return writing(name, lines.flatMap((line, at) => changes.find((one) => one.at === at)?.by ?? [line]).join("\n"));
  };
  return inFile(file, made, step, { isOnly: true });
}

type LineChange = Parameters<typeof changingLine>[0];

/** The whole lines are named: “coconut milk” may not be the milk that was meant. */
function doneTo(deed: LineChange, changes: readonly { line: string; by: string[] }[], name: string): string {
  const items = listed(changes.map(({ line }) => `“${itemIn(line)}”`));
  switch (deed.does) {
    case "take":
      return `taken ${items} off ${name}`;
    case "check":
      return `checked off ${items} in ${name}`;
    case "replace":
      return `changed ${items} to ${listed(changes.flatMap(({ by }) => by.map((line) => `“${itemIn(line)}”`)))} in ${name}`;
  }
}

const CHECKED = /^\s*(?:[-*+]|\d+[.)]) \[[xX]\] /;
const UNCHECKED = /^(?<mark>\s*(?:[-*+]|\d+[.)]) )?(?:\[ ?\] )?/;

/** What the line becomes: none, or one. */
function changed(line: string, deed: LineChange): string[] {
  if (deed.does === "take") return [];
  if (deed.does === "check") return [line.replace(UNCHECKED, (_, mark = "- ") => `${mark}[x] `)];
  const mark = MARK.exec(line)?.[0] ?? "";
  return [mark + line.slice(mark.length).replace(patternOf(deed.item), () => deed.by)];
}

/** Of a list, its items go, and its headings stay; of another text, all goes. */
export function clearing(file: string, made: readonly MadeCall[]): DeedStep {
  return inFile(file, made, (name) => {
    const read = made.find((call) => call.name === "read_file");
    if (read === undefined) return calling("read_file", { name });
    if (read.isError) return { text: tell(read, "") };
    if (made.at(-1)?.name === "write_file") return { text: `I have cleared ${name}.` };
    const before = wholeText(read);
    if (before === null) return tooLong(name);
    if (before.trim() === "") return { text: `${name} is empty already.` };
    const kept = isList(before) ? before.split("\n").filter((line) => !MARK.test(line)) : [];
    return writing(name, kept.join("\n").trim());
  });
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

const itemIn = (line: string): string => line.replace(MARK, "").trim();

/** The words of the item, in the singular or the plural, without the article that a person gives it. */
function patternOf(item: string): RegExp {
  const words = item.replace(/^(?:the|an?|some) /i, "").match(/[\p{L}\p{N}]+/gu) ?? [];
  const forms = words.map((word) => {
    const others = [
      word.replace(/(?<=\p{L}{2})s$/iu, ""),
      word.replace(/(?<=\p{L}{2})es$/iu, ""),
      `${word}s`,
      `${word}es`,
    ];
    return `(?:${[word, ...others].map(RegExp.escape).join("|")})`;
  });
  const source = forms.length === 0 ? RegExp.escape(item) : forms.join("[^\\p{L}\\p{N}]+");
  return new RegExp(`(?<![\\p{L}\\p{N}])${source}(?![\\p{L}\\p{N}])`, "iu");
}

/** Where the item stands: as a whole line if there is one, or within lines. Of a list, its headings are none. */
function linesWith(item: string, lines: readonly string[]): number[] {
  const pattern = patternOf(item);
  const hasItems = lines.some((line) => MARK.test(line));
  const placesOf = (fits: (line: string) => boolean) =>
    lines.flatMap((line, at) => (fits(itemIn(line)) && (MARK.test(line) || !hasItems) ? [at] : []));
  const whole = placesOf((line) => line.replace(pattern, "").match(/[\p{L}\p{N}]/u) === null && pattern.test(line));
  return whole.length > 0 ? whole : placesOf((line) => pattern.test(line));
}

/** "My shopping list" is `shopping-list.md`. */
function nameOf(file: string): string {
  const words = file.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return `${words.filter((word) => !/^(?:my|the|our|your)$/.test(word)).join("-") || "list"}.md`;
}
