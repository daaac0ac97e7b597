import type { Database } from "bun:sqlite";

export interface AgentRow {
  agentId: string;
  instanceId: string;
  slug: string;
}

/**
 * The agents with a workspace in a database of any schema, by instance. One that was removed, or is still arriving, has its
 * id for a slug.
 */
export const agentsIn = (sqlite: Database): AgentRow[] =>
  sqlite
    .query<AgentRow, []>(
      `SELECT agent_id AS agentId, instance_id AS instanceId, slug FROM agents WHERE slug <> agent_id
       ORDER BY instance_id, agent_id`,
    )
    .all();

export interface Standing {
  slug: string;
  /** By the index. */
  hasFiles: boolean;
}

/** Null if the agent, or its instance, is removed. */
export function standing(sqlite: Database, agentId: string, instanceId: string): Standing | null {
  // All columns, since the first schemas lack some of these: there, the row of what is removed is gone.
  const agent = sqlite
    .query<{ slug: string; file_count?: number }, [string]>(
      "SELECT * FROM agents WHERE agent_id = ? AND slug <> agent_id",
    )
    .get(agentId);
  const instance = sqlite
    .query<{ removed_at?: number | null }, [string]>("SELECT * FROM instances WHERE instance_id = ?")
    .get(instanceId);
  if (agent === null || instance === null || typeof instance.removed_at === "number") return null;
  return { slug: agent.slug, hasFiles: agent.file_count !== 0 };
}
