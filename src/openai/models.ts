import { and, asc, desc, eq, isNull, sql } from "drizzle-orm";
import { z } from "zod";
import type { Agents, FoundAgent } from "../agents/agents.ts";
import { agents as agentRows } from "../agents/schema.ts";
import { instances } from "../instances/schema.ts";
import { AppError } from "../lib/app-error.ts";
import { record } from "../lib/record.ts";
import type { Caller } from "../limits/caller.ts";
import { LOCAL_EMBEDDER } from "../models/local-models.ts";
import type { Db } from "../storage/store.ts";

/** The embedding model's name here. */
export const EMBEDDING_MODEL = LOCAL_EMBEDDER;
/** Without `limit`, a list has all agents that an account may usually have: OpenAI's clients do not page. */
const MAX_LISTED = 1_000;

export const Model = record("Model", () =>
  z.object({
    id: z.string().describe("An agent's id, or the embedding model's name"),
    object: z.literal("model"),
    created: z.int().describe("Seconds since 1970"),
    owned_by: z.string().describe("The name of the agent's instance"),
    name: z.string().describe("The agent's display name"),
  }),
);
export type Model = z.output<typeof Model>;

export const ModelList = z.object({ object: z.literal("list"), data: z.array(Model), has_more: z.boolean() });

/** An account's agents as OpenAI's clients see them: as models. */
export interface AgentModels {
  /** The agent whose id is the model's name; undefined for any other, and for those that the key may not see. */
  find(caller: Caller, model: string): FoundAgent | undefined;
  /** The same. Throws `not_found` where there is none. */
  agentOf(caller: Caller, model: string): FoundAgent;
  get(caller: Caller, model: string): Model;
  /** Newest instance first, the embedding model last; `after` is a model's id. Throws `invalid_request` for a foreign one. */
  list(caller: Caller, after: string | null, limit: number | null): z.output<typeof ModelList>;
}

const EMBEDDING: Model = {
  id: EMBEDDING_MODEL,
  object: "model",
  created: 0,
  owned_by: "roost",
  name: "all-MiniLM-L6-v2",
};

export function createAgentModels(db: Db, agents: Pick<Agents, "find" | "get">): AgentModels {
  function unknown(model: string): AppError {
    const message =
      model === EMBEDDING_MODEL
        ? `model: ${model} is for embeddings; expected the id of an agent`
        : `model: there is no agent ${model.slice(0, 100)}; GET /v1/models lists them`;
    return new AppError("not_found", message, { param: "model" });
  }

  function find(caller: Caller, model: string): FoundAgent | undefined {
    const agent = agents.find(model);
    if (agent === undefined) return undefined;
    try {
      return agents.get(caller, agent.instanceId, agent.agentId);
    } catch (error) {
      if (error instanceof AppError && error.code === "not_found") return undefined;
      throw error;
    }
  }

  function agentOf(caller: Caller, model: string): FoundAgent {
    const found = find(caller, model);
    if (found === undefined) throw unknown(model);
    return found;
  }

  return {
    find,
    agentOf,
    get(caller, model) {
      if (model === EMBEDDING_MODEL) return EMBEDDING;
      const { agent, instance } = agentOf(caller, model);
      return show({ ...agent, owner: instance.name });
    },
    list(caller, after, limit) {
      if (after === EMBEDDING_MODEL) return { object: "list", data: [], has_more: false };
      const most = limit ?? MAX_LISTED;
      const last = after === null ? null : startOf(caller, after);
      const rows = db
        .select({
          agentId: agentRows.agentId,
          displayName: agentRows.displayName,
          createdAt: agentRows.createdAt,
          owner: instances.name,
        })
        .from(instances)
        .innerJoin(agentRows, eq(agentRows.instanceId, instances.instanceId))
        .where(
          and(
            eq(instances.accountId, caller.accountId),
            caller.instanceId === null ? undefined : eq(instances.instanceId, caller.instanceId),
            isNull(instances.removedAt),
            isNull(agentRows.removedAt),
            last === null
              ? undefined
              : sql`(${instances.instanceId} < ${last.instanceId} OR (${instances.instanceId} = ${last.instanceId} AND ${agentRows.agentId} > ${last.agentId}))`,
          ),
        )
        .orderBy(desc(instances.instanceId), asc(agentRows.agentId))
        .limit(most)
        .all();
      // The embedding model comes last: clients try the first one for a chat.
      const isEnd = rows.length < most;
      return { object: "list", data: [...rows.map(show), ...(isEnd ? [EMBEDDING] : [])], has_more: !isEnd };
    },
  };

  function startOf(caller: Caller, after: string) {
    try {
      return agentOf(caller, after).agent;
    } catch {
      throw new AppError("invalid_request", "after: expected the id of a model in this list", { param: "after" });
    }
  }
}

const show = ({
  agentId,
  displayName,
  createdAt,
  owner,
}: {
  agentId: string;
  displayName: string;
  createdAt: number;
  owner: string;
}): Model => ({
  id: agentId,
  object: "model",
  created: Math.floor(createdAt / 1000),
  owned_by: owner,
  name: displayName,
});
