import { part } from "./dom.ts";

const VIEWS = ["chat", "agent", "approvals", "usage", "model", "terminal", "account"] as const;
type View = (typeof VIEWS)[number];

/** The parts of the page about an agent, as its URL and its links name them; the first is shown first. */
export const AGENT_PARTS = [
  "files",
  "skills",
  "tools",
  "context",
  "memory",
  "schedules",
  "export",
  "settings",
] as const;
export type AgentPart = (typeof AGENT_PARTS)[number];

/**
 * What the URL's fragment names: a view, or an instance and an agent, with one of its conversations or one part of its
 * page.
 */
export interface Place {
  view: View;
  instanceId: string | null;
  agentId: string | null;
  conversationId: string | null;
  part: AgentPart | null;
}

const PLACE = new RegExp(`^#(inst_[0-9a-z]+)(?:/(agt_[0-9a-z]+)(?:/(${AGENT_PARTS.join("|")})|/(conv_[0-9a-z]+))?)?$`);

export function placeOf(hash: string): Place {
  const view = VIEWS.find((name) => hash === `#${name}`);
  const [, instanceId = null, agentId = null, named, conversationId = null] = PLACE.exec(hash) ?? [];
  const part = AGENT_PARTS.find((one) => one === named) ?? null;
  return { view: part ? "agent" : (view ?? "chat"), instanceId, agentId, conversationId, part };
}

/** Shows one view and marks its link; an agent's belongs to the chat. */
export function showView(view: View): void {
  document.body.dataset.view = view;
  for (const name of VIEWS) {
    part(`view-${name}`, HTMLElement).hidden = name !== view;
    if (name === "agent") continue;
    const link = part(`to-${name}`, HTMLAnchorElement);
    if (name === view || (name === "chat" && view === "agent")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}
