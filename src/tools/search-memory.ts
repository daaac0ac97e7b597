import { z } from "zod";
import { dayOf } from "../lib/calendar.ts";
import type { MemoryPort } from "./ports.ts";
import type { Tool } from "./tool.ts";

const input = z.lazy(() =>
  z.object({
    query: z.string().trim().min(1).max(500).describe("what you want to know, in a few words or as a question"),
    limit: z.int().min(1).max(20).default(8).describe("how many passages to show at most"),
  }),
);

/** Finds what the agent has noted, has in its files, and was told in earlier conversations. */
export const searchMemory = (memory: Pick<MemoryPort, "search">): Tool<typeof input> => ({
  name: "search_memory",
  description: "Searches your memory: your notes and files, and what was said in all of your conversations.",
  input,
  deadlineMs: 10_000,
  isCore: true,
  changes: "nothing",
  untrustedOutput: false,
  async run({ query, limit }, context) {
    const { items, degraded } = await memory.search(context, query, limit);
    const note = degraded === null ? [] : [`[Not everything was searched: ${degraded}.]`];
    if (items.length === 0) return [`Nothing was found about "${query}".`, ...note].join("\n");
    const shown = items.map(({ where, createdAt, text }) => `${where}, ${dayOf(createdAt)}:\n${text}`);
    const output = [...shown, ...note].join("\n\n");
    return items.some(({ isUntrusted }) => isUntrusted) ? { untrusted: output } : output;
  },
});
