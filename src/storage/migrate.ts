import type { Database } from "bun:sqlite";
import { existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { shortageNow } from "../lib/free-space.ts";
import {
  copyPrivateFile,
  hasSameContent,
  keepOwner,
  makePrivateFolder,
  syncFile,
  syncFolder,
} from "../lib/private-file.ts";
import { bytesOfCopy, waitForOthers } from "./connection.ts";
import { catchUp } from "./early-builds.ts";
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
import responses from "./migrations/0017-responses.sql" with { type: "text" };
import arrivals from "./migrations/0018-arrivals.sql" with { type: "text" };
import schedules from "./migrations/0019-schedules.sql" with { type: "text" };
import memory from "./migrations/0020-memory.sql" with { type: "text" };
import summaries from "./migrations/0021-summaries.sql" with { type: "text" };
import modelUsage from "./migrations/0022-model-usage.sql" with { type: "text" };
import heartbeats from "./migrations/0023-heartbeats.sql" with { type: "text" };
import retention from "./migrations/0024-retention.sql" with { type: "text" };
import delegations from "./migrations/0025-delegations.sql" with { type: "text" };
import scheduleIds from "./migrations/0026-schedule-ids.sql" with { type: "text" };
import mcpServers from "./migrations/0027-mcp-servers.sql" with { type: "text" };
import mcpAuthorizations from "./migrations/0028-mcp-authorizations.sql" with { type: "text" };
import fewerPages from "./migrations/0029-fewer-pages.sql" with { type: "text" };
import messageNumbers from "./migrations/0030-message-numbers.sql" with { type: "text" };
import runIndexes from "./migrations/0031-run-indexes.sql" with { type: "text" };
import schema from "./schema.sql" with { type: "text" };

/**
 * Oldest first; a migration that was released is never edited. Its position in the list is the schema's version. After a
 * change, `npm run schema` generates schema.sql again.
 */
export const MIGRATIONS: readonly string[] = [
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
  responses,
  arrivals,
  schedules,
  memory,
  summaries,
  modelUsage,
  heartbeats,
  retention,
  delegations,
  scheduleIds,
  mcpServers,
  mcpAuthorizations,
  fewerPages,
  messageNumbers,
  runIndexes,
];

export const SCHEMA_VERSION = MIGRATIONS.length;

/** How long a command waits for a server that migrates at the same moment: much data takes a while. */
const MIGRATION_WAIT_MS = 120_000;

/** The schema version of a database; 0 if it is empty. */
export const schemaVersion = (sqlite: Database): number =>
  sqlite.query<{ user_version: number }, []>("PRAGMA user_version").get()?.user_version ?? 0;

/**
 * Brings the schema to this binary's version in one transaction, after a copy into `<data>/backups/`, so that a failed
 * migration leaves the data as it was. An empty database gets the whole schema at once. Throws when the data is newer than
 * the binary (docs/contract/operations.md, Upgrades) or another program's, or if the disk has no room for the copy.
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
  const copy = from > 0 ? copyFor(dataDir, from) : null;
  const migrateAll = sqlite.transaction(() => {
    // Read again: another process may have migrated while this one waited.
    const version = schemaVersion(sqlite);
    if (version === 0 && migrations === MIGRATIONS) sqlite.run(schema);
    else for (const sql of migrations.slice(catchUp(sqlite, version))) sqlite.run(sql);
    sqlite.run(`PRAGMA user_version = ${migrations.length}`);
  });
  try {
    if (copy !== null) backUpBeforeMigrating(sqlite, dataDir, copy);
    waitForOthers(sqlite, MIGRATION_WAIT_MS);
    migrateAll.exclusive();
  } catch (error) {
    // Each of a service manager's restarts would leave one more.
    if (copy !== null) removeCopy(copy);
    throw error;
  } finally {
    waitForOthers(sqlite);
  }
}

const COPY = /^before-migration-from-(\d+)-(\d{4}-\d\d-\d\dT\d\d)-(\d\d)-(\d\d)-(\d{3})Z\.db$/;
const AUDIT_HEAD = "audit-head.json";

function copyFor(dataDir: string, version: number): string {
  const time = new Date().toISOString().replaceAll(/[:.]/g, "-");
  return join(dataDir, "backups", `before-migration-from-${version}-${time}.db`);
}

/** In the folder of the copies: where one is made until it is whole. */
const WORK = ".migration";

/** The copy gets its name when it is whole; what attempts that were killed have left goes. */
function backUpBeforeMigrating(sqlite: Database, dataDir: string, copy: string): void {
  const folder = dirname(copy);
  const work = join(folder, WORK);
  rmSync(work, { recursive: true, force: true });
  makePrivateFolder(work);
  try {
    const shortage = shortageNow(folder, bytesOfCopy(sqlite));
    if (shortage !== null) throw new Error(`a copy of the database from before its migration ${shortage}`);
    const unfinished = join(work, basename(copy));
    // A rollback needs the checkpoint that belongs to the database: the audit log would otherwise seem cut short.
    const head = existsSync(join(dataDir, AUDIT_HEAD));
    if (head) copyPrivateFile(join(dataDir, AUDIT_HEAD), auditHeadOf(unfinished));
    sqlite.run("VACUUM INTO ?", [unfinished]);
    keepOwner(folder, unfinished);
    syncFile(unfinished);
    const same = copiesBeforeMigrations(dataDir).filter(({ path }) => hasSameContent(path, unfinished));
    if (head) renameSync(auditHeadOf(unfinished), auditHeadOf(copy));
    renameSync(unfinished, copy);
    syncFolder(folder);
    syncFolder(dataDir);
    for (const { path } of same) removeCopy(path);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function removeCopy(copy: string): void {
  for (const path of [copy, auditHeadOf(copy)]) rmSync(path, { force: true });
}

const auditHeadOf = (copy: string): string => copy.replace(/db$/, AUDIT_HEAD);

/** A copy of the database from before a migration. */
export interface DatabaseCopy {
  path: string;
  /** Its schema. */
  version: number;
  /** When it was made, in milliseconds since 1970. */
  atMs: number;
  /** The file `audit-head.json` of that time; null if there was none. */
  auditHead: string | null;
}

/** Newest first. */
export function copiesBeforeMigrations(dataDir: string): DatabaseCopy[] {
  const folder = join(dataDir, "backups");
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const copies = names.flatMap((name) => {
    const [, version, hour, minute, second, ms] = COPY.exec(name) ?? [];
    if (version === undefined) return [];
    const path = join(folder, name);
    const auditHead = existsSync(auditHeadOf(path)) ? auditHeadOf(path) : null;
    return [{ path, version: Number(version), atMs: Date.parse(`${hour}:${minute}:${second}.${ms}Z`), auditHead }];
  });
  return copies.sort((one, other) => other.atMs - one.atMs);
}
