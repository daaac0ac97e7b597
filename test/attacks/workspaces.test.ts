import { expect, test } from "bun:test";
import { linkSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { countsOf, inLanes } from "./connection.ts";
import { ask, startWorld } from "./world.ts";

const KIB = 1024;
const AGENTS = 100;
const FILES = 1_000;
const nameAt = (at: number) => `${"long-name-".repeat(8)}${at}.md`;

test("a read-only key limited to one instance lists a hundred agents with a hundred thousand files, and deletes them", async () => {
  await using world = await startWorld();
  const { attacker, dataDir, url } = world;
  const instanceId = await attacker.newInstance();
  const agents: string[] = [];
  for (let at = 0; at < AGENTS; at++) {
    agents.push(await attacker.newAgent(instanceId, { name: "x", slug: `agent-${at}` }));
    const folder = join(dataDir, "instances", instanceId, "agents", `agent-${at}`, "notes");
    mkdirSync(folder);
    writeFileSync(join(folder, nameAt(0)), "x");
    // Only names matter here; a link is created twenty times as fast as a file.
    for (let file = 1; file < FILES; file++) linkSync(join(folder, nameAt(0)), join(folder, nameAt(file)));
  }
  const { key } = (await attacker.ask("POST", "/v1/auth/keys", { scopes: ["read"], instanceId })).body;

  const paths = ["?limit=100", "", "/files?limit=100", `/files/notes/${nameAt(1)}`];
  const lists = await world.attack(() =>
    inLanes(16, 1_000, async (at) => {
      const agent = agents[at % AGENTS] ?? "";
      const path = at % 4 === 0 ? `/v1/instances/${instanceId}/agents?limit=100` : agent + paths[at % 4];
      const response = await fetch(new URL(path, url), { headers: { "X-API-Key": key } });
      return { status: response.status, bytes: (await response.arrayBuffer()).byteLength };
    }),
  );
  const counts = countsOf(lists.map(({ status }) => status));
  expect(Object.keys(counts).filter((status) => status !== "200" && status !== "429")).toEqual([]);
  // Reads are charged the time that they take: a busy machine admits fewer of them.
  expect(counts[200]).toBeGreaterThan(20);
  expect(Math.max(...lists.map(({ bytes }) => bytes))).toBeLessThan(512 * KIB);
  expect((await ask(url, "DELETE", agents[0] ?? "", undefined, { "X-API-Key": key })).status).toBe(403);

  await world.attack(async () => {
    for (const agent of agents.slice(0, 20)) expect((await attacker.ask("DELETE", agent)).status).toBe(200);
    expect((await attacker.ask("DELETE", `/v1/instances/${instanceId}`)).status).toBe(200);
    // By a write, since the lists may have used up what the account may read for a while.
    expect((await attacker.ask("DELETE", agents[50] ?? "")).status).toBe(404);
  });
  await world.expectUnharmed();
});
