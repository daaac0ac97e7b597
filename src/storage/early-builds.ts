import type { Database } from "bun:sqlite";
import workspaceFiles from "./migrations/0005-workspace-files.sql" with { type: "text" };
import skillSizes from "./migrations/0006-skill-sizes.sql" with { type: "text" };
import runChecks from "./migrations/0016-run-checks.sql" with { type: "text" };

/**
 * Before the first release, some builds had the migrations in another order, or one of them without what was added to it
 * later. Gives a database of theirs what it lacks, and returns its version by today's list.
 */
export function catchUp(sqlite: Database, version: number): number {
  addMissing(sqlite);
  if (version >= 5 && version <= 7 && !hasTable(sqlite, "workspace_files")) {
    sqlite.run(workspaceFiles);
    if (version > 5) return version === 6 ? 7 : 8;
    sqlite.run(skillSizes);
    return 7;
  }
  if (version === 16 && hasTable(sqlite, "responses")) {
    checkRunsWithOutput(sqlite);
    return 17;
  }
  return version;
}

function addMissing(sqlite: Database): void {
  if (lacks(sqlite, "claims", "payer")) {
    sqlite.run(`ALTER TABLE claims ADD COLUMN payer TEXT;
      ALTER TABLE claims ADD COLUMN amount INTEGER CHECK (amount > 0) CHECK ((payer IS NULL) = (amount IS NULL))`);
  }
  if (lacks(sqlite, "payments", "told")) {
    sqlite.run("ALTER TABLE payments ADD COLUMN told INTEGER NOT NULL DEFAULT 0 CHECK (told IN (0, 1))");
  }
  if (lacks(sqlite, "approvals", "basis")) {
    sqlite.run(`ALTER TABLE approvals ADD COLUMN basis TEXT;
      DROP INDEX open_approvals_by_run;
      CREATE INDEX open_approvals_by_run ON approvals (run_id, approval_id) WHERE status = 'open';
      CREATE INDEX IF NOT EXISTS open_approvals_by_account ON approvals (account_id) WHERE status = 'open';
      CREATE INDEX IF NOT EXISTS approval_rules_by_agent ON approval_rules (agent_id, rule_id)`);
  }
}

/** `runChecks` makes the table of runs anew, without the column that only this build had by then. */
function checkRunsWithOutput(sqlite: Database): void {
  sqlite.run("CREATE TEMP TABLE outputs AS SELECT run_id, output FROM runs WHERE output IS NOT NULL");
  sqlite.run(runChecks);
  sqlite.run(`ALTER TABLE runs ADD COLUMN output TEXT;
    UPDATE runs SET output = outputs.output FROM temp.outputs WHERE outputs.run_id = runs.run_id;
    DROP TABLE temp.outputs;
    CREATE TRIGGER run_output_over AFTER UPDATE OF status ON runs
      WHEN NEW.output IS NOT NULL AND (NEW.status = 'completed' OR NEW.status = 'failed' OR NEW.status = 'cancelled')
    BEGIN
      UPDATE runs SET output = NULL WHERE run_id = NEW.run_id;
    END`);
}

const hasTable = (sqlite: Database, name: string): boolean =>
  sqlite.query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(name) !== null;

/** Whether the table is there, and the column is not. */
const lacks = (sqlite: Database, table: string, column: string): boolean =>
  hasTable(sqlite, table) &&
  sqlite.query("SELECT 1 FROM pragma_table_info(?) WHERE name = ?").get(table, column) === null;
