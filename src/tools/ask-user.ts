import { z } from "zod";
import { newId } from "../lib/id.ts";
import type { Tool } from "./tool.ts";

const question = () =>
  z.object({
    question: z.string().trim().min(1).max(1_000),
    options: z
      .array(z.string().trim().min(1).max(200))
      .max(4)
      .refine(({ length }) => length !== 1, { error: "expected none or 2 to 4 options" })
      .default([])
      .describe("answers to choose from, 2 to 4; none for an answer in the person's own words"),
  });
const input = z.lazy(() => z.object({ questions: z.array(question()).min(1).max(3) }));

/** Asks the owner, and waits: the answers come as the call's result (docs/contract/runtime.md, Approvals). */
export const askUser: Tool<typeof input> = {
  name: "ask_user",
  description:
    "Asks your user up to three questions and waits for the answers. Ask only what you cannot find out yourself.",
  input,
  deadlineMs: 1_000,
  isCore: true,
  changes: "nothing",
  untrustedOutput: false,
  run: async () => ({ waitsFor: { kind: "answer", id: newId("appr") } }),
};
