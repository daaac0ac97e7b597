import { CLEAR_BELOW, colours, moveTo, oneLine, printable, stream, terminalColumns, terminalRows } from "../output.ts";

/** Shows a message while it is typed, below what the terminal shows already. */
export interface ChatScreen {
  show(text: string, cursor: number): void;
  /** Shows it again where everything has changed: the window's size, or what was on the screen. */
  showAgain(text: string, cursor: number): void;
  /** Shows all of the text, leaves the cursor behind it, and begins anew at the next call. */
  leave(text: string): void;
}

/** What is on the screen: rows of characters, and where the cursor is. */
export interface Frame {
  rows: readonly string[][];
  row: number;
  column: number;
}

const TAB = "    ";
const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const widthOf = (row: readonly string[]): number => Bun.stringWidth(row.join(""));

/** The rows of a prompt and a text, each at most this wide. */
export function layOutTyped(prompt: string, text: string, cursor: number, columns: number): Frame {
  let row = [prompt];
  let column = Bun.stringWidth(prompt);
  const rows = [row];
  const place = { row: 0, column };
  function breakRow(): void {
    row = [];
    rows.push(row);
    column = 0;
  }
  for (const { segment, index } of graphemes.segment(text)) {
    const shown = segment === "\t" ? TAB : oneLine(segment);
    const width = Bun.stringWidth(shown);
    if (segment !== "\n" && column + width > columns && column > 0) breakRow();
    if (index <= cursor) Object.assign(place, { row: rows.length - 1, column });
    if (segment === "\n") breakRow();
    else row.push(shown);
    column += segment === "\n" ? 0 : width;
  }
  if (cursor >= text.length) Object.assign(place, { row: rows.length - 1, column });
  return { rows, ...place };
}

/** As much of a frame, around the cursor, as a window of this height shows. */
function visible({ rows, row, column }: Frame, height: number): Frame {
  const from = Math.max(0, row - height + 1);
  return { rows: rows.slice(from, from + height), row: row - from, column };
}

/** Only what has changed is written: most often, the character typed. */
export function openChatScreen(prompt: string): ChatScreen {
  if (terminalColumns() === null) return openPlainScreen(prompt);
  /** What this has drawn. */
  let frame: Frame = EMPTY;

  const layOut = (text: string, cursor: number): Frame =>
    // The last column stays free: terminals differ in where the cursor goes after a character there.
    layOutTyped(prompt, text, cursor, (terminalColumns() ?? 80) - 1);

  function move(row: number, column: number): void {
    if (row !== frame.row || column !== frame.column) stream(moveTo(row - frame.row, column));
    frame = { ...frame, row, column };
  }

  function draw(next: Frame): void {
    const { rows } = frame;
    const row = next.rows.findIndex((cells, at) => !isSame(cells, rows[at]));
    if (row >= 0 || next.rows.length < rows.length) change(next.rows, row < 0 ? next.rows.length : row);
    move(next.row, next.column);
    frame = next;
  }

  /** Writes rows from this one on, but not what it begins with already. */
  function change(next: readonly string[][], first: number): void {
    const { rows } = frame;
    // Beyond the last row there is nothing to move to.
    const row = Math.min(first, Math.max(0, rows.length - 1), next.length - 1);
    const [cells = [], old = []] = [next[row], rows[row]];
    const differs = cells.findIndex((cell, at) => cell !== old[at]);
    const kept = differs < 0 ? cells.length : differs;
    move(row, widthOf(cells.slice(0, kept)));
    if (kept < old.length || row < rows.length - 1) stream(CLEAR_BELOW);
    const rest = [cells.slice(kept), ...next.slice(row + 1)].map((more) => more.join("")).join("\n");
    if (row === 0 && kept === 0 && cells[0] === prompt) stream(colours.green(prompt), rest.slice(prompt.length));
    else stream(rest);
    frame = { rows: next, row: next.length - 1, column: widthOf(next.at(-1) ?? []) };
  }

  function erase(): void {
    // A narrower window has broken the rows again.
    const columns = terminalColumns() ?? 80;
    const above = frame.rows.slice(0, frame.row).reduce((sum, row) => sum + Math.ceil(widthOf(row) / columns || 1), 0);
    stream(moveTo(-above - Math.floor(frame.column / columns), 0), CLEAR_BELOW);
    frame = EMPTY;
  }

  return {
    show: (text, cursor) => draw(visible(layOut(text, cursor), terminalRows())),
    showAgain(text, cursor) {
      erase();
      draw(visible(layOut(text, cursor), terminalRows()));
    },
    leave(text) {
      const whole = layOut(text, text.length);
      if (whole.rows.length > terminalRows()) erase();
      draw(whole);
      frame = EMPTY;
    },
  };
}

const EMPTY: Frame = { rows: [], row: 0, column: 0 };

const isSame = (cells: readonly string[], others: readonly string[] | undefined): boolean =>
  cells.length === others?.length && cells.every((cell, at) => cell === others[at]);

/** For terminals that know no sequences: what is typed at the end appears, and nothing else. */
function openPlainScreen(prompt: string): ChatScreen {
  let shown: string | null = null;
  function show(text: string): void {
    if (shown === null) stream(prompt);
    if (text.startsWith(shown ?? "")) stream(printable(text.slice(shown?.length)));
    shown = text;
  }
  return {
    show,
    showAgain: show,
    leave(text) {
      show(text);
      shown = null;
    },
  };
}
