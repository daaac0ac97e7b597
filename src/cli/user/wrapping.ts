/** Where wrapped text goes. */
export interface Page {
  write(text: string): void;
  /** Takes back what was written last, which begins at this column of its line. */
  takeBack(text: string, column: number): void;
}

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** What joins the character before it: marks, joiners, skin tones, and closing punctuation, which begins no line. */
const JOINS = /^(?:\p{M}|\p{Pe}|\p{Pf}|\p{Po}|\p{Emoji_Modifier}|\u200D)/u;
/** What the character behind it joins: a joiner, an opening bracket or quote. */
const TAKES = /[\p{Ps}\p{Pi}\u200D]$/u;
const isWide = (text: string): boolean => Bun.stringWidth(text) > 1;

/**
 * Breaks text at words while it comes, in pieces of any length: what is written is seen at once, and a word that turns
 * out too long for its line is taken back and goes on the next. Wide characters may part anywhere but before closing
 * punctuation. A word longer than a line is left to the terminal, so that an address stays whole when it is copied.
 * `columns` is asked at each character, for windows change; `column` is where the first line begins.
 */
export function createWrapping(page: Page, columns: () => number, column = 0): (text: string) => void {
  /** What may not be parted from what comes, the column where it begins, and its last character. */
  let word = "";
  let start = column;
  let last = "";
  /** In a word that is longer than a line. */
  let overlong = false;

  function endWord(): void {
    start += Bun.stringWidth(word);
    word = "";
    overlong = false;
  }

  function space(text: string, width: number): void {
    endWord();
    const next = text === "\t" ? start + 8 - (start % 8) : start + 1;
    // A space at a line's end is the line's end.
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
    // The last column stays free: a terminal's cursor does not say on which side of it it stands.
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

/** A whole text in lines of at most `columns`. */
export function wrapped(text: string, columns: number): string[] {
  let page = "";
  const write = createWrapping(
    {
      write: (piece) => {
        page += piece;
      },
      takeBack: (piece) => {
        page = page.slice(0, -piece.length);
      },
    },
    () => columns,
  );
  write(text);
  return page.split("\n").map((line) => line.trimEnd());
}
