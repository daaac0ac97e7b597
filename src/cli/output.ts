import pc from "picocolors";
import { formatMoney, type Micros } from "../lib/money.ts";

/** Colours on a terminal that wants them. (Picocolors' own test also colours pipes on CI machines.) */
export const wantsColour = (stream: { isTTY?: boolean }): boolean =>
  stream.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== "dumb";

export const colours = pc.createColors(wantsColour(process.stdout));

export const printJson = (value: unknown): void => console.log(JSON.stringify(value, null, 2));

/** For whoever watches, not for what reads the output: standard error. */
export const note = (text: string): void => console.error(text);

/** Text of others, safe on a terminal: no control character but new line and tab, so nothing can move or hide. */
export const printable = (text: string): string =>
  text.replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/gu, "");

/** Columns under their heads, aligned by what is seen; `empty` stands for no rows at all. */
export function printTable(heads: readonly string[], rows: readonly (readonly string[])[], empty: string): void {
  if (rows.length === 0) {
    console.log(colours.dim(empty));
    return;
  }
  const cells = rows.map((row) => row.map((cell) => printable(cell).replaceAll(/\s+/g, " ")));
  const widths = heads.map((head, column) =>
    Math.max(head.length, ...cells.map((row) => Bun.stringWidth(row[column] ?? ""))),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => cell + " ".repeat(Math.max(0, (widths[column] ?? 0) - Bun.stringWidth(cell))))
      .join("  ")
      .trimEnd();
  console.log(colours.bold(line(heads)));
  for (const row of cells) console.log(line(row));
}

/** Names and values, one a line. */
export function printFields(fields: readonly (readonly [name: string, value: string])[]): void {
  const width = Math.max(...fields.map(([name]) => name.length));
  for (const [name, value] of fields) console.log(`${colours.dim(name.padEnd(width))}  ${printable(value)}`);
}

/** `"10.000000"` → `10.00`, `"0.030500"` → `0.0305`. */
export const shortMoney = (amount: Micros | string): string =>
  (typeof amount === "string" ? amount : formatMoney(amount)).replace(/(\.\d\d\d*?)0+$/, "$1");

/** `2026-11-21 10:00Z`, of milliseconds or the API's form; a dash for null. */
export const shortTime = (time: number | string | null): string =>
  time === null ? "-" : `${new Date(time).toISOString().slice(0, 16).replace("T", " ")}Z`;
