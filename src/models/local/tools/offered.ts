import type { ToolName } from "./examples.ts";

/**
 * In how many of a hundred held-out cases the embedded model calls the tool rightly and answers from its result
 * (docs/eval-tools.md, by `npm run eval -- tools`). Roost's other tools were not tried: what they need, such as code or a
 * plan, the model would have to make up.
 */
export const RIGHT_PERCENT: Readonly<Record<ToolName, number>> = {
  now: 100,
  run_javascript: 80,
  list_files: 67,
  read_file: 75,
  write_file: 0,
};

/**
 * What is said to whoever wants what is not offered: the model would say that it has done it, or read the file that it
 * was to write.
 */
export const REFUSALS: Readonly<Partial<Record<ToolName, string>>> = {
  write_file: "I cannot write files: the small embedded model gets that wrong too often. A stronger model can.",
};

/** What the model gets wrong more often than right, it is not offered. */
export const OFFERED: readonly string[] = Object.entries(RIGHT_PERCENT).flatMap(([name, right]) =>
  right > 50 ? name : [],
);
