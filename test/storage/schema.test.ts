import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SCHEMA_FILE, schemaFile } from "../../scripts/schema.ts";
import { MIGRATIONS, SCHEMA_VERSION } from "../../src/storage/migrate.ts";
import { openStore } from "../../src/storage/store.ts";

test("src/storage/schema.sql is what `npm run schema` generates", async () => {
  const isCurrent = (await Bun.file(SCHEMA_FILE).text()) === schemaFile();
  expect(isCurrent, "the migrations have changed: run `npm run schema`").toBe(true);
});

test("every file among the migrations is one of them", () => {
  expect(readdirSync(join(import.meta.dir, "../../src/storage/migrations"))).toHaveLength(SCHEMA_VERSION);
});

/** Everything in the database but where its pages lie; of a table, what was made first comes first. */
function contents(sqlite: Database) {
  const tables = sqlite
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .all();
  return {
    version: sqlite.query("PRAGMA user_version").get(),
    schema: sqlite.query("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, tbl_name, rowid").all(),
    rows: tables.map(({ name }) => [name, sqlite.query(`SELECT * FROM "${name}"`).values()]),
  };
}

test("a new data folder has the very schema and rows that the migrations make one by one", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-schema-"));
  using _ = { [Symbol.dispose]: () => rmSync(dataDir, { recursive: true, force: true }) };
  using migrated = new Database(":memory:", { strict: true });
  for (const sql of MIGRATIONS) migrated.run(sql);
  migrated.run(`PRAGMA user_version = ${SCHEMA_VERSION}`);
  const store = openStore(dataDir);
  try {
    expect(contents(store.sqlite)).toEqual(contents(migrated));
    expect(store.sqlite.query("PRAGMA integrity_check").values()).toEqual([["ok"]]);
  } finally {
    store.close();
  }
});
