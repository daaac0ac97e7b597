import pc from "picocolors";

/**
 * Whether standard output is a terminal that wants colour, and what is drawn there only to be taken back. (Picocolors'
 * own test also colours pipes on CI machines.)
 */
export const mayDraw = (): boolean =>
  process.stdout.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== "dumb";

const pens = pc.createColors(mayDraw());

/** Marks what this file has coloured; nothing that a server sends can carry it. */
const COLOURED: unique symbol = Symbol("coloured");
export interface Coloured {
  readonly [COLOURED]: string;
}

/**
 * What a command says is made of these. A string is anybody's: it loses every control character on its way out, so that
 * nobody else's text moves the cursor, hides or colours anything. Colours are this program's alone.
 */
export type Piece = string | Coloured;

/** Moves the cursor back to a column of its line, counted from 0, and clears what stands from there on. */
export const backTo = (column: number): Coloured => ({ [COLOURED]: `\u001b[${column + 1}G\u001b[K` });

const colour =
  (pen: (text: string) => string) =>
  (text: string): Coloured => ({ [COLOURED]: pen(oneLine(text)) });

/** Text on one line, in a colour of this program's. */
export const colours = {
  bold: colour(pens.bold),
  dim: colour(pens.dim),
  cyan: colour(pens.cyan),
  green: colour(pens.green),
  red: colour(pens.red),
  yellow: colour(pens.yellow),
};

/** C0 but tab and new line, DEL, C1, line separators, and what turns the direction of text. */
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** Text of others, safe on a terminal: no control character but new line and tab, so nothing can move or hide. */
export const printable = (text: string): string => String(text).replaceAll(UNSEEN, "");

/** Text of others on one line. */
export const oneLine = (text: string): string => printable(text).replaceAll(/[\n\t]+/g, " ");

function show(pieces: readonly Piece[], clean: (text: string) => string): string {
  // A server may send an object where text is expected.
  const shown = (piece: Piece) => (typeof piece === "object" && COLOURED in piece ? piece[COLOURED] : clean(piece));
  return pieces.map(shown).join("");
}

/** One line for a prompt of readline. */
export const promptOf = (...pieces: Piece[]): string => show(pieces, oneLine);

/** One line on standard output. */
export const say = (...pieces: Piece[]): void => console.log(show(pieces, oneLine));

/** Text of several lines on standard output. */
export const sayText = (text: string): void => console.log(printable(text));

/** As it comes, on standard output, without a line's end. (Unlike console.log it tells that `| head` has gone.) */
export const stream = (...pieces: Piece[]): void => void process.stdout.write(show(pieces, printable));

/** One line for whoever watches, not for what reads the output: standard error. */
export const note = (...pieces: Piece[]): void => console.error(show(pieces, oneLine));

/** A question on standard error, whose answer stands behind it. */
export const askFor = (question: string): void => void process.stderr.write(oneLine(question));

export const printJson = (value: unknown): void => console.log(safeJson(value, 2));

/** One record of many, on one line, as it comes. */
export const streamJson = (value: unknown): void => void process.stdout.write(`${safeJson(value)}\n`);

/** JSON leaves only C0 escaped; what else a terminal would obey is written as JSON may write any character. */
const safeJson = (value: unknown, indent?: number): string =>
  (JSON.stringify(value, null, indent) ?? "null").replaceAll(
    /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

/** How wide lines may be: the terminal's columns, null where output is no terminal that tells them. */
export const terminalColumns = (): number | null =>
  process.stdout.isTTY === true && process.env.TERM !== "dumb" ? process.stdout.columns || 80 : null;

/** What a table gives up on a terminal that is narrower, by heads: columns first, then ends of cells. */
export interface Narrowing {
  /** Left out, the first of them first, until the rest fits. */
  leaveOut?: readonly string[];
  /** Shortened with an ellipsis, the widest of them first. */
  shorten?: readonly string[];
}

/** Columns under their heads, aligned by what is seen; `empty` stands for no rows at all. */
export function printTable(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
  empty: string,
  narrowing: Narrowing = {},
): void {
  if (rows.length === 0) {
    say(colours.dim(empty));
    return;
  }
  const lines = layOut(heads, rows, terminalColumns() ?? Number.POSITIVE_INFINITY, narrowing);
  for (const [at, line] of lines.entries()) say(at === 0 ? colours.bold(line) : line);
}

const GAP = 2;
/** A cell is not made shorter than this. */
const LEAST = 6;

/** The lines of a table, its heads first, of at most `columns` as far as `narrowing` allows. */
export function layOut(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
  columns: number,
  { leaveOut = [], shorten = [] }: Narrowing = {},
): string[] {
  let table = heads.map((head, at) => {
    const cells = [head, ...rows.map((row) => oneLine(row[at] ?? "").replaceAll(/\s+/g, " "))];
    return { head, cells, width: Math.max(...cells.map((cell) => Bun.stringWidth(cell))) };
  });
  const excess = () => table.reduce((sum, { width }) => sum + width + GAP, -GAP) - columns;
  for (const head of leaveOut) if (excess() > 0) table = table.filter((column) => column.head !== head);
  for (let over = excess(); over > 0; over = excess()) {
    const [widest, next] = table
      .filter(({ head, width }) => shorten.includes(head) && width > Math.max(LEAST, head.length))
      .sort((one, other) => other.width - one.width);
    if (widest === undefined) break;
    const least = Math.max(LEAST, widest.head.length, Math.min(next?.width ?? 0, widest.width - 1));
    widest.width = Math.max(least, widest.width - over);
  }
  return [...rows.keys(), rows.length].map((at) =>
    table
      .map(({ cells, width }) => padded(shortened(cells[at] ?? "", width), width))
      .join(" ".repeat(GAP))
      .trimEnd(),
  );
}

const padded = (text: string, width: number): string => text + " ".repeat(Math.max(0, width - Bun.stringWidth(text)));

/** At most `width` columns of the text, the last of them an ellipsis where something is missing. */
export function shortened(text: string, width: number): string {
  if (Bun.stringWidth(text) <= width) return text;
  let kept = "";
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (Bun.stringWidth(kept + segment) >= width) break;
    kept += segment;
  }
  return `${kept.trimEnd()}…`;
}

/** Names and values, one a line. */
export function printFields(fields: readonly (readonly [name: string, value: string])[]): void {
  const width = Math.max(...fields.map(([name]) => name.length));
  for (const [name, value] of fields) say(colours.dim(name.padEnd(width)), `  ${value}`);
}

export { cents, shortMoney } from "../lib/money.ts";

/** `2026-11-21 10:00Z`, of milliseconds or the API's form; a dash for null. */
export const shortTime = (time: number | string | null): string =>
  time === null ? "-" : `${new Date(time).toISOString().slice(0, 16).replace("T", " ")}Z`;
