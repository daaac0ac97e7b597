import { showContext } from "./context.ts";
import { openCopies } from "./copies.ts";
import { part, reportErrors } from "./dom.ts";
import { hashOf } from "./hash.ts";
import type { Choice } from "./instances.ts";
import { openMemory } from "./memory.ts";
import { type Facts, hasTools } from "./model.ts";
import { openSchedules } from "./schedules.ts";
import { openSkills } from "./skills.ts";
import { openTools } from "./tools.ts";

/** The page with what an agent can do: the skills of its instance, and its tools. */
export interface AgentPage {
  /** Loads it for this agent; shows errors in the part that they are about. */
  show(choice: Choice | null): Promise<void>;
}

/** `imported` is called when another agent was added. */
export function createAgentPage(facts: Facts, imported: () => Promise<void>): AgentPage {
  const showSkills = openSkills();
  const showTools = openTools();
  const showSchedules = openSchedules();
  const showCopies = openCopies(imported);
  const showMemory = openMemory();
  let shown = 0;
  return {
    async show(choice) {
      const agent = choice?.agent;
      if (!choice || !agent) return;
      const { instanceId, name } = choice.instance;
      const mine = ++shown;
      const isStillWanted = () => mine === shown;
      part("to-conversation", HTMLAnchorElement).href = hashOf(instanceId, agent.agentId);
      part("agent-without-tools", HTMLElement).hidden = hasTools(facts, agent);
      part("skills-of", HTMLElement).textContent = name;
      showCopies(instanceId, agent);
      showMemory({ instanceId, agentId: agent.agentId });
      part("memory-of", HTMLElement).textContent = agent.displayName;
      part("tools-of", HTMLElement).textContent = agent.displayName;
      part("context-of", HTMLElement).textContent = agent.displayName;
      await Promise.all([
        reportErrors(part("skills", HTMLElement), () => showSkills(choice.instance)),
        reportErrors(part("tools", HTMLElement), () =>
          showTools({ instanceId, agentId: agent.agentId }, isStillWanted),
        ),
        reportErrors(part("context", HTMLElement), () =>
          showContext({ instanceId, agentId: agent.agentId }, isStillWanted),
        ),
        reportErrors(part("schedules", HTMLElement), () => showSchedules(instanceId, agent)),
      ]);
    },
  };
}
