/** A POSIX shell line up to the cursor, split into words with the quotes removed. */
export interface ShellLine {
  /** The complete words. */
  before: string[];
  /** The word at the cursor, as far as it is typed. */
  current: string;
  /**
   * What the shell should insert for `value`, which begins with `current`: quoted as the word is, and only the part
   * after the last of `breaks`, because the shell keeps what comes before. Null when it cannot be written.
   */
  finish(value: string, breaks: string): string | null;
}

type Quote = "'" | '"' | null;

/** Understands quotes and backslashes; expands nothing. */
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
      // In double quotes an exclamation mark always means history expansion.
      if (quoteAtCursor === '"') return value.includes("!") ? null : value.replaceAll(/["\\$`]/g, "\\$&");
      // Blanks and quotes within a word were escaped, or the word would have ended there.
      const within = [...breaks].filter((one) => "=:@".includes(one));
      const kept = Math.max(-1, ...within.map((one) => current.lastIndexOf(one))) + 1;
      return value.slice(kept).replaceAll(/[^\p{L}\p{N}_@%+=:,./-]/gu, "\\$&");
    },
  };
}
