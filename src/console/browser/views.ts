import { part } from "./dom.ts";

const VIEWS = ["chat", "agent", "approvals", "usage", "model", "terminal", "account"] as const;
type View = (typeof VIEWS)[number];

/** What the URL's fragment names: a view, or an instance and an agent, to chat with (in one of its conversations) or to see what it may do. */
export interface Place {
  view: View;
  instanceId: string | null;
  agentId: string | null;
  conversationId: string | null;
}

export function placeOf(hash: string): Place {
  const view = VIEWS.find((name) => hash === `#${name}`);
  const [, instanceId = null, agentId = null, tools, conversationId = null] =
    /^#(inst_[0-9a-z]+)(?:\/(agt_[0-9a-z]+)(?:(\/tools)|\/(conv_[0-9a-z]+))?)?$/.exec(hash) ?? [];
  return { view: tools ? "agent" : (view ?? "chat"), instanceId, agentId, conversationId };
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
