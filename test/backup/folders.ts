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

/** Adds the agent `agt_a` of the instance `inst_a`: its files are in `instances/inst_a/agents/<slug>`. */
export function addAgent(dataDir: string, slug: string): void {
  using sqlite = new Database(join(dataDir, "roost.db"), { readwrite: true });
  sqlite.run("INSERT INTO accounts (account_id, email, name, created_at) VALUES ('acct_a', 'a@example.org', 'x', 1)");
  sqlite.run(
    "INSERT INTO instances (instance_id, account_id, name, status, created_at) VALUES ('inst_a', 'acct_a', 'x', 'stopped', 1)",
  );
  sqlite.run(
    `INSERT INTO agents (agent_id, instance_id, name, slug, display_name, created_at, updated_at)
     VALUES ('agt_a', 'inst_a', 'x', ?, 'x', 1, 1)`,
    [slug],
  );
}
