import { z } from "zod";
import { CALL_TOOL, type Tool } from "./tool.ts";

const input = z.lazy(() =>
  z.object({
    name: z.string().describe("the tool's name"),
    input: z.record(z.string(), z.unknown()).default({}).describe("its input, as search_tools tells it"),
  }),
);

/**
 * The description by which a model calls a tool that was not offered to it. The loop reads such a call as one of the tool
 * that it names (runtime/named-call.ts), so nobody is ever asked about this one, and only a call within a call comes here.
 */
export const callByName: Tool<typeof input> = {
  name: CALL_TOOL,
  description: "Calls a tool that is not listed here. Find it with search_tools first, to know its input.",
  input,
  deadlineMs: 1_000,
  changes: "nothing",
  untrustedOutput: false,
  async run() {
    throw new Error(`${CALL_TOOL} cannot call itself: name the tool that you need`);
  },
};
