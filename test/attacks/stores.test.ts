import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { runBinary } from "../support/binary.ts";
import { countsOf, inLanes } from "./connection.ts";
import { startWorld, type World } from "./world.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
/** Many times the real limit, so that a bound is reached within seconds. */
const FAST = { ROOST_WRITES_PER_SECOND: "1000000" };

/** Counts the rows of a table directly in the database. */
function rowsOf({ dataDir }: World, sql: string): number {
  const database = new Database(join(dataDir, "roost.db"), { readonly: true });
  try {
    return Number(database.query(sql).values().flat()[0]);
  } finally {
    database.close();
  }
}

function bytesBelow(folder: string): number {
  let bytes = 0;
  for (const path of new Bun.Glob("**/*").scanSync({ cwd: folder, dot: true })) {
    bytes += statSync(join(folder, path)).size;
  }
  return bytes;
}

test("an account writes files as fast as it can: the quota stops it, and bounds the disk, stored answers included", async () => {
  const quota = 8 * MIB;
  await using world = await startWorld({ env: { ...FAST, ROOST_MAX_WORKSPACE_BYTES: String(quota) } });
  const { attacker, dataDir } = world;
  const instanceId = await attacker.newInstance();
  const agent = await attacker.newAgent(instanceId);
  await attacker.ask("POST", `/v1/instances/${instanceId}/stop`);
  const before = bytesBelow(dataDir);
  const text = "x".repeat(256 * KIB);
  const statuses = await world.attack(() =>
    inLanes(8, 100, async (at) => {
      if (at % 2 === 0) return (await attacker.ask("PUT", `${agent}/files/${at}.md`, text)).status;
      const files = { "a.md": text, "b.md": text };
      const input = { name: "x", slug: `agent-${at}`, useDefaults: false, files };
      const headers = { "Idempotency-Key": `agent-${at}` };
      return (await attacker.ask("POST", `/v1/instances/${instanceId}/agents`, input, headers)).status;
    }),
  );
  const counts = countsOf(statuses);
  expect(Object.keys(counts)).toEqual(["201", "409"]);
  expect(counts[409]).toBeGreaterThan(50);
  // A write-ahead log is among them, which grows further between checkpoints where the machine is busy.
  expect(bytesBelow(dataDir) - before).toBeLessThan(quota + 24 * MIB);
  await world.expectUnharmed();
});

test("an account stores answers without end: ten thousand are kept, its newest among them", async () => {
  await using world = await startWorld({ env: FAST });
  const { attacker } = world;
  const instanceId = await attacker.newInstance();
  const stop = (at: number) =>
    attacker.ask("POST", `/v1/instances/${instanceId}/stop`, undefined, { "Idempotency-Key": `stop-${at}` });
  const statuses = await world.attack(() => inLanes(32, 10_500, async (at) => (await stop(at)).status));
  expect(countsOf(statuses)).toEqual({ 200: 10_500 });
  expect(rowsOf(world, "SELECT max(n) FROM (SELECT count(*) AS n FROM idempotent_requests GROUP BY account_id)")).toBe(
    10_000,
  );
  expect((await stop(10_499)).headers.get("idempotent-replayed")).toBe("true");
  await world.expectUnharmed();
});

test("an account writes secrets without end: the audit log grows only by its allowance, stays intact, and others still write", async () => {
  await using world = await startWorld({ env: FAST });
  const { attacker, neighbour, neighboursAgent, dataDir } = world;
  const secrets = `/v1/instances/${await attacker.newInstance()}/secrets`;
  const statuses = await world.attack(() =>
    inLanes(
      32,
      3_000,
      async (at) => (await attacker.ask("POST", secrets, { key: `K${at % 50}`, value: `${at}` })).status,
    ),
  );
  const counts = countsOf(statuses);
  expect(counts[201]).toBeWithin(900, 1_100);
  expect(counts).toEqual({ 201: counts[201] ?? 0, 429: 3_000 - (counts[201] ?? 0) });
  expect(rowsOf(world, "SELECT count(*) FROM audit")).toBeLessThan(1_200);
  const [own] = /^\/v1\/instances\/\w+/.exec(neighboursAgent) ?? [];
  expect((await neighbour.ask("POST", `${own}/secrets`, { key: "K", value: "v" })).status).toBe(201);
  expect(await runBinary(["audit", "--verify", "--data", dataDir])).toMatchObject({ code: 0 });
  await world.expectUnharmed();
});
