/** Where wrapped text goes. */
export interface Page {
  write(text: string): void;
  /** Removes the text written last, which starts at this column of its line. */
  takeBack(text: string, column: number): void;
}

/** Stays with the character before it: marks, joiners, skin tones, and closing punctuation, which starts no line. */
const JOINS = /^(?:\p{M}|\p{Pe}|\p{Pf}|\p{Po}|\p{Emoji_Modifier}|\u200D)/u;
/** Keeps the character after it: a joiner, an opening bracket or quote. */
const TAKES = /[\p{Ps}\p{Pi}\u200D]$/u;
const isWide = (text: string): boolean => Bun.stringWidth(text) > 1;

/**
 * Wraps text at words while it arrives in pieces of any length. Characters are written at once; a word that turns out
 * too long for its line is removed and written on the next. Wide characters may break anywhere except before closing
 * punctuation. A word longer than a line is left to the terminal to break, so that a URL can still be copied in one
 * piece. `columns` is called for each character, because windows are resized; `column` is where the first line starts.
 * Where lines are narrower than the terminal, which then breaks nothing for us, the text goes on below such a word.
 */
export function createWordWrap(
  page: Page,
  columns: () => number,
  { column = 0, isNarrower = false } = {},
): (text: string) => void {
  const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });
  /** The current word, the column where it starts, and the last character written. */
  let word = "";
  let start = column;
  let last = "";
  /** Whether the current word is longer than a line. */
  let overlong = false;

  function endWord(): void {
    start += Bun.stringWidth(word);
    word = "";
    overlong = false;
  }

  function space(text: string, width: number): void {
    if (overlong && isNarrower) {
      page.write("\n");
      [word, start, overlong] = ["", 0, false];
      return;
    }
    endWord();
    const next = text === "\t" ? start + 8 - (start % 8) : start + 1;
    // A space at the end of a line is dropped.
    if (next < width) page.write(text);
    start = Math.min(next, width);
  }

  function character(text: string, width: number): void {
    if (overlong) {
      page.write(text);
      start = (start + Bun.stringWidth(text)) % width;
      return;
    }
    if (word !== "" && (isWide(text) || isWide(last)) && !JOINS.test(text) && !TAKES.test(last)) endWord();
    const end = start + Bun.stringWidth(word + text);
    // The last column stays free: terminals differ in where the cursor goes after a character there.
    if (end < width || start === 0) page.write(text);
    else {
      if (word !== "") page.takeBack(word, start);
      page.write(`\n${word}${text}`);
      start = 0;
    }
    word += text;
    last = text;
    overlong = start === 0 && Bun.stringWidth(word) >= width;
    if (overlong) {
      start = Bun.stringWidth(word) % width;
      word = "";
    }
  }

  return (text) => {
    for (const { segment } of graphemes.segment(text)) {
      const width = Math.max(2, columns());
      if (segment.endsWith("\n")) {
        page.write("\n");
        word = "";
        start = 0;
        overlong = false;
      } else if (segment === " " || segment === "\t") space(segment, width);
      else character(segment, width);
    }
  };
}

/** Wraps a whole text into lines of at most `columns`, which are fewer than the terminal's. */
export function wrapText(text: string, columns: number): string[] {
  let page = "";
  const write = createWordWrap(
    {
      write: (piece) => {
        page += piece;
      },
      takeBack: (piece) => {
        page = page.slice(0, -piece.length);
      },
    },
    () => columns,
    { isNarrower: true },
  );
  write(text);
  return page.split("\n").map((line) => line.trimEnd());
}
