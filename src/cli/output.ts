import { writeSync } from "node:fs";
import pc from "picocolors";
import { describeSystemError, hasCode } from "../lib/system-error.ts";
import { visibleJson } from "../lib/visible-text.ts";
import { wrapText } from "./word-wrap.ts";

/**
 * Whether standard output is a terminal that takes colour and text that is overwritten later. (Picocolors' own check
 * also colours pipes on CI machines.)
 */
export const mayDraw = (): boolean => takesColour(process.stdout);

const takesColour = ({ isTTY }: NodeJS.WriteStream): boolean =>
  isTTY === true && !process.env.NO_COLOR && process.env.TERM !== "dumb";

const pens = pc.createColors(mayDraw());
const failurePens = pc.createColors(takesColour(process.stderr));

/** Marks text that this file has coloured. Nothing that a server sends can carry it. */
const COLOURED: unique symbol = Symbol("coloured");
export interface Coloured {
  readonly [COLOURED]: string;
}

/**
 * A part of a command's output. A plain string may come from anybody, so its control characters are removed: nobody
 * else's text can move the cursor, hide or colour anything. Only this program colours its output.
 */
export type Piece = string | Coloured;

/** Moves the cursor back to a column of its line, counted from 0, and clears the line from there. */
export const backTo = (column: number): Coloured => ({ [COLOURED]: `\u001b[${column + 1}G\u001b[K` });

/** Moves the cursor down these rows, or up if negative, and to a column counted from 0. */
export const moveTo = (rows: number, column: number): Coloured => ({
  [COLOURED]: `${rows === 0 ? "" : `\u001b[${Math.abs(rows)}${rows < 0 ? "A" : "B"}`}\u001b[${column + 1}G`,
});

/** Clears what is right of the cursor and below it. */
export const CLEAR_BELOW: Coloured = { [COLOURED]: "\u001b[J" };

/** Clears all that is shown, and moves the cursor to its beginning. */
export const CLEAR_SCREEN: Coloured = { [COLOURED]: "\u001b[H\u001b[2J" };

/** Asks the terminal to mark what is pasted (bracketed paste), or no longer. */
export const markPastes = (on: boolean): Coloured => ({ [COLOURED]: `\u001b[?2004${on ? "h" : "l"}` });

const colour =
  (pen: (text: string) => string) =>
  (text: string): Coloured => ({ [COLOURED]: pen(oneLine(text)) });

/** Text on one line, in colour. */
export const colours = {
  bold: colour(pens.bold),
  dim: colour(pens.dim),
  cyan: colour(pens.cyan),
  green: colour(pens.green),
  red: colour(pens.red),
  yellow: colour(pens.yellow),
};

/** C0 except tab and newline, DEL, C1, line separators, and bidirectional controls. */
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** Untrusted text made safe for a terminal: no control characters except newline and tab. */
export const printable = (text: string): string => String(text).replaceAll(UNSEEN, "");

/** Untrusted text made safe for a terminal, on one line. */
export const oneLine = (text: string): string => printable(text).replaceAll(/[\n\t]+/g, " ");

function show(pieces: readonly Piece[], clean: (text: string) => string): string {
  // A server may send an object where text is expected.
  const shown = (piece: Piece) => (typeof piece === "object" && COLOURED in piece ? piece[COLOURED] : clean(piece));
  return pieces.map(shown).join("");
}

/** One line without its newline, to be shown in another way. */
export const lineOf = (...pieces: Piece[]): string => show(pieces, oneLine);

/** Between two tries to write to a pipe whose reader is slow. */
const RETRY_MS = 5;

const OUTPUT = 1;
const ERRORS = 2;

/**
 * Writes all of it before it returns. (console.log hides failures, console.error paints all of it red on a terminal, and
 * process.exit cuts what process.stdout has not written.) Ends the program when `| head` has gone; throws if standard
 * output cannot be written.
 */
function write(output: string | Uint8Array, to: typeof OUTPUT | typeof ERRORS = OUTPUT): void {
  const bytes = Buffer.from(output);
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(to, bytes, at);
    } catch (error) {
      if (hasCode(error, "EAGAIN")) Bun.sleepSync(RETRY_MS);
      // The command goes on where nobody reads what is said beside its output.
      else if (to === ERRORS) return;
      else if (hasCode(error, "EPIPE")) process.exit(0);
      else throw describeSystemError("standard output cannot be written", error);
    }
  }
}

/** One line on standard output. */
export const say = (...pieces: Piece[]): void => write(`${show(pieces, oneLine)}\n`);

/** Text of several lines on standard output. */
export const sayText = (text: string): void => write(`${printable(text)}\n`);

/** Text on standard output without a newline. */
export const stream = (...pieces: Piece[]): void => write(show(pieces, printable));

/** Bytes for another program, on standard output. Nobody's terminal should show them. */
export const streamBytes = (bytes: Uint8Array): void => write(bytes);

/** One line on standard error: for people, not for a program that reads the output. */
export const note = (...pieces: Piece[]): void => write(`${show(pieces, oneLine)}\n`, ERRORS);

/** What has failed, on standard error: on one line, which a terminal's width wraps at words. */
export function noteFailure(line: string): void {
  const { isTTY, columns } = process.stderr;
  const isWrapped = isTTY === true && process.env.TERM !== "dumb";
  const lines = isWrapped ? wrapText(oneLine(line), columns || 80) : [oneLine(line)];
  for (const one of lines) write(`${failurePens.red(one)}\n`, ERRORS);
}

/** A question on standard error; the answer is typed on the same line. */
export const askFor = (question: string): void => void process.stderr.write(oneLine(question));

export const printJson = (value: unknown): void => write(`${visibleJson(value, 2)}\n`);

/** JSON on standard error, for a person who is asked about it while standard output is for a program. */
export function noteJson(value: unknown): void {
  for (const line of visibleJson(value, 2).split("\n")) note(line);
}

/** One record on one line. */
export const streamJson = (value: unknown): void => write(`${visibleJson(value)}\n`);

/** The terminal's width in columns; null when output is not a terminal that reports it. */
export const terminalColumns = (): number | null =>
  process.stdout.isTTY === true && process.env.TERM !== "dumb" ? process.stdout.columns || 80 : null;

/** The terminal's height in rows. */
export const terminalRows = (): number => process.stdout.rows || 24;

/** Calls this whenever the terminal's size changes, until what is returned is called. */
export function watchSize(changed: () => void): () => void {
  process.stdout.on("resize", changed);
  return () => void process.stdout.off("resize", changed);
}

/** What a table gives up when the terminal is too narrow, by column heading. */
export interface Narrowing {
  /** Columns left out one by one, in this order, until the rest fits. */
  leaveOut?: readonly string[];
  /** Columns then shortened with an ellipsis, the widest first. */
  shorten?: readonly string[];
}

/** Prints columns under their headings, aligned by visible width; prints `empty` when there are no rows. */
export function printTable(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
  empty: string,
  narrowing: Narrowing,
): void {
  if (rows.length === 0) {
    say(colours.dim(empty));
    return;
  }
  const lines = layOut(heads, rows, terminalColumns() ?? Number.POSITIVE_INFINITY, narrowing);
  for (const [at, line] of lines.entries()) say(at === 0 ? colours.bold(line) : line);
}

const GAP = 2;
/** Cells are not shortened below this. */
const MIN_CELL_WIDTH = 6;

/** The lines of a table, headings first, at most `columns` wide as far as `narrowing` allows. */
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
      .filter(({ head, width }) => shorten.includes(head) && width > Math.max(MIN_CELL_WIDTH, head.length))
      .sort((one, other) => other.width - one.width);
    if (widest === undefined) break;
    const min = Math.max(MIN_CELL_WIDTH, widest.head.length, Math.min(next?.width ?? 0, widest.width - 1));
    widest.width = Math.max(min, widest.width - over);
  }
  return [...rows.keys(), rows.length].map((at) =>
    table
      .map(({ cells, width }) => padded(shortened(cells[at] ?? "", width), width))
      .join(" ".repeat(GAP))
      .trimEnd(),
  );
}

const padded = (text: string, width: number): string => text + " ".repeat(Math.max(0, width - Bun.stringWidth(text)));

/** The text cut to at most `width` columns; a cut text ends in an ellipsis. */
export function shortened(text: string, width: number): string {
  if (Bun.stringWidth(text) <= width) return text;
  let kept = "";
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (Bun.stringWidth(kept + segment) >= width) break;
    kept += segment;
  }
  return `${kept.trimEnd()}…`;
}

/** Prints names and values, one pair per line; a value too long for the terminal goes on below itself. */
export function printFields(fields: readonly (readonly [name: string, value: string])[]): void {
  const width = Math.max(...fields.map(([name]) => name.length));
  for (const [name, value] of fields) sayBeside([colours.dim(name.padEnd(width)), " ".repeat(GAP)], width + GAP, value);
}

/** Prints text after what starts its line, wrapped where that ends, which is at this column. */
export function sayBeside(
  start: readonly Piece[],
  column: number,
  text: string,
  pen: (line: string) => Piece = String,
) {
  const columns = terminalColumns();
  const [first = "", ...others] = columns === null ? [text] : wrapText(oneLine(text), columns - column);
  say(...start, pen(first));
  for (const line of others) say(" ".repeat(column), pen(line));
}

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"] as const;

/** `1.2 MiB`. */
export function shortSize(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${(bytes / 1024 ** power).toFixed(power === 0 ? 0 : 1)} ${UNITS[power]}`;
}

export { balanceCents, cents, shortMoney } from "../lib/money.ts";

/** `2026-11-21 10:00Z`, from milliseconds or the API's format; a dash for null. */
export const shortTime = (time: number | string | null): string =>
  time === null ? "-" : `${new Date(time).toISOString().slice(0, 16).replace("T", " ")}Z`;
