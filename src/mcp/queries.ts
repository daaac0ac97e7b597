import { and, asc, count, eq, gt, sql } from "drizzle-orm";
import { prepared } from "../storage/prepared.ts";
import type { Db } from "../storage/store.ts";
import { type McpServer, mcpServers } from "./schema.ts";

export function mcpQueries(db: Db) {
  const p = sql.placeholder;
  const { serverId, instanceId } = mcpServers;
  const ofInstance = eq(instanceId, p("instanceId"));
  const byId = prepared(db, () =>
    db
      .select()
      .from(mcpServers)
      .where(eq(serverId, p("serverId"))),
  );
  const version = prepared(db, () =>
    db
      .select({
        version: sql<string | null>`group_concat(${serverId} || ' ' || ${mcpServers.revision}, ' ')`,
      })
      .from(mcpServers)
      .where(ofInstance),
  );
  const used = prepared(db, () => db.select({ servers: count() }).from(mcpServers).where(ofInstance));

  return {
    find: (id: string): McpServer | undefined => byId.get({ serverId: id }),
    /** Changes with every change of the instance's servers; null where it has none. */
    version: (id: string): string | null => version.get({ instanceId: id })?.version ?? null,
    countOf: (id: string): number => used.get({ instanceId: id })?.servers ?? 0,
    isNamed: (id: string, name: string): boolean =>
      db
        .select({ serverId })
        .from(mcpServers)
        .where(and(eq(instanceId, id), eq(mcpServers.name, name)))
        .get() !== undefined,
    /** Oldest first. */
    page: (id: string, after: string | null, limit: number): McpServer[] =>
      db
        .select()
        .from(mcpServers)
        .where(and(eq(instanceId, id), after === null ? undefined : gt(serverId, after)))
        .orderBy(asc(serverId))
        .limit(limit)
        .all(),
    insert: (row: McpServer) => void db.insert(mcpServers).values(row).run(),
    update: (id: string, change: Partial<McpServer>) =>
      void db
        .update(mcpServers)
        .set({ ...change, revision: sql`${mcpServers.revision} + 1` })
        .where(eq(serverId, id))
        .run(),
    remove: (id: string) => void db.delete(mcpServers).where(eq(serverId, id)).run(),
  };
}
