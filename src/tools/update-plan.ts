import { z } from "zod";
import type { ShowPlan } from "./ports.ts";
import type { Tool } from "./tool.ts";

const item = () => z.object({ text: z.string().trim().min(1).max(300), done: z.boolean().default(false) });
const input = z.lazy(() => z.object({ items: z.array(item()).max(20).describe("all steps of the plan, in order") }));

/** Shows the agent's plan to whoever follows the run, as the event `plan.updated`. */
export const updatePlan = (show: ShowPlan): Tool<typeof input> => ({
  name: "update_plan",
  description: "Shows your user your plan for longer work, and which steps are done. Give the whole plan each time.",
  input,
  deadlineMs: 5_000,
  changes: "nothing",
  untrustedOutput: false,
  async run({ items }, context) {
    await show(context, items);
    const done = items.filter((one) => one.done).length;
    return `The plan is shown: ${done} of ${items.length} steps are done.`;
  },
});
