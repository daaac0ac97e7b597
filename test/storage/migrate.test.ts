import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import fs, { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import {
  copiesBeforeMigrations,
  MIGRATIONS,
  migrate,
  SCHEMA_VERSION,
  schemaVersion,
} from "../../src/storage/migrate.ts";
import { openStore } from "../../src/storage/store.ts";
import { enlarge, tooMuch } from "../support/too-large.ts";

let dataDir: string;
let sqlite: Database;

const FIRST = "CREATE TABLE notes (note TEXT NOT NULL) STRICT; INSERT INTO notes VALUES ('old');";
const SECOND = "ALTER TABLE notes ADD COLUMN author TEXT NOT NULL DEFAULT 'nobody';";
const BROKEN = "UPDATE notes SET note = 'half done'; DROP TABLE nothing_of_that_name;";

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-migrate-"));
  sqlite = new Database(join(dataDir, "roost.db"), { create: true, strict: true });
});
afterEach(() => {
  sqlite.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const backups = () =>
  statSync(join(dataDir, "backups"), { throwIfNoEntry: false }) ? readdirSync(join(dataDir, "backups")) : [];

test("an empty file gets the whole schema, and no backup of nothing", () => {
  migrate(sqlite, dataDir, [FIRST, SECOND]);
  expect(schemaVersion(sqlite)).toBe(2);
  expect(sqlite.query("SELECT * FROM notes").all()).toEqual([{ note: "old", author: "nobody" }]);
  expect(backups()).toEqual([]);
});

test("an older file is copied first, then brought up to date", () => {
  migrate(sqlite, dataDir, [FIRST]);
  migrate(sqlite, dataDir, [FIRST, SECOND]);
  expect(sqlite.query("SELECT * FROM notes").all()).toEqual([{ note: "old", author: "nobody" }]);
  const [name = "", ...more] = backups();
  expect(more).toEqual([]);
  expect(name).toStartWith("before-migration-from-1-");
  expect(statSync(join(dataDir, "backups")).mode & 0o777).toBe(0o700);
  using backup = new Database(join(dataDir, "backups", name), { readonly: true });
  expect(schemaVersion(backup)).toBe(1);
  expect(backup.query("SELECT * FROM notes").all()).toEqual([{ note: "old" }]);
});

test("the copy is on disk, with its checkpoint and its name, before anything is changed", () => {
  migrate(sqlite, dataDir, [FIRST]);
  writeFileSync(join(dataDir, "audit-head.json"), "{}");
  const synced: unknown[] = [];
  const { fsyncSync } = fs;
  const spy = spyOn(fs, "fsyncSync").mockImplementation((file) => {
    fsyncSync(file);
    synced.push([basename(fs.readlinkSync(`/proc/self/fd/${file}`)), schemaVersion(sqlite)]);
  });
  try {
    migrate(sqlite, dataDir, [FIRST, SECOND]);
  } finally {
    spy.mockRestore();
  }
  const names = [...backups(), "backups", basename(dataDir)];
  expect(names).toHaveLength(4);
  expect(synced).toEqual(expect.arrayContaining(names.map((name) => [name, 1])));
});

test("a migration that fails leaves the data and its version unchanged", () => {
  migrate(sqlite, dataDir, [FIRST]);
  expect(() => migrate(sqlite, dataDir, [FIRST, SECOND, BROKEN])).toThrow("nothing_of_that_name");
  expect(schemaVersion(sqlite)).toBe(1);
  expect(sqlite.query("SELECT * FROM notes").all()).toEqual([{ note: "old" }]);
  expect(sqlite.inTransaction).toBe(false);
  migrate(sqlite, dataDir, [FIRST, SECOND]);
  expect(schemaVersion(sqlite)).toBe(2);
});

test("a migration that fails at each of many starts leaves no copies, but those from before", () => {
  migrate(sqlite, dataDir, [FIRST]);
  migrate(sqlite, dataDir, [FIRST, SECOND]);
  const earlier = backups();
  writeFileSync(join(dataDir, "audit-head.json"), "{}");
  for (let start = 0; start < 3; start++) {
    expect(() => migrate(sqlite, dataDir, [FIRST, SECOND, BROKEN])).toThrow("nothing_of_that_name");
  }
  expect(backups()).toEqual(earlier);
});

/** Dies in a migration of three steps, once its copy is made or while it is. */
async function dieMigrating(when: "while copying" | "after the copy"): Promise<void> {
  const program = `
    import { Database } from "bun:sqlite";
    import fs from "node:fs";
    import { migrate } from ${JSON.stringify(join(import.meta.dir, "../../src/storage/migrate.ts"))};
    const sqlite = new Database(${JSON.stringify(join(dataDir, "roost.db"))}, { strict: true });
    const die = () => process.kill(process.pid, "SIGKILL");
    const { fsyncSync } = fs;
    fs.fsyncSync = (file) => {
      if (${when === "while copying"} && fs.readlinkSync("/proc/self/fd/" + file).endsWith(".db")) die();
      fsyncSync(file);
    };
    sqlite.transaction = () => ({ exclusive: die });
    migrate(sqlite, ${JSON.stringify(dataDir)}, ["", ""]);`;
  const child = Bun.spawn([process.execPath, "-e", program], { stderr: "pipe" });
  expect(await new Response(child.stderr).text()).toBe("");
  await child.exited;
  expect(child.signalCode).toBe("SIGKILL");
}

test("starts that are killed in a migration leave one copy at the end, and none that is not whole has its name", async () => {
  migrate(sqlite, dataDir, [FIRST]);
  writeFileSync(join(dataDir, "audit-head.json"), "{}");
  await dieMigrating("while copying");
  expect(copiesBeforeMigrations(dataDir)).toEqual([]);
  await dieMigrating("after the copy");
  await dieMigrating("while copying");
  await dieMigrating("after the copy");
  const [killed, ...more] = copiesBeforeMigrations(dataDir);
  expect([killed?.version, more]).toEqual([1, []]);
  migrate(sqlite, dataDir, [FIRST, SECOND]);
  const [copy] = copiesBeforeMigrations(dataDir);
  expect(backups().sort()).toEqual([copy?.auditHead, copy?.path].map((path) => basename(path ?? "")).sort());
  using kept = new Database(copy?.path, { readonly: true });
  expect(kept.query("SELECT * FROM notes").all()).toEqual([{ note: "old" }]);
});

test("a copy of another state of the same schema stays", () => {
  migrate(sqlite, dataDir, [FIRST]);
  migrate(sqlite, dataDir, [FIRST, SECOND]);
  const [first] = backups();
  sqlite.run("ALTER TABLE notes DROP COLUMN author");
  sqlite.run("INSERT INTO notes VALUES ('since')");
  sqlite.run("PRAGMA user_version = 1");
  migrate(sqlite, dataDir, [FIRST, SECOND]);
  expect(backups()).toHaveLength(2);
  expect(backups()).toContain(first ?? "");
});

test("a copy that cannot be put on disk is removed, and nothing is migrated", () => {
  migrate(sqlite, dataDir, [FIRST]);
  writeFileSync(join(dataDir, "audit-head.json"), "{}");
  const { fsyncSync } = fs;
  const spy = spyOn(fs, "fsyncSync").mockImplementation((file) => {
    if (fs.readlinkSync(`/proc/self/fd/${file}`).endsWith(".db")) throw new Error("the disk is broken");
    fsyncSync(file);
  });
  try {
    expect(() => migrate(sqlite, dataDir, [FIRST, SECOND])).toThrow("the disk is broken");
  } finally {
    spy.mockRestore();
  }
  expect([backups(), schemaVersion(sqlite)]).toEqual([[], 1]);
});

test("a database that the disk has no room to copy is not migrated", () => {
  migrate(sqlite, dataDir, [FIRST]);
  sqlite.close();
  enlarge(join(dataDir, "roost.db"), tooMuch(dataDir));
  sqlite = new Database(join(dataDir, "roost.db"), { strict: true });
  expect(() => migrate(sqlite, dataDir, [FIRST, SECOND])).toThrow(
    /a copy of the database .* needs \d+ MB, and 269 MB must stay free, but the disk of .* has \d+ MB; free some space/,
  );
  expect([backups(), schemaVersion(sqlite)]).toEqual([[], 1]);
});

test("a file of this version is left alone", () => {
  migrate(sqlite, dataDir, [FIRST]);
  const changes = sqlite.query("PRAGMA schema_version").get();
  migrate(sqlite, dataDir, [FIRST]);
  expect(sqlite.query("PRAGMA schema_version").get()).toEqual(changes);
  expect(backups()).toEqual([]);
});

test("data of a newer Roost is refused and not touched", () => {
  migrate(sqlite, dataDir, [FIRST, SECOND]);
  expect(() => migrate(sqlite, dataDir, [FIRST])).toThrow(/written by a newer Roost .*start the newer binary/);
  expect(schemaVersion(sqlite)).toBe(2);
});

test("a store of a newer Roost is refused, and opens again once its version is known", () => {
  openStore(join(dataDir, "own")).close();
  using own = new Database(join(dataDir, "own/roost.db"), { strict: true });
  own.run(`PRAGMA user_version = ${SCHEMA_VERSION + 1}`);
  expect(() => openStore(join(dataDir, "own"))).toThrow("written by a newer Roost");
  own.run(`PRAGMA user_version = ${SCHEMA_VERSION}`);
  openStore(join(dataDir, "own")).close();
});

test("a migration waits two minutes for another process's, and later statements wait no longer than usual", () => {
  migrate(sqlite, dataDir, ["CREATE TABLE waited AS SELECT timeout FROM pragma_busy_timeout;"]);
  expect(sqlite.query("SELECT timeout FROM waited").get()).toEqual({ timeout: 120_000 });
  expect(sqlite.query("PRAGMA busy_timeout").get()).toEqual({ timeout: 5_000 });
});

test("two processes that open a new folder at once make one schema", async () => {
  const folder = join(dataDir, "together");
  const program = `
    const { openStore } = await import(${JSON.stringify(join(import.meta.dir, "../../src/storage/store.ts"))});
    process.send("ready");
    process.on("message", () => {
      openStore(${JSON.stringify(folder)}).close();
      process.exit(0);
    });`;
  const { promise: allReady, resolve } = Promise.withResolvers<void>();
  let ready = 0;
  const openers = Array.from({ length: 3 }, () =>
    Bun.spawn([process.execPath, "-e", program], { stderr: "pipe", ipc: () => ++ready === 3 && resolve() }),
  );
  await allReady;
  for (const opener of openers) opener.send("go");
  for (const opener of openers) {
    expect(await new Response(opener.stderr).text()).toBe("");
    expect(await opener.exited).toBe(0);
  }
});

test("what an earlier build let SQLite measure of the tables is gone, and a stop measures nothing again", () => {
  const measured = (database: Database) =>
    database.query("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_stat1'").all().length;
  migrate(sqlite, dataDir, MIGRATIONS.slice(0, 28));
  sqlite.run(
    "INSERT INTO accounts (account_id, email, name, created_at) VALUES ('acc_a', 'ada@example.com', 'Ada', 1)",
  );
  sqlite.run("ANALYZE");
  expect(measured(sqlite)).toBe(1);
  sqlite.close();
  openStore(dataDir).close();
  sqlite = new Database(join(dataDir, "roost.db"), { strict: true });
  expect([measured(sqlite), schemaVersion(sqlite)]).toEqual([0, SCHEMA_VERSION]);
});
