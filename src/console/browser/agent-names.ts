import { roost } from "./api.ts";
import { nameOf } from "./dom.ts";
import { AGENT } from "./records.ts";

const names = new Map<string, Promise<string>>();

/** An agent's name, once it is known; its id for one that no longer exists. */
export function agentName(instanceId: string, agentId: string): HTMLElement {
  const element = nameOf("…");
  let name = names.get(agentId);
  if (!name) {
    name = roost.get(AGENT, { path: { instanceId, agentId } }).then(
      ({ displayName }) => displayName,
      () => agentId,
    );
    names.set(agentId, name);
  }
  void name.then((known) => {
    element.textContent = known;
  });
  return element;
}
