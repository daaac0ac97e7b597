import { z } from "zod";
import { pageOf, pageQuery, toPage } from "../http/paging.ts";
import { type Route, route } from "../http/route.ts";
import { record } from "../lib/record.ts";
import { defaultPolicyOf } from "../tools/policy.ts";
import { CHANGES, POLICIES } from "../tools/tool.ts";
import type { ToolboxOf } from "../tools/toolboxes.ts";
import type { Agents } from "./agents.ts";

/** A tool as the API shows it (docs/contract/api.md, Tools). */
const ToolRecord = record("Tool", () =>
  z.object({
    name: z.string(),
    description: z.string(),
    inputSchema: z.record(z.string(), z.unknown()).describe("JSON Schema of its input"),
    source: z.string().meta({ examples: ["built-in"] }),
    changes: z.enum(CHANGES).describe("The most that a call can change"),
    untrustedOutput: z.boolean().describe("Whether a stranger may have written its output"),
    policy: z.enum(POLICIES),
    defaultPolicy: z
      .enum(POLICIES)
      .describe("Where the owner has said nothing; for a call that changes the most it can"),
  }),
);

export function toolRoutes(agents: Pick<Agents, "get">, toolboxOf: ToolboxOf): Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/instances/:instanceId/agents/:agentId/tools",
      name: "listAgentTools",
      tag: "agents",
      summary: "What the agent can do, and what its owner says about it",
      access: "read",
      bound: "page",
      query: pageQuery,
      answer: pageOf(ToolRecord),
      find: ({ caller, params }) => agents.get(caller, params.instanceId, params.agentId),
      handle({ found: { agent }, query, startPage }) {
        const start = startPage(`tools ${agent.agentId}`, query());
        const { position } = start;
        const toolbox = toolboxOf(agent.instanceId);
        const tools = toolbox.tools
          .toSorted((a, b) => (a.name < b.name ? -1 : 1))
          .filter(({ name }) => position === null || name > position);
        return toPage(
          start,
          tools.slice(0, start.limit + 1),
          ({ name }) => name,
          (tool) => {
            const defaultPolicy = defaultPolicyOf(tool, tool.changes);
            return {
              name: tool.name,
              description: tool.description,
              inputSchema: toolbox.schemaOf(tool.name),
              source: tool.source ?? "built-in",
              changes: tool.changes,
              untrustedOutput: tool.untrustedOutput,
              policy: agent.tools?.[tool.name] ?? defaultPolicy,
              defaultPolicy,
            };
          },
        );
      },
    }),
  ];
}
