/** What a summary keeps word for word, and how a prompt shows it. */
import { partsIn } from "../lib/parts-in.ts";
import { fence } from "../lib/untrusted.ts";
import type { Compaction, Summary } from "./protocol.ts";
import { tokensOf } from "./tokens.ts";

/** How much of the tokens of a prompt a summary must leave at most, or it has failed. */
const MOST_LEFT = 2 / 3;
/** How much of a summary's tokens the words kept exactly may take. */
const ITEMS_SHARE = 0.5;
const MAX_ITEM = 300;
const MAX_NAMES = 500;
const MIN_QUOTE = 8;
const LEFT_OUT = "(Older ones are left out.)";

/** What file names with their folders are looked for in, one by one: it takes the square of its length. */
const PATH = /[\p{L}\p{N}_./-]+/gu;
const FILE = /(?:[\p{L}\p{N}_.-]+\/)*[\p{L}\p{N}_-]{2,}\.\p{L}[\p{L}\p{N}]{0,7}(?![\p{L}\p{N}_])/gu;
/** Other names that later work needs exactly: of pages, and ids of every kind. */
const NAMES = [
  /https?:\/\/[^\s"'<>)\]}]+[^\s"'<>)\]}.,;:!?]/gu,
  // agt_0190f5e2, PROJ-17, #1234, order numbers, hashes, and whatever else mixes letters and digits.
  /(?<![\p{L}\p{N}_])#\d+/gu,
  /(?<![\p{L}\p{N}_-])\p{Lu}{2,10}-\d+/gu,
  /(?<![\p{L}\p{N}_-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/giu,
  /(?<![\p{L}\p{N}_])(?=[\p{L}_]*\p{N})[\p{L}\p{N}_]{6,}(?![\p{L}\p{N}_])/gu,
  /(?<![\p{N}.])\d{5,}(?![\p{N}])/gu,
];
/** None has its own opening mark in it: marks that are never closed would each be followed to the line's end. */
const QUOTED = /"([^"\n]+)"|“([^“”\n]+)”|„([^„“\n]+)“|«([^«»\n]+)»/gu;

/** The names in a text, each once, in their order. */
export function namesIn(text: string): string[] {
  const found = new Map<string, number>();
  const findAll = (form: RegExp, within: string, at = 0) => {
    for (const { 0: name, index } of within.matchAll(form)) if (!found.has(name)) found.set(name, at + index);
  };
  for (const { 0: path, index } of text.matchAll(PATH)) if (path.length <= MAX_ITEM) findAll(FILE, path, index);
  for (const form of NAMES) findAll(form, text);
  const names = [...found]
    .sort(([, one], [, other]) => one - other)
    .map(([name]) => name)
    .slice(-MAX_NAMES);
  // A part of a longer name is not kept beside it: what is in a name without its first or last character is a part.
  const parts = names.flatMap((name) => [name.slice(1), name.slice(0, -1)]).join("\n");
  const kept = names.filter(({ length }) => length <= MAX_ITEM);
  const isPart = partsIn(parts, kept);
  return kept.filter((_, at) => !isPart[at]);
}

/** What the model quotes, as far as it was really said: in one of these texts, whatever the white space. */
function quotesIn(summary: string, said: readonly string[]): string[] {
  const quotes = [...summary.matchAll(QUOTED)]
    .map((quoted) => squeeze(quoted.slice(1).find((one) => one !== undefined) ?? ""))
    .filter(({ length }) => length >= MIN_QUOTE && length <= MAX_ITEM);
  const wasSaid = partsIn(said.map(squeeze).join("\n"), quotes);
  return quotes.filter((_, at) => wasSaid[at]);
}

const squeeze = (text: string): string => text.replace(/\s+/g, " ").trim();

/**
 * What is to be kept word for word once `part` is summarised as `text`: what was kept so far, the names in the part, and
 * what the model quotes of it. If that is too much, the oldest give way, visibly.
 */
export function keptItems(before: readonly string[], part: string, text: string, maxTokens: number): string[] {
  const items = new Set([...before, ...namesIn(part), ...quotesIn(text, [part, ...before])]);
  items.delete(LEFT_OUT);
  const newest: string[] = [];
  let left = Math.floor(maxTokens * ITEMS_SHARE);
  for (const item of [...items].reverse()) {
    left -= tokensOf(item) + 2;
    if (left < 0) return [LEFT_OUT, ...newest.reverse()];
    newest.push(item);
  }
  return before.includes(LEFT_OUT) ? [LEFT_OUT, ...newest.reverse()] : newest.reverse();
}

/** A summary as prompts show it. */
export function summaryText({ text, items, messages, isTainted }: Summary): string {
  const heading = `Summary of ${messages} earlier messages of this conversation, which are not shown:`;
  const isSaid = partsIn(text, items);
  const body = [text, wordForWord(items.filter((_, at) => !isSaid[at]))].filter((part) => part !== "");
  return `${heading}\n${isTainted ? fence(body.join("\n\n")) : body.join("\n\n")}`;
}

export const wordForWord = (items: readonly string[]): string =>
  items.length === 0 ? "" : `Word for word from them:\n${items.map((item) => `- ${item}`).join("\n")}`;

/** The tokens of the conversation's part of the prompt with this summary, or null if it is not shorter by a third. */
export function tokensWith(summary: Summary, { tokensBefore, tokensOfRest }: Compaction): number | null {
  const tokens = tokensOf(summaryText(summary)) + tokensOfRest;
  return tokens <= tokensBefore * MOST_LEFT ? tokens : null;
}
