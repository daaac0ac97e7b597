import { type AgentFilesParts, createAgentFiles } from "../agents/agent-files.ts";
import { keepOutputs } from "../agents/kept-outputs.ts";
import type { Approvals } from "../approvals/approvals.ts";
import type { ApprovalRules } from "../approvals/rules.ts";
import type { Memory } from "../memory/memory.ts";
import { createMemoryPort } from "../memory/port.ts";
import type { EventLog } from "../messages/events/event-log.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { createCodeRunner } from "../skills/scripts.ts";
import type { Skills } from "../skills/skills.ts";
import type { Audit } from "../storage/audit.ts";
import { askUser } from "../tools/ask-user.ts";
import { callByName } from "../tools/call-tool.ts";
import { delegate } from "../tools/delegate.ts";
import { messageAgent } from "../tools/message-agent.ts";
import { now } from "../tools/now.ts";
import type { AgentsPort, CallOutcome, PolicyPorts, ShowPlan } from "../tools/ports.ts";
import { createReadSkill } from "../tools/read-skill.ts";
import { remember } from "../tools/remember.ts";
import { runJavaScript } from "../tools/run-javascript.ts";
import { runScript } from "../tools/run-script.ts";
import { searchMemory } from "../tools/search-memory.ts";
import { createSearchTools } from "../tools/search-tools.ts";
import type { Tool, ToolContext } from "../tools/tool.ts";
import { createToolbox, type Toolbox } from "../tools/toolbox.ts";
import { createToolboxes, type ToolboxOf } from "../tools/toolboxes.ts";
import { updatePlan } from "../tools/update-plan.ts";
import { workspaceTools } from "../tools/workspace-files.ts";
import { decodeText } from "../workspace/workspace.ts";
import type { Mcp } from "./mcp-servers.ts";
import type { Web } from "./web.ts";

export interface ToolParts extends AgentFilesParts {
  audit: Pick<Audit, "append">;
  approvals: Pick<Approvals, "approved" | "hasRoom">;
  rules: Pick<ApprovalRules, "cover">;
  appendEvents: EventLog["append"];
  web: Pick<Web, "tools" | "broker">;
  sandbox: Sandbox;
  skills: Pick<Skills, "outline" | "read">;
  /** The agents that a call may wait for. */
  together: AgentsPort;
  mcp: Pick<Mcp, "tools">;
  searchMemory(...search: Parameters<Memory["search"]>): ReturnType<Memory["search"]>;
}

/** How often a tool was called, and what came of it. */
export interface ToolCalls {
  tool: string;
  outcome: CallOutcome;
  count: number;
}

export interface Tools {
  /** Those of the host. */
  toolbox: Toolbox;
  toolboxOf: ToolboxOf;
  policy: PolicyPorts;
  /** Since the start. */
  counts(): ToolCalls[];
}

/** Other tools than Roost's own, for tests: in their place, or beside them. */
export interface ToolChoice {
  only?: readonly Tool[] | undefined;
  more?: readonly Tool[] | undefined;
}

/** What agents can do, and what the decision about a call knows. */
export function createTools(parts: ToolParts, { only, more = [] }: ToolChoice): Tools {
  const { store, instances, agents, audit, approvals, rules, appendEvents, spend, web, sandbox, skills, together } =
    parts;
  const files = createAgentFiles(parts);
  const memory = createMemoryPort({ memory: { search: parts.searchMemory }, agents, files });

  const showPlan: ShowPlan = ({ instanceId, agentId, conversationId, runId, signal }, items) => {
    const append = () => {
      signal.throwIfAborted();
      appendEvents(agentId, [{ type: "plan.updated", runId, items }], conversationId);
    };
    return store.commitSoon(() => spend(instanceId, append), "process", instances.find(instanceId)?.accountId);
  };

  const counts = new Map<string, ToolCalls>();
  const policy: PolicyPorts = {
    policyOf(agentId, tool) {
      const policies = agents.find(agentId)?.tools;
      return policies && Object.hasOwn(policies, tool) ? policies[tool] : undefined;
    },
    isRemembered: rules.cover,
    hasRoomToAsk: approvals.hasRoom,
    approved: approvals.approved,
    redact: web.broker.redact,
    keepOutput: keepOutputs(files),
    count(tool, outcome) {
      const key = `${tool} ${outcome}`;
      const known = counts.get(key) ?? { tool, outcome, count: 0 };
      known.count++;
      counts.set(key, known);
    },
    async noteChange({ instanceId, agentId, runId }, tool, approvalId) {
      const accountId = instances.find(instanceId)?.accountId;
      const actor = accountId ?? "host";
      const entry = { actor, action: "tool.call", subject: agentId, detail: { tool, runId, approvalId } };
      await store.commitSoon(() => audit.append(entry), "process", accountId);
    },
  };
  const runCode = createCodeRunner({
    skills,
    async readFile(context: ToolContext, name) {
      const { bytes, isTainted } = files.read(context, name);
      return { text: decodeText(bytes), isTainted };
    },
    run: (job, context) => runScript(sandbox, job, context),
  });
  const own = [
    now,
    ...workspaceTools(files),
    searchMemory(memory),
    remember(memory),
    askUser,
    ...web.tools,
    runJavaScript(sandbox, runCode),
    createReadSkill(skills),
    updatePlan(showPlan),
    messageAgent(together),
    delegate(together),
    createSearchTools(({ instanceId, agentId, onlyTools }) =>
      toolboxOf(instanceId).searchable(agents.find(agentId)?.tools ?? null, onlyTools),
    ),
    callByName,
  ];
  const toolbox = createToolbox([...(only ?? own), ...more]);
  const toolboxOf = createToolboxes(toolbox, parts.mcp.tools);
  return { toolbox, toolboxOf, policy, counts: () => [...counts.values()] };
}
