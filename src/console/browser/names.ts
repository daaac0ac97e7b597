import { RoostError } from "../../../clients/typescript/src/index.ts";
import { roost } from "./api.ts";
import { nameOf } from "./dom.ts";
import { AGENT, INSTANCE } from "./records.ts";

const names = new Map<string, Promise<string>>();

/** Shows a name once it is read, which is done once for each id; the id for what no longer exists, or cannot be read now. */
function readOnce(id: string, read: () => Promise<string>): HTMLElement {
  const element = nameOf("…");
  let name = names.get(id);
  if (!name) {
    name = read().catch((error: unknown) => {
      // It may be read the next time.
      if (!(error instanceof RoostError) || error.code !== "not_found") names.delete(id);
      return id;
    });
    names.set(id, name);
  }
  void name.then((known) => {
    element.textContent = known;
  });
  return element;
}

export const agentName = (instanceId: string, agentId: string): HTMLElement =>
  readOnce(agentId, async () => (await roost.get(AGENT, { path: { instanceId, agentId } })).displayName);

export const instanceName = (instanceId: string): HTMLElement =>
  readOnce(instanceId, async () => (await roost.get(INSTANCE, { path: { instanceId } })).name);
