import { readFileSync } from "node:fs";

/** One row of the table: what was measured, what it is compared with in the same run, and the goal. */
export interface Row {
  figure: string;
  value: number;
  unit: string;
  /** The baseline of the same run. */
  baseline?: { what: string; value: number };
  /** In words, as the documentation states it. */
  goal?: string;
  met?: boolean;
}

export const percentile = (values: number[], share: number): number => {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
};

export const median = (values: number[]): number => percentile(values, 0.5);

/**
 * Resident memory of a process and of the processes it started, in MiB (Linux). Of pages that several of these share, such
 * as those of the executable, each of them has its part.
 */
export function residentMiB(pid: number): number {
  const kib = Number(/VmRSS:\s+(\d+)/.exec(readText(`/proc/${pid}/status`))?.[1] ?? 0);
  return kib / 1024 + startedMiB(pid);
}

/** Milliseconds of processor time that a process and the processes it started have used (Linux), in steps of ten. */
export function cpuMs(pid: number): number {
  const fields = readText(`/proc/${pid}/stat`)
    .replace(/^.*\) /, "")
    .split(" ")
    .map(Number);
  const own = (fields[USER_TICKS] ?? 0) + (fields[SYSTEM_TICKS] ?? 0);
  return own * MS_A_TICK + childrenOf(pid).reduce((sum, child) => sum + cpuMs(child), 0);
}

/** Places in `/proc/PID/stat` after the name. */
const USER_TICKS = 11;
const SYSTEM_TICKS = 12;
const MS_A_TICK = 10;

const childrenOf = (pid: number): number[] =>
  readText(`/proc/${pid}/task/${pid}/children`).trim().split(/\s+/).filter(Boolean).map(Number);

function startedMiB(pid: number): number {
  const kibOf = (child: number) => Number(/^Pss:\s+(\d+)/m.exec(readText(`/proc/${child}/smaps_rollup`))?.[1] ?? 0);
  return childrenOf(pid).reduce((sum, child) => sum + kibOf(child) / 1024 + startedMiB(child), 0);
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

const number = (value: number) =>
  Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : value.toPrecision(3);

/** The table, aligned for a terminal. */
export function formatRows(rows: Row[]): string {
  const cells = rows.map(({ figure, value, unit, baseline, goal, met }) => [
    figure,
    `${number(value)} ${unit}`,
    baseline ? `${baseline.what} ${number(baseline.value)}` : "",
    baseline ? number(value / baseline.value) : "",
    goal ?? "",
    met === undefined ? "" : met ? "met" : "missed",
  ]);
  const all = [["figure", "this run", "baseline in this run", "ratio", "goal", ""], ...cells];
  const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0))) ?? [];
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
