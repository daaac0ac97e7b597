import { Database } from "bun:sqlite";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Every row of every table. */
export function rowsIn(dataDir: string): Record<string, unknown[]> {
  using sqlite = new Database(join(dataDir, "roost.db"), { readwrite: true });
  const tables = sqlite.query<{ name: string }, []>(
    "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name",
  );
  return Object.fromEntries(tables.all().map(({ name }) => [name, sqlite.query(`SELECT * FROM "${name}"`).values()]));
}

/** Keys and workspaces, by name. */
export function filesIn(dataDir: string): Record<string, string> {
  const names = [...new Bun.Glob("{*.json,*.key,instances/**/*}").scanSync({ cwd: dataDir })].sort();
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(dataDir, name)).toString("base64")]));
}
