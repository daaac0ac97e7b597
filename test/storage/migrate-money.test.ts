import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLedger } from "../../src/ledger/ledger.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { migrate, SCHEMA_VERSION, schemaVersion } from "../../src/storage/migrate.ts";
import firstLight from "../../src/storage/migrations/0001-first-light.sql" with { type: "text" };
import money from "../../src/storage/migrations/0002-money.sql" with { type: "text" };
import { openStore, type Store } from "../../src/storage/store.ts";
import { checkBooks } from "../meter/metered.ts";

let dataDir: string;
const path = () => join(dataDir, "roost.db");

/** A data folder as the first release left it: three accounts, their credits, an invoice, instances. */
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-migrate-money-"));
  using sqlite = new Database(path(), { create: true, strict: true });
  sqlite.run("PRAGMA journal_mode = WAL");
  sqlite.run("PRAGMA foreign_keys = ON");
  migrate(sqlite, dataDir, [firstLight]);
  sqlite.run(OLD_DATA);
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const OLD_DATA = `
  INSERT INTO accounts (account_id, email, name, monthly_limit, created_at) VALUES
    ('acct_a', 'ada@example.org', 'Ada', 5000000, 1), ('acct_b', 'bob@example.org', 'Bob', NULL, 2),
    ('acct_c', 'cyd@example.org', 'Cyd', NULL, 3);
  INSERT INTO journal_entries VALUES
    ('txn_3', 'credit', 'acct_a', NULL, 'invite', 10), ('txn_1', 'credit', 'acct_b', NULL, 'invite', 11),
    ('txn_2', 'credit', 'acct_a', NULL, 'for the talk', 9), ('txn_4', 'reversal', 'acct_a', NULL, 'too much', 12);
  INSERT INTO postings VALUES
    ('txn_3', 'customer:acct_a', 10000000), ('txn_3', 'grants', -10000000),
    ('txn_1', 'customer:acct_b', 1), ('txn_1', 'grants', 6), ('txn_1', 'receivable:acct_b', -7),
    ('txn_2', 'customer:acct_a', 2500000), ('txn_2', 'grants', -2500000),
    ('txn_4', 'customer:acct_a', -500000), ('txn_4', 'grants', 500000);
  INSERT INTO balances VALUES ('acct_a', 12000000, 0), ('acct_b', 1, 7), ('acct_c', 0, 0);
  INSERT INTO invoices VALUES ('inv_1', 'acct_c', 1001234, 'open', '{}', 20, 30, NULL);
  INSERT INTO instances (instance_id, account_id, name, status, agent_count, created_at, started_at) VALUES
    ('inst_1', 'acct_a', 'one', 'running', 1, 4, 4), ('inst_2', 'acct_b', 'two', 'stopped', 0, 5, 5);
  INSERT INTO agents (agent_id, instance_id, name, slug, display_name, created_at, updated_at) VALUES
    ('agt_1', 'inst_1', 'Ada', 'ada', 'Ada', 6, 6);`;

const all = (store: Store, sql: string) => store.sqlite.query(sql).values();

function checkEverything(store: Store): void {
  checkBooks({ store });
  expect(all(store, "PRAGMA foreign_key_check")).toEqual([]);
  expect(all(store, "PRAGMA integrity_check")).toEqual([["ok"]]);
  const entries = "transaction_id, type, account_id, note, balance_after, created_at";
  // In the order in which they were written, which is not that of ids or times.
  expect(all(store, `SELECT ${entries} FROM journal_entries ORDER BY entry_id`)).toEqual([
    ["txn_3", "credit", "acct_a", "invite", 10_000_000, 10],
    ["txn_1", "credit", "acct_b", "invite", 1, 11],
    ["txn_2", "credit", "acct_a", "for the talk", 12_500_000, 9],
    ["txn_4", "reversal", "acct_a", "too much", 12_000_000, 12],
  ]);
  expect(all(store, "SELECT count(*), sum(amount) FROM postings")).toEqual([[9, 0]]);
  expect(all(store, "SELECT account_id, balance, unposted, owed, month, spent, runway_warned FROM balances")).toEqual([
    ["acct_a", 12_000_000, 0, 0, "", 0, null],
    ["acct_b", 1, 0, 7, "", 0, null],
    ["acct_c", 0, 0, 0, "", 0, null],
  ]);
  expect(all(store, "SELECT instance_id, account_id, accrued, remainder, unposted FROM meters")).toEqual([
    ["inst_1", "acct_a", 0, 0, 0],
    ["inst_2", "acct_b", 0, 0, 0],
  ]);
  expect(all(store, "SELECT instance_id, name, status, agent_count FROM instances")).toEqual([
    ["inst_1", "one", "running", 1],
    ["inst_2", "two", "stopped", 0],
  ]);
  expect(all(store, "SELECT agent_id, instance_id FROM agents")).toEqual([["agt_1", "inst_1"]]);
  expect(all(store, "SELECT invoice_id, amount, status FROM invoices")).toEqual([["inv_1", 1_001_234, "open"]]);
  expect(all(store, "SELECT account_id, monthly_limit FROM accounts ORDER BY 1")).toEqual([
    ["acct_a", 5_000_000],
    ["acct_b", null],
    ["acct_c", null],
  ]);
}

test("the first release's data is complete and balanced, and can be posted to", () => {
  const store = openStore(dataDir);
  checkEverything(store);
  const ledger = createLedger(store, systemClock);
  const accountId = "acct_a";
  ledger.post({ type: "reversal", accountId, amount: -5n, against: "grants", note: "too much again" });
  expect(ledger.accountBalance(accountId).balance).toBe(11_999_995n);
  checkBooks({ store });
  store.close();
  using sqlite = new Database(path());
  expect(schemaVersion(sqlite)).toBe(SCHEMA_VERSION);
});

test("the journal stays append-only, and its totals stay equal to their postings", () => {
  const store = openStore(dataDir);
  const refused = (sql: string, why: string) =>
    expect(() => store.transaction(() => store.sqlite.run(sql))).toThrow(why);
  refused("UPDATE journal_entries SET note = 'x' WHERE transaction_id = 'txn_1'", "the journal is append-only");
  refused("DELETE FROM journal_entries WHERE transaction_id = 'txn_1'", "the journal is append-only");
  refused("UPDATE postings SET amount = 1", "postings are append-only");
  refused("DELETE FROM postings", "postings are append-only");
  refused("INSERT INTO postings VALUES (99, 'grants', 1)", "FOREIGN KEY");
  refused("UPDATE balances SET balance = -1", "CHECK");
  refused("UPDATE balances SET unposted = balance + 1", "CHECK");
  refused("UPDATE balances SET unposted = -1", "CHECK");
  checkEverything(store);
  store.close();
});

test("a copy of the original data is kept", () => {
  openStore(dataDir).close();
  const [name = "", ...more] = readdirSync(join(dataDir, "backups"));
  expect(more).toEqual([]);
  using backup = new Database(join(dataDir, "backups", name), { readonly: true });
  expect(schemaVersion(backup)).toBe(1);
  expect(backup.query("SELECT sum(balance) AS sum FROM balances").get()).toEqual({ sum: 12_000_001 });
});

test("a migration that is interrupted leaves the first release's data, which the next start migrates", () => {
  using sqlite = new Database(path(), { strict: true });
  expect(() => migrate(sqlite, dataDir, [firstLight, `${money}; DROP TABLE nothing_of_that_name;`])).toThrow();
  expect(schemaVersion(sqlite)).toBe(1);
  expect(sqlite.query("SELECT sum(amount) AS sum FROM postings WHERE ledger_account = 'grants'").get()).toEqual({
    sum: -11_999_994,
  });
  sqlite.close();
  const store = openStore(dataDir);
  checkEverything(store);
  store.close();
});

test("a process killed in the middle leaves nothing half done", async () => {
  const program = `
    const { Database } = await import("bun:sqlite");
    const sqlite = new Database(${JSON.stringify(path())});
    sqlite.run("PRAGMA foreign_keys = ON");
    sqlite.run("PRAGMA cache_size = 1");
    sqlite.run("BEGIN EXCLUSIVE");
    sqlite.run(await Bun.file(${JSON.stringify(join(import.meta.dir, "../../src/storage/migrations/0002-money.sql"))}).text());
    process.kill(process.pid, "SIGKILL");`;
  const child = Bun.spawn([process.execPath, "-e", program], { stdin: "ignore", stderr: "pipe" });
  await child.exited;
  expect([child.signalCode, await new Response(child.stderr).text()]).toEqual(["SIGKILL", ""]);
  const store = openStore(dataDir);
  checkEverything(store);
  store.close();
});

test("an empty folder and one of the first release end with the same schema", () => {
  const fresh = mkdtempSync(join(tmpdir(), "roost-migrate-fresh-"));
  try {
    const schemaOf = (folder: string) => {
      const store = openStore(folder);
      const schema = all(store, "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name");
      store.close();
      return schema;
    };
    expect(schemaOf(dataDir)).toEqual(schemaOf(fresh));
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
});
