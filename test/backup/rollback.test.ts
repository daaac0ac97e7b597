import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFoundation } from "../../src/app/foundation.ts";
import { rollBack } from "../../src/backup/rollback.ts";
import { lockDataFolder } from "../../src/storage/lock.ts";
import { migrate, SCHEMA_VERSION, schemaVersion } from "../../src/storage/migrate.ts";
import { runBinary } from "../support/binary.ts";

const FOLDER = join(import.meta.dir, "../../src/storage/migrations");
const MIGRATIONS = readdirSync(FOLDER)
  .sort()
  .map((name) => readFileSync(join(FOLDER, name), "utf8"));

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-rollback-"));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const INSERT_ACCOUNT = "INSERT INTO accounts (account_id, email, name, created_at) VALUES (?, ?, 'x', 1)";
const INSERT_INSTANCE =
  "INSERT INTO instances (instance_id, account_id, name, status, created_at) VALUES (?, 'acct_a', 'x', 'stopped', 1)";

function query<T>(work: (sqlite: Database) => T): T {
  using sqlite = new Database(join(dataDir, "roost.db"), { create: true, strict: true });
  return work(sqlite);
}

const emails = () =>
  query((sqlite) => sqlite.query<{ email: string }, []>("SELECT email FROM accounts ORDER BY email").all()).map(
    ({ email }) => email,
  );

/** A data folder of an older binary, upgraded by this one and used since. */
function upgraded(version: number): void {
  query((sqlite) => {
    migrate(sqlite, dataDir, MIGRATIONS.slice(0, version));
    sqlite.run(INSERT_ACCOUNT, ["acct_a", "before@example.org"]);
    sqlite.run(INSERT_INSTANCE, ["inst_a"]);
  });
  mkdirSync(join(dataDir, "instances/inst_a/agents"), { recursive: true });
  openFoundation({ dataDir }).store.close();
  query((sqlite) => {
    sqlite.run(INSERT_ACCOUNT, ["acct_b", "since@example.org"]);
    sqlite.run(INSERT_INSTANCE, ["inst_b"]);
  });
  mkdirSync(join(dataDir, "instances/inst_b/agents/bo"), { recursive: true });
  writeFileSync(join(dataDir, "instances/inst_b/agents/bo/SOUL.md"), "since");
}

test.each(Array.from({ length: SCHEMA_VERSION - 1 }, (_, at) => at + 1))(
  "from each older schema (%d): back to it, with the newer state kept aside",
  (version) => {
    upgraded(version);
    const { from, to, keptIn } = rollBack(dataDir);
    expect([from, to]).toEqual([SCHEMA_VERSION, version]);
    expect(query(schemaVersion)).toBe(version);
    expect(emails()).toEqual(["before@example.org"]);
    using kept = new Database(join(keptIn, "roost.db"), { readonly: true });
    expect(kept.query("SELECT count(*) AS count FROM accounts").get()).toEqual({ count: 2 });
    expect(readFileSync(join(keptIn, "instances/inst_b/agents/bo/SOUL.md"), "utf8")).toBe("since");
    expect(existsSync(join(dataDir, "instances/inst_a"))).toBe(true);
    expect(existsSync(join(dataDir, "instances/inst_b"))).toBe(false);
  },
);

const INSERT_AGENT = `INSERT INTO agents (agent_id, instance_id, name, slug, display_name, created_at, updated_at)
  VALUES (?, 'inst_a', 'x', ?, 'x', 1, 1)`;

/** Slug → what its workspace has, as the database and the disk have it now. */
const workspaces = () =>
  query((sqlite) => {
    const agents = sqlite.query<{ agent_id: string; slug: string }, []>("SELECT * FROM agents ORDER BY agent_id").all();
    return agents.map(({ agent_id, slug }) => {
      const soul = join(dataDir, "instances/inst_a/agents", slug, "SOUL.md");
      return [agent_id, slug, existsSync(soul) ? readFileSync(soul, "utf8") : null];
    });
  });

function putSoul(slug: string, text: string): void {
  mkdirSync(join(dataDir, "instances/inst_a/agents", slug), { recursive: true });
  writeFileSync(join(dataDir, "instances/inst_a/agents", slug, "SOUL.md"), text);
}

test.each([1, SCHEMA_VERSION - 1])(
  "agents that were renamed since schema %d have their older slugs again, and their own files",
  (version) => {
    query((sqlite) => {
      migrate(sqlite, dataDir, MIGRATIONS.slice(0, version));
      sqlite.run(INSERT_ACCOUNT, ["acct_a", "before@example.org"]);
      sqlite.run(INSERT_INSTANCE, ["inst_a"]);
      for (const name of ["one", "two", "three", "four", "five"]) sqlite.run(INSERT_AGENT, [`agt_${name}`, name]);
      // Since the fifth schema, triggers count.
      sqlite.run("UPDATE instances SET agent_count = 5");
    });
    openFoundation({ dataDir }).store.close();
    query((sqlite) => {
      sqlite.run("UPDATE agents SET slug = agent_id, removed_at = 1 WHERE agent_id = 'agt_five'");
      for (const [name, slug] of [
        ["one", "between"],
        ["two", "one"],
        ["one", "two"],
        ["three", "third"],
      ] as const) {
        sqlite.run("UPDATE agents SET slug = ? WHERE agent_id = ?", [slug, `agt_${name}`]);
      }
      sqlite.run(INSERT_AGENT, ["agt_new", "three"]);
      sqlite.run(INSERT_AGENT, ["agt_newer", "five"]);
    });
    for (const [slug, text] of Object.entries({ one: "two", two: "one", third: "three", four: "four" })) {
      putSoul(slug, text);
    }
    for (const slug of ["three", "five"]) putSoul(slug, "since");
    const { keptIn } = rollBack(dataDir);
    expect(workspaces()).toEqual([
      ["agt_five", "five", null],
      ["agt_four", "four", "four"],
      ["agt_one", "one", "one"],
      ["agt_three", "three", "three"],
      ["agt_two", "two", "two"],
    ]);
    const kept = ["three", "five"].map((slug) => join(keptIn, "instances/inst_a/agents", slug, "SOUL.md"));
    expect(kept.map((path) => readFileSync(path, "utf8"))).toEqual(["since", "since"]);
    expect(readdirSync(join(dataDir, "instances/inst_a/agents")).sort()).toEqual(["four", "one", "three", "two"]);
  },
);

test("memories are indexed anew: their indexes are of messages that were undone", () => {
  upgraded(SCHEMA_VERSION - 1);
  const memory = join(dataDir, "memory");
  mkdirSync(memory);
  for (const name of ["agt_a.db", "agt_a.db-wal"]) writeFileSync(join(memory, name), "since");
  const { keptIn } = rollBack(dataDir);
  expect([memory, join(keptIn, "memory")].map((path) => existsSync(path))).toEqual([false, false]);
});

test("the audit log still verifies, because its checkpoint goes back too", async () => {
  query((sqlite) => migrate(sqlite, dataDir, MIGRATIONS.slice(0, SCHEMA_VERSION - 1)));
  writeFileSync(join(dataDir, "audit-head.json"), '{"auditId":1,"hash":"00"}');
  openFoundation({ dataDir }).store.close();
  writeFileSync(join(dataDir, "audit-head.json"), '{"auditId":2,"hash":"11"}');
  const { keptIn } = rollBack(dataDir);
  expect(readFileSync(join(dataDir, "audit-head.json"), "utf8")).toContain('"auditId":1');
  expect(readFileSync(join(keptIn, "audit-head.json"), "utf8")).toContain('"auditId":2');
});

test("nothing is written through links that wait where a file is put", () => {
  query((sqlite) => migrate(sqlite, dataDir, MIGRATIONS.slice(0, SCHEMA_VERSION - 1)));
  const head = join(dataDir, "audit-head.json");
  writeFileSync(head, '{"auditId":1,"hash":"00"}');
  openFoundation({ dataDir }).store.close();
  const elsewhere = join(dataDir, "elsewhere");
  writeFileSync(elsewhere, "mine", { mode: 0o644 });
  for (const path of [join(dataDir, "roost.db"), head]) symlinkSync(elsewhere, `${path}.rollback`);
  rollBack(dataDir);
  expect([readFileSync(elsewhere, "utf8"), statSync(elsewhere).mode & 0o777]).toEqual(["mine", 0o644]);
  expect(query(schemaVersion)).toBe(SCHEMA_VERSION - 1);
});

test("nothing is copied through a link from outside the folder", () => {
  upgraded(SCHEMA_VERSION - 1);
  const outside = join(dataDir, "outside");
  writeFileSync(outside, "secret");
  symlinkSync(outside, join(dataDir, "audit-head.json"));
  expect(() => rollBack(dataDir)).toThrow("audit-head.json");
  const kept = readdirSync(join(dataDir, "backups")).filter((name) => name.startsWith("before-rollback"));
  expect(kept.flatMap((name) => readdirSync(join(dataDir, "backups", name)))).not.toContain("audit-head.json");
  expect(query(schemaVersion)).toBe(SCHEMA_VERSION);
});

test("without an upgrade there is nothing to go back to, and nothing changes", async () => {
  openFoundation({ dataDir }).store.close();
  const { code, errors } = await runBinary(["rollback", "--data", dataDir]);
  expect(code).toBe(1);
  expect(errors).toContain("nothing to go back to");
  expect(query(schemaVersion)).toBe(SCHEMA_VERSION);
});

test.each(["empty", "zeros", "cut short", "of another schema"])(
  "a copy that is damaged (%s) is not gone back to, and nothing changes",
  (how) => {
    upgraded(SCHEMA_VERSION - 1);
    const name = readdirSync(join(dataDir, "backups")).find((one) => one.endsWith(".db")) ?? "";
    const copy = join(dataDir, "backups", name);
    const { size } = statSync(copy);
    if (how === "empty") truncateSync(copy);
    if (how === "zeros") writeFileSync(copy, Buffer.alloc(size));
    if (how === "cut short") truncateSync(copy, size - 4096 * 10);
    if (how === "of another schema") {
      rmSync(copy);
      query((sqlite) => sqlite.run("VACUUM INTO ?", [copy]));
    }
    expect(() => rollBack(dataDir)).toThrow(`${copy} is damaged`);
    expect(query(schemaVersion)).toBe(SCHEMA_VERSION);
    expect(emails()).toHaveLength(2);
    expect(readdirSync(join(dataDir, "backups"))).toEqual([name]);
    expect(readdirSync(dataDir)).not.toContain("roost.db.rollback");
    expect(existsSync(join(dataDir, "instances/inst_b/agents/bo/SOUL.md"))).toBe(true);
  },
);

test("a running server keeps its database", () => {
  upgraded(SCHEMA_VERSION - 1);
  const lock = lockDataFolder(dataDir);
  try {
    expect(() => rollBack(dataDir)).toThrow("another roost is serving");
    expect(emails()).toHaveLength(2);
  } finally {
    lock.release();
  }
});

test("the command says where the newer state is and which binary to start", async () => {
  upgraded(SCHEMA_VERSION - 1);
  const { code, output } = await runBinary(["rollback", "--data", dataDir]);
  expect(code).toBe(0);
  expect(output).toContain(`from schema ${SCHEMA_VERSION} to ${SCHEMA_VERSION - 1}`);
  expect(output).toContain(join(dataDir, "backups", `before-rollback-from-${SCHEMA_VERSION}-`));
  expect(output).toContain("Start the Roost that you had before the upgrade");
});
