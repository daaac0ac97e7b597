import { z } from "zod";
import type { MemoryPort } from "./ports.ts";
import type { Tool } from "./tool.ts";

const input = z.lazy(() =>
  z.object({
    text: z
      .string()
      .trim()
      .min(1)
      .max(2_000)
      .describe("what to remember, so that it makes sense without this conversation"),
  }),
);

/** Notes something for later, in the workspace's file of the day. */
export const remember = (memory: Pick<MemoryPort, "remember">): Tool<typeof input> => ({
  name: "remember",
  description: "Notes something that you should still know in later conversations. One fact at a time.",
  input,
  deadlineMs: 10_000,
  isCore: true,
  changes: "workspace",
  untrustedOutput: false,
  async run({ text }, context) {
    return `Noted in ${await memory.remember(context, text)}.`;
  },
});
