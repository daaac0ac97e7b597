import { and, asc, count, desc, eq, gt, ne, sql } from "drizzle-orm";
import { blob, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { lazily } from "../lib/lazily.ts";
import type { Db } from "../storage/store.ts";

const secrets = sqliteTable(
  "secrets",
  {
    instanceId: text("instance_id").notNull(),
    key: text("key").notNull(),
    dataKeyId: integer("data_key_id").notNull(),
    createdAt: integer("created_at").notNull(),
    updatedAt: integer("updated_at").notNull(),
    sealed: blob("sealed", { mode: "buffer" }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.instanceId, table.key] })],
);

const dataKeys = sqliteTable("data_keys", {
  dataKeyId: integer("data_key_id").primaryKey(),
  wrapped: blob("wrapped", { mode: "buffer" }).notNull(),
  createdAt: integer("created_at").notNull(),
});

export type Secret = typeof secrets.$inferSelect;
/** What may be told of a secret: everything but its value. */
export type SecretName = Pick<Secret, "key" | "createdAt" | "updatedAt">;
export type DataKeyRow = typeof dataKeys.$inferSelect;

export function secretTable(db: Db) {
  const p = sql.placeholder;
  const ofInstance = eq(secrets.instanceId, p("instanceId"));
  const name = { key: secrets.key, createdAt: secrets.createdAt, updatedAt: secrets.updatedAt };
  const find = lazily(() =>
    db
      .select()
      .from(secrets)
      .where(and(ofInstance, eq(secrets.key, p("key"))))
      .prepare(),
  );
  const page = lazily(() =>
    db
      .select(name)
      .from(secrets)
      .where(and(ofInstance, gt(secrets.key, p("after"))))
      .orderBy(asc(secrets.key))
      .limit(p("limit"))
      .prepare(),
  );
  const put = lazily(() =>
    db
      .insert(secrets)
      .values({
        instanceId: p("instanceId"),
        key: p("key"),
        dataKeyId: p("dataKeyId"),
        createdAt: p("now"),
        updatedAt: p("now"),
        sealed: p("sealed"),
      })
      .onConflictDoUpdate({
        target: [secrets.instanceId, secrets.key],
        set: {
          dataKeyId: sql`excluded.data_key_id`,
          updatedAt: sql`excluded.updated_at`,
          sealed: sql`excluded.sealed`,
        },
      })
      .prepare(),
  );
  const remove = lazily(() =>
    db
      .delete(secrets)
      .where(and(ofInstance, eq(secrets.key, p("key"))))
      .returning({ key: secrets.key })
      .prepare(),
  );

  return {
    find: (instanceId: string, key: string): Secret | undefined => find().get({ instanceId, key }),
    /** By name, ascending; names are never empty, so `""` is before all of them. */
    page: (instanceId: string, after: string, limit: number): SecretName[] => page().all({ instanceId, after, limit }),
    /** A new one, or a new value of one that is there. */
    put: (row: Omit<Secret, "createdAt" | "updatedAt"> & { now: number }) => void put().run(row),
    /** False where there was none. */
    remove: (instanceId: string, key: string): boolean => remove().get({ instanceId, key }) !== undefined,
    /** Some that are sealed under another data key than this. */
    sealedUnderOthers: (dataKeyId: number, limit: number): Secret[] =>
      db.select().from(secrets).where(ne(secrets.dataKeyId, dataKeyId)).limit(limit).all(),
    reseal: ({ instanceId, key, dataKeyId, sealed }: Omit<Secret, "createdAt" | "updatedAt">) =>
      void db
        .update(secrets)
        .set({ dataKeyId, sealed })
        .where(and(eq(secrets.instanceId, instanceId), eq(secrets.key, key)))
        .run(),
    countByDataKey: (): { dataKeyId: number; secrets: number }[] =>
      db.select({ dataKeyId: secrets.dataKeyId, secrets: count() }).from(secrets).groupBy(secrets.dataKeyId).all(),
  };
}

export function dataKeyTable(db: Db) {
  const newestFirst = lazily(() => db.select().from(dataKeys).orderBy(desc(dataKeys.dataKeyId)).prepare());
  const find = lazily(() =>
    db
      .select()
      .from(dataKeys)
      .where(eq(dataKeys.dataKeyId, sql.placeholder("dataKeyId")))
      .prepare(),
  );
  return {
    newestFirst: (): DataKeyRow[] => newestFirst().all(),
    find: (dataKeyId: number): DataKeyRow | undefined => find().get({ dataKeyId }),
    add: (row: DataKeyRow) => void db.insert(dataKeys).values(row).run(),
    removeAllBut: (dataKeyId: number) => void db.delete(dataKeys).where(ne(dataKeys.dataKeyId, dataKeyId)).run(),
  };
}
