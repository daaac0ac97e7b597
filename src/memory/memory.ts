import type { Agents } from "../agents/agents.ts";
import type { Agent } from "../agents/schema.ts";
import type { Workspaces } from "../agents/workspaces.ts";
import type { Instances } from "../instances/instances.ts";
import { notFound } from "../lib/app-error.ts";
import type { Log } from "../lib/log.ts";
import { createFairPlaces } from "../limits/fair-places.ts";
import type { Store } from "../storage/store.ts";
import type { Embedding } from "./embedding.ts";
import { createForgetting, type Forget } from "./forgetting.ts";
import type { Indexing } from "./indexing.ts";
import type { Notes } from "./notes.ts";
import type { MemoryQueue } from "./queue.ts";
import { type Found, MAX_ENTRIES } from "./search/entry.ts";
import type { Replies } from "./search/worker.ts";
import { LostIndexError, type SearchThread } from "./search-thread.ts";
import type { Sources } from "./sources.ts";

export interface SearchResult {
  /** Best first. */
  items: Found[];
  /** What could not be searched; null if everything was. */
  degraded: string | null;
}

export interface Memory {
  /**
   * Up to `limit` passages of what the agent has in its files and was said in its conversations. It waits for the index and
   * for the query's vector as long as is good for who looks something up, or for `withinMs`.
   */
  search(agent: Agent, query: string, limit: number, withinMs?: number): Promise<SearchResult>;
  /** Has the agent's memory kept up to date from now on, so that even its first search finds what is there. */
  keep(agent: Agent): Promise<void>;
  forget: Forget;
}

export interface MemoryParts {
  log: Log;
  agents: Pick<Agents, "find" | "writeFile">;
  instances: Pick<Instances, "find">;
  queue: MemoryQueue;
  sources: Sources;
  notes: Notes;
  store: Pick<Store, "commitSoon">;
  thread: Pick<SearchThread, "ask">;
  indexing: Pick<Indexing, "catchUp" | "isBehind">;
  embedding: Pick<Embedding, "ofQuery">;
  workspaces: Pick<Workspaces, "read" | "has" | "taintedOf" | "refresh">;
}

/** A search waits so long for what was written just before it, and the first one for everything. */
const CATCH_UP_MS = 300;
const FIRST_CATCH_UP_MS = 1_500;
/** More than are asked for, since some may be gone by now. */
const SPARE = 10;

/** Searches at once: each takes its turn in the thread of the indexes, and in that of the vectors. */
const PLACES = { total: 4, maxPerOwner: 2, maxWaitingPerOwner: 64 };
const WAIT_MS = 10_000;

export function createMemory(parts: MemoryParts): Memory {
  const { store, log, agents, instances, queue, sources, thread, indexing, embedding, workspaces } = parts;

  const places = createFairPlaces(PLACES);

  /** Whether what was found is still there, and as it was. */
  function holds(agent: Agent, { file, conversationId, seq, runId }: Found): boolean {
    const { agentId } = agent;
    if (file === null) return conversationId !== null && sources.isVisible(agentId, conversationId, seq, runId);
    return sources.isThere(agent, file) && !queue.isQueued(agentId, "file", file);
  }

  /** Returns whether the agent's memory was not kept up to date before. */
  async function begin({ agentId, instanceId }: Agent): Promise<boolean> {
    const accountId = instances.find(instanceId)?.accountId;
    if (queue.isKept(agentId) || accountId === undefined) return false;
    return store.commitSoon(() => queue.begin(accountId, agentId), "process");
  }

  /** Whether there is no index because nothing was ever written; else it is being built, if need be from now on. */
  async function isEmpty(agent: Agent): Promise<boolean> {
    const { agentId, instanceId } = agent;
    if (queue.nextOf(agentId) !== undefined) return false;
    if (!sources.hasAny(agent)) return true;
    const accountId = instances.find(instanceId)?.accountId;
    if (accountId !== undefined) await store.commitSoon(() => queue.addAll(accountId, agentId), "process");
    return false;
  }

  async function ask(agentId: string, query: string, vector: Float32Array | null, limit: number) {
    try {
      return await thread.ask({ type: "search", agentId, query, vector, limit });
    } catch (err) {
      if (err instanceof LostIndexError) return null;
      log.error({ err, agentId }, "an agent's memory could not be searched");
      return "failed";
    }
  }

  async function search(agent: Agent, query: string, limit: number, withinMs?: number): Promise<SearchResult> {
    const { agentId } = agent;
    // What somebody has changed on the disk is found too.
    workspaces.refresh(agent);
    const isFirst = await begin(agent);
    const [{ vector, ...without }] = await Promise.all([
      embedding.ofQuery(query, withinMs),
      indexing.catchUp(agentId, withinMs ?? (isFirst ? FIRST_CATCH_UP_MS : CATCH_UP_MS)),
    ]);
    const reply = await ask(agentId, query, vector, limit + SPARE);
    if (agents.find(agentId) === undefined) throw notFound("agent");
    if (reply === "failed") return { items: [], degraded: FAILED };
    if (reply === null) return { items: [], degraded: (await isEmpty(agent)) ? null : BEING_BUILT };
    const items = reply.found.filter((one) => holds(agent, one)).slice(0, limit);
    const reasons = [
      ...("reason" in without ? [without.reason] : []),
      ...(indexing.isBehind(agentId) ? [BEHIND] : []),
      ...shortcomings(reply, vector !== null),
    ];
    return { items, degraded: reasons.length === 0 ? null : reasons.join("; ") };
  }

  return {
    async search(agent, query, limit, withinMs) {
      const owner = instances.find(agent.instanceId)?.accountId ?? "";
      const leave = await places.take(owner, AbortSignal.timeout(WAIT_MS)).catch(() => null);
      if (leave === null) return { items: [], degraded: BUSY };
      try {
        return await search(agent, query, limit, withinMs);
      } finally {
        leave();
      }
    },
    async keep(agent) {
      await begin(agent);
    },
    forget: createForgetting(parts),
  };
}

const BEING_BUILT = "the index of this memory is being built: nothing can be found yet; try again in a moment";
const BEHIND = "what was written last could not be taken into the index yet, so it may be missing";
const BUSY = "too many searches of this account wait: nothing was searched; try again in a moment";
const FAILED = "the index of this memory could not be read: nothing was searched; try again in a moment";

function shortcomings({ pending, total, isBeingBuilt }: Replies["search"], hasVector: boolean): string[] {
  const reasons: string[] = [];
  if (isBeingBuilt) reasons.push("the index is being built anew, so the newest texts may be missing");
  if (pending > 0 && hasVector) {
    reasons.push(`${pending} of ${total} texts were found by their words only, not by their meaning yet`);
  }
  if (total >= MAX_ENTRIES) {
    reasons.push(`the memory is full (${MAX_ENTRIES} texts), so the oldest messages and some files were not searched`);
  }
  return reasons;
}
