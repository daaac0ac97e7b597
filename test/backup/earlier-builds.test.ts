import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { copiesBeforeMigrations, migrate, SCHEMA_VERSION } from "../../src/storage/migrate.ts";
import { type RunningBinary, runBinary, startBinary } from "../support/binary.ts";
import { startMockModelServer } from "../support/mock-model-server.ts";
import type { EarlierBuild } from "./earlier-builds/make.ts";
import { BUILDS, unpackBuild } from "./earlier-builds/unpack.ts";
import { filesIn, rowsIn } from "./folders.ts";
import { type Ask, askAt, backup } from "./host.ts";

/** An instance that was left running has had one more of these since. */
const TRANSACTIONS = "/v1/billing/transactions";

/** What an upgrade, or today's use of the key, changes by itself. */
const LIVE = new Set(["lastUsedAt", "accrued", "balance", "balanceAfter", "amount", "spentThisMonth", "updatedAt"]);

test.each(BUILDS)("the data of %s opens, with nothing lost, and goes back", async (name) => {
  const folder = mkdtempSync(join(tmpdir(), "roost-earlier-"));
  using _ = { [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
  const was = await unpackBuild(name, folder);
  const dataDir = join(folder, "data");
  const before = join(folder, "before");
  cpSync(dataDir, before, { recursive: true });

  await withServer(dataDir, async (ask) => {
    await expectKept(was, ask);
    await useOn(was, ask);
  });
  expect((await runBinary(["audit", "--verify", "--data", dataDir])).output).toContain("intact");
  await expectEqualAfterRestore(dataDir, folder);

  if (was.schema === SCHEMA_VERSION) return;
  expect(copiesBeforeMigrations(dataDir)).toMatchObject([{ version: was.schema }]);
  expect(await runBinary(["rollback", "--data", dataDir])).toMatchObject({ code: 0 });
  expect(rowsIn(dataDir)).toEqual(rowsIn(before));
  expect(filesIn(dataDir)).toMatchObject(filesIn(before));
  await withServer(dataDir, async (ask) => expectKept(was, ask));
});

async function withServer(dataDir: string, work: (ask: Ask, server: RunningBinary) => Promise<void>): Promise<void> {
  const model = startMockModelServer({ answer: { kind: "text", tokens: ["Three", " now."] } });
  try {
    // The runs of a stored build grow older than the year for which runs are kept.
    const env = { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: model.url, ROOST_KEEP_RUNS: "forever" };
    const server = await startBinary({ dataDir, env });
    try {
      const { key } = JSON.parse(readFileSync(join(dataDir, "../was.json"), "utf8")) as EarlierBuild;
      await work(
        askAt(server.url, () => key),
        server,
      );
    } finally {
      expect(await server.stop()).toBe(0);
    }
  } finally {
    await model.stop();
  }
}

/** Every answer of that build is today's too, as far as that build had it. */
async function expectKept({ answers, balance, waiting }: EarlierBuild, ask: Ask): Promise<void> {
  for (const [path, answer] of Object.entries(answers)) {
    const { status, body } = await ask("GET", path);
    const then = lasting(answer) as { data: object[] };
    if (path === TRANSACTIONS) then.data = expect.arrayContaining(then.data.map((row) => expect.objectContaining(row)));
    expect({ path, status, body }).toMatchObject({ path, status: 200, body: then });
  }
  // An instance that was left running costs again since the start.
  const today = Number((await ask("GET", "/v1/auth/me")).body.balance);
  expect(Number(balance) - today).toBeWithin(0, waiting === null ? 0.000001 : 0.01);
}

function lasting(value: unknown): unknown {
  // Since schema 26.
  if (typeof value === "string") return value.replace(/^sched_/, "sch_");
  if (Array.isArray(value)) return value.map(lasting);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, member]) => (LIVE.has(key) ? [] : [[key, lasting(member)]])),
  );
}

/** An agent of that build answers, and a run that waited for a decision goes on. */
async function useOn({ instanceId, agentId, waiting, answers }: EarlierBuild, ask: Ask): Promise<void> {
  const agent = `/v1/instances/${instanceId}/agents/${agentId}`;
  expect(await ask("POST", `/v1/instances/${instanceId}/start`)).toMatchObject({ status: 200 });
  const sent = await ask("POST", `${agent}/messages`, { message: "And this year?" });
  expect(sent).toMatchObject({ status: 200, body: { message: "Three now." } });
  const { body } = await ask("GET", `${agent}/messages`);
  const { data } = answers[`${agent}/messages`] as { data: unknown[] };
  expect(body.data).toHaveLength(data.length + 2);
  if (waiting === null) return;
  const approval = `/v1/approvals/${waiting.approvalId}`;
  const { inputHash } = (await ask("GET", approval)).body;
  const decided = await ask("POST", `${approval}/decision`, { decision: "approve", inputHash });
  expect(decided).toMatchObject({ status: 200, body: { status: "approved" } });
  const run = `${waiting.agent}/runs/${waiting.runId}`;
  while (!["completed", "failed", "cancelled"].includes((await ask("GET", run)).body.status)) await Bun.sleep(5);
  expect(await ask("GET", run)).toMatchObject({ body: { status: "completed" } });
  expect(await ask("GET", `${waiting.agent}/files/diary.md`)).toMatchObject({ body: "Swarmed today.\n" });
}

async function expectEqualAfterRestore(dataDir: string, folder: string): Promise<void> {
  const file = join(folder, "backup.tar.zst");
  expect(await backup(["create", file, "--data", dataDir, "--include-key"])).toMatchObject({ code: 0 });
  const restored = join(folder, "restored");
  expect(await backup(["restore", file, "--data", restored])).toMatchObject({ code: 0 });
  const [here, there] = [rowsIn(dataDir), rowsIn(restored)];
  // Each ends with a note of its own: that a backup was made, that it was restored.
  expect(there.audit?.slice(0, -1)).toEqual(here.audit?.slice(0, -1));
  expect({ ...there, audit: [] }).toEqual({ ...here, audit: [] });
  expect(filesIn(restored)).toEqual(filesIn(dataDir));
}

test.each(BUILDS)("the data of %s gets the same schema as a new host has", async (name) => {
  const folder = mkdtempSync(join(tmpdir(), "roost-earlier-"));
  using _ = { [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
  await unpackBuild(name, folder);
  expect(schemaAfterMigrating(join(folder, "data"))).toEqual(schemaAfterMigrating(folder));
});

/** Each column with its properties, each index and each trigger with its text. */
function schemaAfterMigrating(dataDir: string): Record<string, unknown> {
  using sqlite = new Database(join(dataDir, "roost.db"), { create: true });
  migrate(sqlite, dataDir);
  const columns = sqlite.query<{ at: string }, []>(
    `SELECT t.name || '.' || c.name AS at, c.type, c."notnull", c.dflt_value, c.pk
      FROM sqlite_schema t, pragma_table_xinfo(t.name) c WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_stat%'`,
  );
  const others = sqlite.query<{ name: string; sql: string }, []>(
    "SELECT name, sql FROM sqlite_schema WHERE type <> 'table' AND sql IS NOT NULL",
  );
  return Object.fromEntries([
    ...columns.all().map(({ at, ...properties }) => [at, properties]),
    ...others.all().map(({ name, sql }) => [name, sql.replaceAll(/\s+/g, " ")]),
  ]);
}
