import { printable } from "../output.ts";
import type { KeyName } from "./chat-keys.ts";

/** A message while it is typed: its text, and where the next character goes. */
export interface ChatLine {
  readonly text: string;
  readonly cursor: number;
  /** Puts text at the cursor, without control characters: what a terminal shows of it is all there is. */
  insert(text: string): void;
  press(name: KeyName): void;
  /** Returns the text and starts an empty one. */
  take(): string;
}

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });
/** Letters of every script, in halves too. */
const IN_WORD = /[\w\u0080-\uffff]/;

/** `history` is what Up brings, newest first. */
export function createChatLine(history: () => readonly string[]): ChatLine {
  let text = "";
  let cursor = 0;
  /** What was deleted last as a whole. */
  let deleted = "";
  /** Which entry of the history is shown; -1 is `draft`, what was typed before Up. */
  let entry = -1;
  let draft = "";

  const before = (): number => (cursor === 0 ? 0 : (graphemes.segment(text).containing(cursor - 1)?.index ?? 0));
  function after(): number {
    const found = graphemes.segment(text).containing(cursor);
    return found === undefined ? text.length : found.index + found.segment.length;
  }
  const isInWord = (at: number): boolean => IN_WORD.test(text.charAt(at));
  function wordBefore(): number {
    let at = cursor;
    while (at > 0 && !isInWord(at - 1)) at--;
    while (at > 0 && isInWord(at - 1)) at--;
    return at;
  }
  function wordAfter(): number {
    let at = cursor;
    while (at < text.length && !isInWord(at)) at++;
    while (at < text.length && isInWord(at)) at++;
    return at;
  }
  const lineStart = (): number => (cursor === 0 ? 0 : text.lastIndexOf("\n", cursor - 1) + 1);
  function lineEnd(): number {
    const at = text.indexOf("\n", cursor);
    return at < 0 ? text.length : at;
  }

  /** Removes what is between the cursor and `end`, on either side of it. */
  function remove(end: number): string {
    const [from, to] = end < cursor ? [end, cursor] : [cursor, end];
    const removed = text.slice(from, to);
    text = text.slice(0, from) + text.slice(to);
    cursor = from;
    return removed;
  }

  function replace(other: string): void {
    text = other;
    cursor = other.length;
  }

  function recall(step: 1 | -1): void {
    const entries = history();
    const to = entry + step;
    if (to < -1 || to >= entries.length) return;
    if (entry === -1) draft = text;
    entry = to;
    replace(printable(entries[to] ?? draft));
  }

  function insert(given: string): void {
    const added = printable(given.replaceAll(/\r\n?/g, "\n"));
    text = text.slice(0, cursor) + added + text.slice(cursor);
    cursor += added.length;
  }

  /** To the same place of the line above or below; from the first and the last one, to the history. */
  function goUp(): void {
    const start = lineStart();
    if (start === 0) recall(1);
    else cursor = Math.min(start - 1, text.lastIndexOf("\n", start - 2) + 1 + cursor - start);
  }
  function goDown(): void {
    const column = cursor - lineStart();
    const end = lineEnd();
    if (end === text.length) recall(-1);
    else {
      cursor = end + 1;
      cursor = Math.min(lineEnd(), cursor + column);
    }
  }

  const places: Partial<Record<KeyName, () => number>> = {
    left: before,
    right: after,
    home: lineStart,
    end: lineEnd,
    "word left": wordBefore,
    "word right": wordAfter,
  };
  /** To where each of these deletes. */
  const deletions: Partial<Record<KeyName, () => number>> = {
    "delete word before": wordBefore,
    "delete word after": wordAfter,
    "delete all before": () => 0,
    "delete all after": () => text.length,
  };
  const others: Partial<Record<KeyName, () => void>> = {
    "line break": () => insert("\n"),
    up: goUp,
    down: goDown,
    backspace: () => remove(before()),
    delete: () => remove(after()),
    "put back": () => insert(deleted),
  };

  return {
    get text() {
      return text;
    },
    get cursor() {
      return cursor;
    },
    insert,
    press(name) {
      const place = places[name];
      const end = deletions[name];
      if (place !== undefined) cursor = place();
      else if (end !== undefined) deleted = remove(end());
      else others[name]?.();
    },
    take() {
      const taken = text;
      replace("");
      entry = -1;
      return taken;
    },
  };
}
