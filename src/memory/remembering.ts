import { existsSync } from "node:fs";
import { join } from "node:path";
import type { AgentFilesParts } from "../agents/agent-files.ts";
import type { Agents } from "../agents/agents.ts";
import type { Workspaces } from "../agents/workspaces.ts";
import type { Instances } from "../instances/instances.ts";
import type { Log } from "../lib/log.ts";
import type { LimitsOfAccounts } from "../limits/account-limits.ts";
import type { Engines } from "../models/engines.ts";
import type { ClearFiles } from "../storage/removals.ts";
import type { Store } from "../storage/store.ts";
import { createDiskBound } from "./disk-bound.ts";
import { createEmbedding } from "./embedding.ts";
import { hasOwnTexts } from "./file-answer.ts";
import { createIndexing } from "./indexing.ts";
import { createMemory, type Memory } from "./memory.ts";
import type { Notes } from "./notes.ts";
import { createMemoryQueue } from "./queue.ts";
import { createRecall, type Recall } from "./recall.ts";
import { createSearchThread } from "./search-thread.ts";
import { createSources } from "./sources.ts";

/** The memories of all agents, with what keeps their indexes up to date. */
export interface Remembering {
  memory: Memory;
  recall: Recall;
  /** Starts. Where the indexes are gone, as after a restore, those that were kept are built anew. */
  run(): void;
  settled(): Promise<void>;
  stop(): Promise<void>;
  /** Has a conversation looked at whose oldest messages are gone. Call it in a transaction. */
  shortened(conversationId: string): void;
  /** Removes a deleted agent's index. */
  clear: ClearFiles;
}

export interface RememberingParts {
  store: Store;
  log: Log;
  dataDir: string;
  agents: Pick<Agents, "find" | "writeFile">;
  instances: Pick<Instances, "find">;
  workspaces: Workspaces;
  notes: Notes;
  engines: Pick<Engines, "embed" | "isChatting">;
  limits: Pick<LimitsOfAccounts, "of">;
}

export function createRemembering(parts: RememberingParts): Remembering {
  const { store, log, dataDir, agents, instances, workspaces, notes, engines, limits } = parts;
  const folder = join(dataDir, "memory");
  const queue = createMemoryQueue(store.db);
  const sources = createSources(store.db, workspaces, notes);
  const thread = createSearchThread(folder, log);
  const bound = createDiskBound({
    store,
    queue,
    thread,
    folder,
    mostOf: (accountId) => limits.of(accountId).workspaceBytes,
  });
  const indexing = createIndexing({ store, log, queue, sources, thread, agents, bound });
  const embedding = createEmbedding({
    store,
    log,
    queue,
    thread,
    embed: engines.embed,
    isChatting: engines.isChatting,
  });
  const memory = createMemory({
    ...{ store, log, agents, instances, workspaces, notes },
    ...{ queue, sources, thread, indexing, embedding },
  });

  return {
    memory,
    recall: createRecall(memory, {
      isForeground: sources.isForeground,
      hasOwnTexts: (agent) => hasOwnTexts(workspaces, agent),
    }),
    run() {
      if (!existsSync(folder)) store.transaction(() => queue.addEveryone());
      indexing.run();
      embedding.run();
    },
    settled: indexing.settled,
    async stop() {
      // What waits for the thread is given up: it is taken in after the next start.
      const stopped = [indexing.stop(), embedding.stop()];
      thread.close();
      await Promise.all(stopped);
    },
    shortened: queue.addConversation,
    clear: (agentId) => ({
      async next() {
        // Most agents that are deleted were never spoken to.
        if (existsSync(join(folder, `${agentId}.db`))) await thread.ask({ type: "remove", agentId });
        return { done: true, value: undefined };
      },
    }),
  };
}

/** Keeps which run wrote which file, and which lines of the memory's. */
export const noteWrites =
  (notes: Pick<Notes, "wrote">): NonNullable<AgentFilesParts["noteWrite"]> =>
  ({ agentId, conversationId, runId, isTainted }, name, { size, updatedAt }, before, after) =>
    notes.wrote({
      ...{ agentId, conversationId, runId, isTainted, name, size, updatedAt },
      before: before === null ? null : Buffer.from(before).toString(),
      after: Buffer.from(after).toString(),
    });
