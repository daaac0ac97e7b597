import { and, asc, count, desc, eq, gt, sql } from "drizzle-orm";
import { prepared } from "../storage/prepared.ts";
import type { Db } from "../storage/store.ts";
import { type DataKeyRow, dataKeys, type Secret, type SecretName, secrets } from "./schema.ts";

export function secretQueries(db: Db) {
  const p = sql.placeholder;
  const ofInstance = eq(secrets.instanceId, p("instanceId"));
  const name = { key: secrets.key, createdAt: secrets.createdAt, updatedAt: secrets.updatedAt };
  const find = prepared(db, () =>
    db
      .select()
      .from(secrets)
      .where(and(ofInstance, eq(secrets.key, p("key")))),
  );
  const page = prepared(db, () =>
    db
      .select(name)
      .from(secrets)
      .where(and(ofInstance, gt(secrets.key, p("after"))))
      .orderBy(asc(secrets.key))
      .limit(p("limit")),
  );
  const all = prepared(db, () => db.select().from(secrets).where(ofInstance));
  const versions = prepared(db, () =>
    db
      .select({ ...name, dataKeyId: secrets.dataKeyId })
      .from(secrets)
      .where(ofInstance)
      .orderBy(asc(secrets.key)),
  );
  // SQLite knows a value's length without reading it.
  const bytes = prepared(db, () =>
    db
      .select({ bytes: sql<number>`coalesce(sum(octet_length(${secrets.sealed})), 0)`, count: count() })
      .from(secrets)
      .where(ofInstance),
  );
  const put = prepared(db, () =>
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
          // Another value is always of another time, whatever the clock says.
          updatedAt: sql`max(excluded.updated_at, ${secrets.updatedAt} + 1)`,
          sealed: sql`excluded.sealed`,
        },
      }),
  );
  const remove = prepared(db, () =>
    db
      .delete(secrets)
      .where(and(ofInstance, eq(secrets.key, p("key"))))
      .returning({ key: secrets.key }),
  );

  return {
    find: (instanceId: string, key: string): Secret | undefined => find.get({ instanceId, key }),
    /** By name, ascending; names are never empty, so `""` is before all of them. */
    page: (instanceId: string, after: string, limit: number): SecretName[] => page.all({ instanceId, after, limit }),
    all: (instanceId: string): Secret[] => all.all({ instanceId }),
    /** What changes with any of them, without their values. */
    versions: (instanceId: string): (SecretName & { dataKeyId: number })[] => versions.all({ instanceId }),
    /** How many there are, and the bytes of all as they are kept. */
    size: (instanceId: string): { bytes: number; count: number } => bytes.get({ instanceId }) ?? { bytes: 0, count: 0 },
    /** Inserts a secret or replaces its value. */
    put: (row: Omit<Secret, "createdAt" | "updatedAt"> & { now: number }) => void put.run(row),
    /** False if there was none. */
    remove: (instanceId: string, key: string): boolean => remove.get({ instanceId, key }) !== undefined,
    countByDataKey: (): { dataKeyId: number; secrets: number }[] =>
      db.select({ dataKeyId: secrets.dataKeyId, secrets: count() }).from(secrets).groupBy(secrets.dataKeyId).all(),
  };
}

export function dataKeyQueries(db: Db) {
  const newestFirst = prepared(db, () => db.select().from(dataKeys).orderBy(desc(dataKeys.dataKeyId)));
  const find = prepared(db, () =>
    db
      .select()
      .from(dataKeys)
      .where(eq(dataKeys.dataKeyId, sql.placeholder("dataKeyId"))),
  );
  return {
    newestFirst: (): DataKeyRow[] => newestFirst.all(),
    find: (dataKeyId: number): DataKeyRow | undefined => find.get({ dataKeyId }),
    add: (row: DataKeyRow) => void db.insert(dataKeys).values(row).run(),
  };
}
