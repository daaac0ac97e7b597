import type { ShowSettings } from "./agent-settings.ts";
import { showContext } from "./context.ts";
import { nameOf, part, reportErrors } from "./dom.ts";
import { openExport } from "./export.ts";
import { openFiles } from "./files.ts";
import { hashOf } from "./hash.ts";
import type { Choice } from "./instances.ts";
import { openMcpServers } from "./mcp-servers.ts";
import { openMemory } from "./memory.ts";
import { type Facts, hasTools } from "./model.ts";
import { openSchedules } from "./schedules.ts";
import { openSkills } from "./skills.ts";
import { openTools } from "./tools.ts";
import { AGENT_PARTS, type AgentPart } from "./views.ts";

/** Read each time: an agent changes its files while it works, and the other parts change what its prompt holds. */
const CHANGING: ReadonlySet<AgentPart> = new Set(["files", "context"]);

/** The page about an agent. It shows one part at a time; the parts' links are made for the agent that is open. */
export interface AgentPage {
  /** Opens it for this agent: what its parts show is read anew. */
  open(choice: Choice): void;
  /** Shows a part, which is read when it is shown first, or each time; errors are shown in it. */
  show(part: AgentPart): Promise<void>;
}

/** What tells the list of instances of a change that is made here. */
export interface AgentChanges {
  /** Another agent was added. */
  imported(): Promise<void>;
  /** An instance or its agents are called something else, or are gone: shows this agent, or what is likeliest. */
  changed(instanceId: string, agentId: string | null): Promise<void>;
}

export function createAgentPage(facts: Facts, { imported, changed }: AgentChanges): AgentPage {
  const [showFiles, showSkills, showTools] = [openFiles(), openSkills(), openTools()];
  let schedules: Promise<ReturnType<typeof openSchedules>> | undefined;
  let settings: Promise<ShowSettings> | undefined;
  let toolsOf = async (): Promise<void> => {};
  const showMcpServers = openMcpServers(() => toolsOf());
  const [showMemory, showExport] = [openMemory(), openExport(imported)];
  let opened: Choice | null = null;
  const read = new Set<AgentPart>();

  async function load(wanted: AgentPart, choice: Choice): Promise<void> {
    const { instance, agent } = choice;
    if (!agent) return;
    const { instanceId } = instance;
    const ids = { instanceId, agentId: agent.agentId };
    const isStillWanted = () => choice === opened;
    switch (wanted) {
      case "files":
        return showFiles(ids, isStillWanted);
      case "skills":
        part("skills-of", HTMLElement).textContent = instance.name;
        return showSkills(instance);
      case "tools":
        toolsOf = () => showTools(ids, isStillWanted);
        await toolsOf();
        return showMcpServers(instanceId);
      case "context":
        return showContext(ids, isStillWanted);
      case "memory":
        return showMemory(ids);
      case "schedules":
        schedules ??= import("./due-times.ts").then(openSchedules);
        // What could not be loaded is asked for again when they are shown again.
        schedules.catch(() => {
          schedules = undefined;
        });
        return (await schedules)(instanceId, agent);
      case "export":
        return showExport(instanceId, agent);
      case "settings":
        settings ??= import("./agent-settings.ts").then(({ openSettings }) => openSettings(facts.host.model, changed));
        settings.catch(() => {
          settings = undefined;
        });
        return (await settings)(choice, agent);
    }
  }

  return {
    open(choice) {
      const { instance, agent } = choice;
      if (!agent) return;
      opened = choice;
      read.clear();
      const path = [instance.instanceId, agent.agentId];
      part("agent-title", HTMLElement).replaceChildren(nameOf(agent.displayName));
      part("to-conversation", HTMLAnchorElement).href = hashOf(...path, choice.conversationId);
      for (const name of AGENT_PARTS) linkTo(name).href = hashOf(...path, name);
      for (const id of ["files-of", "tools-of", "context-of", "memory-of"])
        part(id, HTMLElement).textContent = agent.displayName;
    },
    async show(wanted) {
      for (const name of AGENT_PARTS) {
        part(name, HTMLElement).hidden = name !== wanted;
        if (name === wanted) linkTo(name).setAttribute("aria-current", "page");
        else linkTo(name).removeAttribute("aria-current");
      }
      const choice = opened;
      if (!choice?.agent) return;
      const isAboutTools = wanted === "skills" || wanted === "tools";
      part("agent-without-tools", HTMLElement).hidden = !isAboutTools || hasTools(facts, choice.agent);
      if (read.has(wanted)) return;
      const isStillOpen = () => choice === opened;
      const reading = async () => {
        await load(wanted, choice);
        if (isStillOpen() && !CHANGING.has(wanted)) read.add(wanted);
      };
      await reportErrors(part(wanted, HTMLElement), reading, isStillOpen);
    },
  };
}

function linkTo(wanted: AgentPart): HTMLAnchorElement {
  const link = document.querySelector(`#agent-parts [data-part=${wanted}]`);
  if (!(link instanceof HTMLAnchorElement)) throw new Error(`the page has no link to ${wanted}`);
  return link;
}
