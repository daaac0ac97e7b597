import { createMemoryQueue } from "../../memory/queue.ts";
import { Failure } from "../failure.ts";
import { printJson, say } from "../output.ts";
import { type DataOptions, withData } from "./data-folder.ts";

/** `roost memory rebuild`: a server that runs begins at once, another one when it starts. */
export function rebuildMemory({ agent, ...options }: DataOptions & { json?: true; agent?: string }): Promise<void> {
  return withData(options, "refuse", ({ store }) => {
    const queue = createMemoryQueue(store.db);
    const agents = store.transaction(() => queue.addEveryone(agent));
    if (agent !== undefined && agents === 0) throw new Failure(`there is no agent ${agent}`);
    if (options.json) printJson({ agents });
    else say(`The memories of ${agents} agents are built anew. What there is answers meanwhile.`);
  });
}
