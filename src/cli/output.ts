import pc from "picocolors";

/** Colours on a terminal that wants them. (Picocolors' own test also colours pipes on CI machines.) */
export const wantsColour = (stream: { isTTY?: boolean }): boolean =>
  stream.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== "dumb";

const pens = pc.createColors(wantsColour(process.stdout));

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

const oneLine = (text: string): string => printable(text).replaceAll(/[\n\t]+/g, " ");

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

/** Columns under their heads, aligned by what is seen; `empty` stands for no rows at all. */
export function printTable(heads: readonly string[], rows: readonly (readonly string[])[], empty: string): void {
  if (rows.length === 0) {
    say(colours.dim(empty));
    return;
  }
  const cells = rows.map((row) => row.map((cell) => oneLine(cell).replaceAll(/\s+/g, " ")));
  const widths = heads.map((head, column) =>
    Math.max(head.length, ...cells.map((row) => Bun.stringWidth(row[column] ?? ""))),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => cell + " ".repeat(Math.max(0, (widths[column] ?? 0) - Bun.stringWidth(cell))))
      .join("  ")
      .trimEnd();
  say(colours.bold(line(heads)));
  for (const row of cells) say(line(row));
}

/** Names and values, one a line. */
export function printFields(fields: readonly (readonly [name: string, value: string])[]): void {
  const width = Math.max(...fields.map(([name]) => name.length));
  for (const [name, value] of fields) say(colours.dim(name.padEnd(width)), `  ${value}`);
}

export { shortMoney } from "../lib/money.ts";

/** `2026-11-21 10:00Z`, of milliseconds or the API's form; a dash for null. */
export const shortTime = (time: number | string | null): string =>
  time === null ? "-" : `${new Date(time).toISOString().slice(0, 16).replace("T", " ")}Z`;
