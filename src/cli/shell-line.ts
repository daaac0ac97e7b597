/** A line of a POSIX shell up to the cursor, as words without quotes. */
export interface ShellLine {
  /** Words that have ended. */
  before: string[];
  /** What stands of the word at the cursor. */
  current: string;
  /**
   * What the shell is to write for `value`, which begins with `current`: quoted as the word is, without what stands
   * before the last of `breaks`, which the shell leaves as it is. Null where it cannot be written.
   */
  finish(value: string, breaks: string): string | null;
}

type Quote = "'" | '"' | null;

/** Knows quotes and backslashes; nothing is expanded. */
export function parseShellLine(line: string): ShellLine {
  const words: string[] = [];
  let word: string | null = null;
  let quote: Quote = null;
  for (let at = 0; at < line.length; at++) {
    const character = line.charAt(at);
    const next = line.charAt(at + 1);
    if (quote === null && /\s/.test(character)) {
      if (word !== null) words.push(word);
      word = null;
    } else if (character === quote) quote = null;
    else if (quote === null && (character === "'" || character === '"')) {
      quote = character;
      word ??= "";
    } else if (character === "\\" && (quote === null || (quote === '"' && /["\\$`]/.test(next)))) {
      word = (word ?? "") + next;
      at++;
    } else word = (word ?? "") + character;
  }
  const current = word ?? "";
  const quoteAtCursor = quote;
  return {
    before: words,
    current,
    finish(value, breaks) {
      if (quoteAtCursor === "'") return value.includes("'") ? null : value;
      // In double quotes an exclamation mark cannot be kept from meaning history.
      if (quoteAtCursor === '"') return value.includes("!") ? null : value.replaceAll(/["\\$`]/g, "\\$&");
      // Blanks and quotes in a word were escaped, or it would have ended there.
      const within = [...breaks].filter((one) => "=:@".includes(one));
      const kept = Math.max(-1, ...within.map((one) => current.lastIndexOf(one))) + 1;
      return value.slice(kept).replaceAll(/[^\p{L}\p{N}_@%+=:,./-]/gu, "\\$&");
    },
  };
}
