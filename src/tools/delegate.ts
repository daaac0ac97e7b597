import { z } from "zod";
import { newId } from "../lib/id.ts";
import { MAX_MESSAGE } from "../limits/message-length.ts";
import { briefLabel, briefText } from "./brief-text.ts";
import type { AgentsPort } from "./ports.ts";
import { DELEGATE, type Tool } from "./tool.ts";

/** Copies that one call sets to work. */
const MAX_TASKS = 4;

const task = () =>
  z.object({
    title: briefLabel(100),
    message: briefText(MAX_MESSAGE),
    tools: z.array(z.string()).optional().describe("all it needs; default: all"),
  });
const input = z.lazy(() => z.object({ tasks: z.array(task()).min(1).max(MAX_TASKS) }));
export type DelegateInput = z.output<typeof input>;

/** Sets copies of the agent to work on parts of a task, and waits for all (docs/contract/runtime.md, Agents together). */
export const delegate = (agents: Pick<AgentsPort, "requireDelegation">): Tool<typeof input> => ({
  name: DELEGATE,
  description:
    "Lets copies of you do parts of a task at once, and waits. They share your files and know only their message.",
  input,
  deadlineMs: 5_000,
  changes: "workspace",
  untrustedOutput: false,
  async run({ tasks }, context) {
    agents.requireDelegation(context, tasks);
    return { waitsFor: { kind: "agent", id: newId("wait") } };
  },
});
