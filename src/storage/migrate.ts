import type { Database } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import firstLight from "./migrations/0001-first-light.sql" with { type: "text" };
import money from "./migrations/0002-money.sql" with { type: "text" };
import authorizations from "./migrations/0003-authorizations.sql" with { type: "text" };
import accountLimits from "./migrations/0004-account-limits.sql" with { type: "text" };
import workspaceFiles from "./migrations/0005-workspace-files.sql" with { type: "text" };
import skillSizes from "./migrations/0006-skill-sizes.sql" with { type: "text" };
import signIn from "./migrations/0007-sign-in.sql" with { type: "text" };
import auditAndIdempotency from "./migrations/0008-audit-and-idempotency.sql" with { type: "text" };
import history from "./migrations/0009-history.sql" with { type: "text" };
import invoiceAddress from "./migrations/0010-invoice-address.sql" with { type: "text" };
import conversations from "./migrations/0011-conversations.sql" with { type: "text" };
import waitingRuns from "./migrations/0012-waiting-runs.sql" with { type: "text" };
import approvals from "./migrations/0013-approvals.sql" with { type: "text" };
import skillPins from "./migrations/0014-skill-pins.sql" with { type: "text" };
import eventRows from "./migrations/0015-event-rows.sql" with { type: "text" };
import runChecks from "./migrations/0016-run-checks.sql" with { type: "text" };

/** Oldest first; a migration that was released is never edited. Its position in the list is the schema's version. */
const MIGRATIONS: readonly string[] = [
  firstLight,
  money,
  authorizations,
  accountLimits,
  workspaceFiles,
  skillSizes,
  signIn,
  auditAndIdempotency,
  history,
  invoiceAddress,
  conversations,
  waitingRuns,
  approvals,
  skillPins,
  eventRows,
  runChecks,
];

export const SCHEMA_VERSION = MIGRATIONS.length;

/** The schema version of a database; 0 if it is empty. */
export const schemaVersion = (sqlite: Database): number =>
  sqlite.query<{ user_version: number }, []>("PRAGMA user_version").get()?.user_version ?? 0;

/**
 * Brings the schema to this binary's version in one transaction, after a copy into `<data>/backups/`, so that a failed
 * migration leaves the data as it was. Throws when the data is newer than the binary (docs/contract/operations.md,
 * Upgrades) or another program's.
 */
export function migrate(sqlite: Database, dataDir: string, migrations: readonly string[] = MIGRATIONS): void {
  const from = schemaVersion(sqlite);
  if (from === migrations.length) return;
  if (from > migrations.length) {
    throw new Error(
      `the data in ${dataDir} was written by a newer Roost (schema ${from}; this one supports ${migrations.length}); start the newer binary`,
    );
  }
  if (from === 0 && sqlite.query("SELECT 1 FROM sqlite_schema").get() !== null) {
    throw new Error(`the database in ${dataDir} is not Roost's; choose another data folder with --data`);
  }
  if (from > 0) backUpBeforeMigrating(sqlite, dataDir, from);
  sqlite
    .transaction(() => {
      // Read again: another process may have migrated while this one waited.
      for (const sql of migrations.slice(schemaVersion(sqlite))) sqlite.run(sql);
      sqlite.run(`PRAGMA user_version = ${migrations.length}`);
    })
    .exclusive();
}

function backUpBeforeMigrating(sqlite: Database, dataDir: string, version: number): void {
  const folder = join(dataDir, "backups");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const time = new Date().toISOString().replaceAll(/[:.]/g, "-");
  sqlite.run("VACUUM INTO ?", [join(folder, `before-migration-from-${version}-${time}.db`)]);
}
