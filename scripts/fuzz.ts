/**
 * `npm run fuzz -- 30s`: sends a server valid and invalid requests for everything in its OpenAPI document, and reports
 * every response that no API should give. `--seed N` repeats a run; `--case N` stops it at that case.
 */
import { parseArgs } from "node:util";
import { CASES_OF_A_WORLD, fuzz } from "../test/openapi/fuzz-run.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: "string" }, case: { type: "string" } },
});
const seed = Number(values.seed ?? Math.floor(Math.random() * 1_000_000));
const last = values.case === undefined ? undefined : Number(values.case);
const durationMs = millisecondsOf(positionals[0] ?? "30s");
if (!Number.isSafeInteger(seed) || (last !== undefined && !Number.isSafeInteger(last)) || durationMs === null) {
  console.error("usage: npm run fuzz -- [30s|5m|1h] [--seed N] [--case N]");
  process.exit(2);
}

console.log(`seed ${seed}`);
const from = last === undefined ? 0 : last - (last % CASES_OF_A_WORLD);
const { cases, statuses, failures } = await fuzz({
  seed,
  from,
  ...(last === undefined ? { durationMs } : { cases: last - from + 1 }),
});
for (const { number, what, curl } of failures) {
  console.log(
    `\ncase ${number}: ${what}\n  ${clipped(curl)}\n  again: npm run fuzz -- --seed ${seed} --case ${number}`,
  );
}
const counts = Object.entries(statuses).map(([status, count]) => `${status}: ${count}`);
console.log(`\n${cases} cases, ${failures.length} failed; answers ${counts.join(", ")}`);
process.exit(failures.length === 0 ? 0 : 1);

function millisecondsOf(text: string): number | null {
  const [, count, unit] = /^(\d+)(s|m|h)$/.exec(text) ?? [];
  const unitMs = { s: 1_000, m: 60_000, h: 3_600_000 }[unit ?? ""];
  return unitMs === undefined ? null : Number(count) * unitMs;
}

/** A body of a mebibyte would fill the screen; repeating the case recreates all of it. */
function clipped(curl: string): string {
  return curl.length <= 4_000 ? curl : `${curl.slice(0, 2_000)} …${curl.length - 3_000} more… ${curl.slice(-1_000)}`;
}
