import { z } from "zod";
import { newId } from "../lib/id.ts";
import { MAX_MESSAGE } from "../limits/message-length.ts";
import { briefText } from "./brief-text.ts";
import type { AgentsPort } from "./ports.ts";
import { MESSAGE_AGENT, type Tool } from "./tool.ts";

const input = z.lazy(() => z.object({ agent: briefText(200), message: briefText(MAX_MESSAGE) }));
export type AgentMessage = z.output<typeof input>;

/** Asks another agent of the instance, and waits for its answer (docs/contract/runtime.md, Agents together). */
export const messageAgent = (agents: Pick<AgentsPort, "requireMessage">): Tool<typeof input> => ({
  name: MESSAGE_AGENT,
  description: "Asks another agent, by name, and waits for its answer. It knows only what your message says.",
  input,
  deadlineMs: 5_000,
  changes: "workspace",
  steers: () => true,
  untrustedOutput: false,
  async run({ agent, message }, context) {
    agents.requireMessage(context, agent, message);
    return { waitsFor: { kind: "agent", id: newId("wait") } };
  },
});
