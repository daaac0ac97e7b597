/** A part of a text that is found as one, with the lines that it takes in its file, counted from 1. */
export interface Passage {
  text: string;
  fromLine: number;
  toLine: number;
}

/** How long a passage becomes, in characters of Latin text: what the embedding model reads of one. */
const LENGTH = 800;
/** A character of these scripts is a word or a syllable, and a token. */
const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/gu;
const WIDE_COUNTS = 3;

const ITEM = /^\s*(?:[-*+]|\d{1,9}[.)])\s/;
const HEADING = /^#{1,6}\s/;

const lengthOf = (text: string): number => text.length + (WIDE_COUNTS - 1) * (text.match(WIDE)?.length ?? 0);

/** Lines of a file: blank lines separate, headings stay with what follows, long lines are cut. */
export function passagesOf(text: string): Passage[] {
  return gather(text, (line, before) => line.trim() === "" || (HEADING.test(line) && !isHeadings(before)), LENGTH);
}

/** Of notes: each item of a list, and each paragraph, is found by itself. */
export function notesOf(text: string): Passage[] {
  return gather(
    text,
    (line, before) => line.trim() === "" || ITEM.test(line) || HEADING.test(line) || isHeadings(before),
    1,
  ).filter(({ text: note }) => !HEADING.test(note) || note.includes("\n"));
}

const isHeadings = (lines: readonly string[]): boolean => lines.every((line) => HEADING.test(line));

/** `ends` says before which line a block ends; blocks are put together up to `least` characters. */
function gather(text: string, ends: (line: string, before: readonly string[]) => boolean, least: number): Passage[] {
  const passages: Passage[] = [];
  let lines: string[] = [];
  let first = 1;
  let length = 0;
  const close = () => {
    const whole = lines.join("\n").trimEnd();
    if (whole.trim() !== "") {
      for (const part of cut(whole))
        passages.push({ text: part, fromLine: first, toLine: first + whole.split("\n").length - 1 });
    }
    lines = [];
    length = 0;
  };
  for (const [at, line] of text.split("\n").entries()) {
    const isFull = length > 0 && length + lengthOf(line) > LENGTH;
    if (lines.length > 0 && (isFull || (length >= least && ends(line, lines)))) close();
    if (lines.length === 0) {
      if (line.trim() === "") continue;
      first = at + 1;
    }
    lines.push(line);
    length += lengthOf(line) + 1;
  }
  close();
  return passages;
}

/** One long line in parts, each cut where a word ends. */
function cut(text: string): string[] {
  if (lengthOf(text) <= 2 * LENGTH) return [text];
  const most = text.match(WIDE) === null ? LENGTH : Math.floor(LENGTH / WIDE_COUNTS);
  const parts: string[] = [];
  for (let rest = text; rest !== ""; ) {
    const space = rest.length <= most ? -1 : rest.lastIndexOf(" ", most);
    const end = rest.length <= most ? rest.length : space > most / 2 ? space : most;
    parts.push(rest.slice(0, end).toWellFormed());
    rest = rest.slice(end).trimStart();
  }
  return parts;
}
