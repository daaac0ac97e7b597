import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFoundation } from "../../src/app/foundation.ts";
import { createBackup } from "../../src/backup/create.ts";
import { locate } from "../../src/backup/destination.ts";
import { restoreBackup } from "../../src/backup/restore.ts";
import { rollBack } from "../../src/backup/rollback.ts";
import { verifyBackup } from "../../src/backup/verify.ts";
import { finishChanges } from "../../src/backup/workspaces.ts";
import { SCHEMA_VERSION, schemaVersion } from "../../src/storage/migrate.ts";
import { runBinary } from "../support/binary.ts";
import { BUILDS, unpackBuild } from "./earlier-builds/unpack.ts";
import { filesIn, rowsIn } from "./folders.ts";

const DIE_AT = join(import.meta.dir, "die-at.ts");
/** The newest of the builds before this one's schema. */
const EARLIER = BUILDS.findLast((name) => Number.parseInt(name, 10) < SCHEMA_VERSION) ?? "";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "roost-crash-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Whether it died before the call of this number; otherwise it came to its end before. */
async function diedAt(number: number, operation: string, dataDir: string, other = ""): Promise<boolean> {
  const child = Bun.spawn([process.execPath, DIE_AT, operation, dataDir, other, String(number)], { stderr: "pipe" });
  const errors = await new Response(child.stderr).text();
  await child.exited;
  expect(errors).toBe("");
  return child.signalCode === "SIGKILL";
}

/** Calls `check` after a death at each moment, on a data folder of its own made by `prepare`. Returns their number. */
async function atEachMoment(
  operation: string,
  prepare: (dataDir: string) => void,
  check: (dataDir: string, other: string) => Promise<void>,
  otherFor: (number: number) => string = () => "",
): Promise<number> {
  for (let number = 0; ; number++) {
    const dataDir = join(folder, `data-${number}`);
    const other = otherFor(number);
    prepare(dataDir);
    if (!(await diedAt(number, operation, dataDir, other))) return number;
    await check(dataDir, other);
    rmSync(dataDir, { recursive: true, force: true });
  }
}

const versionOf = (dataDir: string): number => {
  using sqlite = new Database(join(dataDir, "roost.db"), { readonly: true });
  return schemaVersion(sqlite);
};

async function current(): Promise<string> {
  await unpackBuild(EARLIER, folder);
  const dataDir = join(folder, "data");
  openFoundation({ dataDir }).store.close();
  return dataDir;
}

test("a backup that is killed at any moment leaves its host as it was, and no file that passes for one", async () => {
  const source = await current();
  const before = rowsIn(source);
  const moments = await atEachMoment(
    "create",
    (dataDir) => cpSync(source, dataDir, { recursive: true }),
    async (dataDir, file) => {
      expect(rowsIn(dataDir)).toEqual(before);
      if (existsSync(file)) await verifyBackup(dataDir, { archive: Bun.file(file), size: 0, passphrase: null });
      const again = { dataDir, ...locate(`${file}.again`), withKeys: true, passphrase: null };
      expect((await createBackup(again)).size).toBeGreaterThan(0);
    },
    (number) => join(folder, `backup-${number}.tar.zst`),
  );
  expect(moments).toBeGreaterThan(5);
});

test("a restore that is killed at any moment can be made again, or is whole", async () => {
  const source = await current();
  const file = join(folder, "backup.tar.zst");
  await createBackup({ dataDir: source, ...locate(file), withKeys: true, passphrase: null });
  const archive = Bun.file(file);
  const moments = await atEachMoment(
    "restore",
    () => {},
    async (dataDir) => {
      if (!existsSync(join(dataDir, "roost.db"))) {
        await restoreBackup(dataDir, { archive, size: archive.size, passphrase: null });
        expect(readdirSync(dataDir).filter((name) => name.startsWith(".restore"))).toEqual([]);
      }
      expect(rowsIn(dataDir)).toEqual(rowsIn(source));
      expect(filesIn(dataDir)).toEqual(filesIn(source));
    },
    () => file,
  );
  expect(moments).toBeGreaterThan(20);
});

test("a migration that is killed at any moment leaves the old data or the new, and goes on at the next start", async () => {
  await unpackBuild(EARLIER, folder);
  const source = join(folder, "data");
  const { messages } = rowsIn(source);
  const moments = await atEachMoment(
    "migrate",
    (dataDir) => cpSync(source, dataDir, { recursive: true }),
    async (dataDir) => {
      expect([Number.parseInt(EARLIER, 10), SCHEMA_VERSION]).toContain(versionOf(dataDir));
      openFoundation({ dataDir }).store.close();
      expect(versionOf(dataDir)).toBe(SCHEMA_VERSION);
      expect(rowsIn(dataDir).messages?.length).toBe(messages?.length);
      expect(rollBack(dataDir).to).toBe(Number.parseInt(EARLIER, 10));
      expect(rowsIn(dataDir)).toEqual(rowsIn(source));
    },
  );
  expect(moments).toBeGreaterThan(5);
});

test("a rollback that is killed at any moment leaves the newer state as it was, or the older one", async () => {
  await unpackBuild(EARLIER, folder);
  const source = join(folder, "data");
  const before = rowsIn(source);
  const original = join(folder, "original");
  cpSync(source, original, { recursive: true });
  openFoundation({ dataDir: source }).store.close();
  {
    using sqlite = new Database(join(source, "roost.db"));
    const { account_id } = sqlite.query("SELECT account_id FROM accounts").get() as { account_id: string };
    sqlite.run(
      "INSERT INTO instances (instance_id, account_id, name, status, created_at) VALUES ('inst_b', ?, 'x', 'stopped', 1)",
      [account_id],
    );
  }
  mkdirSync(join(source, "instances/inst_b/agents/bo"), { recursive: true });
  writeFileSync(join(source, "instances/inst_b/agents/bo/SOUL.md"), "since");
  const renamed = renameFirst(source);
  const [newerRows, newerFiles] = [rowsIn(source), filesIn(source)];
  const moments = await atEachMoment(
    "rollback",
    (dataDir) => cpSync(source, dataDir, { recursive: true }),
    async (dataDir) => {
      if (versionOf(dataDir) === SCHEMA_VERSION) {
        expect(rowsIn(dataDir)).toEqual(newerRows);
        expect(filesIn(dataDir)).toMatchObject(workspacesOf(newerFiles));
        expect((await runBinary(["audit", "--verify", "--data", dataDir])).output).toContain("intact");
        rollBack(dataDir);
      }
      finishAsStart(dataDir);
      expect(rowsIn(dataDir)).toEqual(before);
      expect(soulOf(dataDir, renamed)).toBe(soulOf(original, renamed));
      const kept = readdirSync(join(dataDir, "backups")).filter((name) => name.startsWith("before-rollback-"));
      const whole = kept
        .map((name) => join(dataDir, "backups", name))
        .filter((one) => existsSync(join(one, "roost.db")));
      expect(whole.map(rowsIn)).toContainEqual(newerRows);
      const souls = whole.map((one) => readFileSync(join(one, "instances/inst_b/agents/bo/SOUL.md"), "utf8"));
      expect(souls).toContain("since");
    },
  );
  expect(moments).toBeGreaterThan(5);
});

/** Renames an agent, and has another one take its slug, as a server does. Returns the agent's id. */
function renameFirst(dataDir: string): string {
  using sqlite = new Database(join(dataDir, "roost.db"));
  const { agent_id, instance_id, slug } = sqlite.query("SELECT * FROM agents").get() as Record<string, string>;
  if (agent_id === undefined || instance_id === undefined || slug === undefined) throw new Error("there is no agent");
  const agents = join(dataDir, "instances", instance_id, "agents");
  sqlite.run("UPDATE agents SET slug = 'renamed' WHERE agent_id = ?", [agent_id]);
  renameSync(join(agents, slug), join(agents, "renamed"));
  sqlite.run(
    `INSERT INTO agents (agent_id, instance_id, name, slug, display_name, created_at, updated_at)
     VALUES ('agt_new', ?, 'x', ?, 'x', 1, 1)`,
    [instance_id, slug],
  );
  mkdirSync(join(agents, slug));
  writeFileSync(join(agents, slug, "SOUL.md"), "somebody else's");
  return agent_id;
}

function soulOf(dataDir: string, agentId: string): string {
  using sqlite = new Database(join(dataDir, "roost.db"), { readwrite: true });
  const { instance_id, slug } = sqlite.query("SELECT * FROM agents WHERE agent_id = ?").get(agentId) as {
    instance_id: string;
    slug: string;
  };
  return readFileSync(join(dataDir, "instances", instance_id, "agents", slug, "SOUL.md"), "utf8");
}

/** What every build does first with the changes of workspaces that it finds committed. */
function finishAsStart(dataDir: string): void {
  using sqlite = new Database(join(dataDir, "roost.db"));
  finishChanges(dataDir, sqlite);
  sqlite.run("DELETE FROM workspace_changes");
}

const workspacesOf = (files: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(files).filter(([name]) => name.startsWith("instances/")));
