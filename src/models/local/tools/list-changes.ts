/** What is done with the lines of a list. */
import type { Deed } from "./deeds.ts";
import { calling, type DeedStep, inFile, isMissing, tooLong, wholeText, writing } from "./file-steps.ts";
import { bare, itemsOf } from "./given-words.ts";
import { type MadeCall, tell } from "./tell.ts";

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

/** The item's line goes, or is checked off, or the item in it is replaced. */
export function changingLine(
  deed: Extract<Deed, { does: "take" | "replace" | "check" }>,
  made: readonly MadeCall[],
): DeedStep {
  const { file, item } = deed;
  return inFile(file, made, (name) => {
    const read = made.find((call) => call.name === "read_file");
    if (read === undefined) return calling("read_file", { name });
    if (read.isError) return { text: tell(read, "") };
    if (made.at(-1)?.name === "write_file") return { text: `I have ${doneTo(deed, name)}.` };
    const before = wholeText(read);
    if (before === null) return tooLong(name);
    const lines = before.split("\n");
    const [at, ...others] = linesWith(item, lines);
    const line = lines[at ?? -1];
    if (at === undefined || line === undefined)
      return { text: `There is nothing about “${item}” in ${tell(read, "")}` };
    if (others.length > 0) return { text: `There is more than one line about “${item}” in ${tell(read, "")}` };
    if (deed.does === "check" && CHECKED.test(line)) return { text: `“${item}” is checked off already in ${name}.` };
    return writing(name, lines.toSpliced(at, 1, ...changed(line, deed)).join("\n"));
  });
}

type LineChange = Parameters<typeof changingLine>[0];

function doneTo(deed: LineChange, name: string): string {
  switch (deed.does) {
    case "take":
      return `taken ${deed.item} off ${name}`;
    case "check":
      return `checked off ${deed.item} in ${name}`;
    case "replace":
      return `put ${deed.by} in the place of ${deed.item} in ${name}`;
  }
}

const CHECKED = /^\s*(?:[-*+]|\d+[.)]) \[[xX]\] /;
const UNCHECKED = /^(?<mark>\s*(?:[-*+]|\d+[.)]) )?(?:\[ ?\] )?/;

/** What the line becomes: none, or one. */
function changed(line: string, deed: LineChange): string[] {
  if (deed.does === "take") return [];
  if (deed.does === "check") return [line.replace(UNCHECKED, (_, mark = "- ") => `${mark}[x] `)];
  const start = line.toLowerCase().indexOf(wantedOf(deed.item));
  return [line.slice(0, start) + deed.by + line.slice(start + wantedOf(deed.item).length)];
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
