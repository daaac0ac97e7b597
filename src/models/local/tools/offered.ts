/**
 * In how many of a hundred held-out cases the embedded model calls the tool rightly and answers from its result
 * (docs/eval-tools.md, by `npm run eval -- tools`). Roost's other tools were not tried: what they need, such as code or a
 * plan, the model would have to make up.
 */
export const RIGHT_PERCENT = {
  now: 100,
  run_javascript: 80,
  list_files: 100,
  read_file: 100,
  write_file: 100,
  remember: 100,
  search_memory: 100,
  delete_file: 100,
} as const satisfies Readonly<Record<string, number>>;

export type ToolName = keyof typeof RIGHT_PERCENT;

export const isToolName = (name: string): name is ToolName => Object.hasOwn(RIGHT_PERCENT, name);

/** What the model gets wrong more often than right, it is not offered. */
export const OFFERED: readonly string[] = Object.entries(RIGHT_PERCENT).flatMap(([name, right]) =>
  right > 50 ? name : [],
);
