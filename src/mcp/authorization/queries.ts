import { and, eq, lt, sql } from "drizzle-orm";
import { placeholdersOfRow } from "../../storage/columns.ts";
import { prepared } from "../../storage/prepared.ts";
import type { Db } from "../../storage/store.ts";
import { mcpServers } from "../schema.ts";
import { type CredentialsRow, mcpAuthorizations, mcpCredentials, type PendingRow } from "./schema.ts";

export function authorizationQueries(db: Db) {
  const p = sql.placeholder;
  const ofServer = eq(mcpCredentials.serverId, p("serverId"));
  const take = prepared(db, () =>
    db
      .delete(mcpAuthorizations)
      .where(eq(mcpAuthorizations.stateHash, p("stateHash")))
      .returning(),
  );
  const find = prepared(db, () => db.select().from(mcpCredentials).where(ofServer));
  const remove = prepared(db, () => db.delete(mcpCredentials).where(ofServer).returning());
  const ofInstance = prepared(db, () =>
    db
      .select({
        serverId: mcpCredentials.serverId,
        issuer: mcpCredentials.issuer,
        dataKeyId: mcpCredentials.dataKeyId,
        sealed: mcpCredentials.sealed,
        updatedAt: mcpCredentials.updatedAt,
      })
      .from(mcpCredentials)
      .innerJoin(mcpServers, eq(mcpServers.serverId, mcpCredentials.serverId))
      .where(eq(mcpServers.instanceId, p("instanceId"))),
  );
  const replace = prepared(db, () =>
    db
      .insert(mcpCredentials)
      .values(placeholdersOfRow(mcpCredentials))
      .onConflictDoUpdate({
        target: mcpCredentials.serverId,
        set: {
          issuer: sql`excluded.issuer`,
          dataKeyId: sql`excluded.data_key_id`,
          sealed: sql`excluded.sealed`,
          updatedAt: sql`excluded.updated_at`,
        },
      }),
  );

  return {
    /** One at most waits for each server: the one before it is no longer good. */
    begin(row: PendingRow): void {
      db.delete(mcpAuthorizations).where(eq(mcpAuthorizations.serverId, row.serverId)).run();
      db.insert(mcpAuthorizations).values(row).run();
    },
    /** Removes it, so that it is found once. */
    take: (stateHash: Buffer): PendingRow | undefined => take.get({ stateHash }),
    /** Returns how many there were. */
    removeExpired(now: number, limit: number): number {
      const { serverId, expiresAt } = mcpAuthorizations;
      const old = db.select({ serverId }).from(mcpAuthorizations).where(lt(expiresAt, now)).limit(limit);
      return db.delete(mcpAuthorizations).where(sql`${serverId} IN ${old}`).returning({ serverId }).all().length;
    },
    find: (serverId: string): CredentialsRow | undefined => find.get({ serverId }),
    ofInstance: (instanceId: string): CredentialsRow[] => ofInstance.all({ instanceId }),
    put: (row: CredentialsRow): void => replace.run(row),
    /** Returns what there was. */
    remove: (serverId: string): CredentialsRow | undefined => remove.get({ serverId }),
    /** Whether it is still what it was. */
    isUnchanged: ({ serverId, sealed }: CredentialsRow): boolean =>
      db
        .select({ serverId: mcpCredentials.serverId })
        .from(mcpCredentials)
        .where(and(eq(mcpCredentials.serverId, serverId), eq(mcpCredentials.sealed, sealed)))
        .get() !== undefined,
  };
}
