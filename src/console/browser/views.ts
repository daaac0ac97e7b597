import { part } from "./dom.ts";

const VIEWS = ["chat", "model", "terminal", "account"] as const;
type View = (typeof VIEWS)[number];

/** What the URL's fragment names: a view, or in the chat an instance and an agent. */
export interface Place {
  view: View;
  instanceId: string | null;
  agentId: string | null;
}

export function placeOf(hash: string): Place {
  const view = VIEWS.find((name) => hash === `#${name}`);
  const [, instanceId = null, agentId = null] = /^#(inst_[0-9a-z]+)(?:\/(agt_[0-9a-z]+))?$/.exec(hash) ?? [];
  return { view: view ?? "chat", instanceId, agentId };
}

/** Shows one view and marks its link. */
export function showView(view: View): void {
  document.body.dataset.view = view;
  for (const name of VIEWS) {
    part(`view-${name}`, HTMLElement).hidden = name !== view;
    const link = part(`to-${name}`, HTMLAnchorElement);
    if (name === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}
