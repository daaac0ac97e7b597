import { afterAll, expect, test } from "bun:test";
import { startTestServer } from "../support/test-server.ts";
import { bundleOf, manifest } from "./archives.ts";
import { newWorld } from "./world.ts";

const KIB = 1024;
const server = await startTestServer({ ROOST_MAX_AGENTS: "2", ROOST_MAX_WORKSPACE_BYTES: String(100 * KIB) });
afterAll(() => server.stop());

const ofSize = (kib: number) => bundleOf(manifest(), ["workspace/a.md", new Uint8Array(kib * KIB).fill(0x61)]);
const usage = (accountId: string) =>
  server.foundation.store.sqlite
    .query("SELECT agents, workspace_bytes AS bytes, history_bytes AS history FROM account_usage WHERE account_id = ?")
    .get(accountId);

test("an imported agent counts as a created one does, and what is beyond a quota leaves nothing", async () => {
  const world = await newWorld(server);
  const { accountId } = world.person;
  const large = await world.import(ofSize(101));
  expect([large.status, large.body.error.message]).toEqual([
    409,
    `bytes of workspaces: expected at most ${100 * KIB} for the account; this would make it ${101 * KIB}`,
  ]);
  await server.app.settled();
  expect(usage(accountId)).toEqual({ agents: 0, bytes: 0, history: 0 });
  expect((await world.import(ofSize(60))).status).toBe(201);
  expect(usage(accountId)).toEqual({ agents: 1, bytes: 60 * KIB, history: 0 });
  expect((await world.import(ofSize(60), "?name=Second")).status).toBe(409);
  const second = await world.import(ofSize(40), "?name=Second");
  expect(second.status).toBe(201);
  const third = await world.import(ofSize(0), "?name=Third");
  expect([third.status, third.body.error.message]).toEqual([
    409,
    "agents: expected at most 2 for the account; this would make it 3",
  ]);
  await world.person.ask("DELETE", `${world.instance}/agents/${second.body.agentId}`);
  await server.app.settled();
  expect(usage(accountId)).toEqual({ agents: 1, bytes: 60 * KIB, history: 0 });
  expect((await world.import(ofSize(40), "?name=Third")).status).toBe(201);
});

test("of an account, one bundle is unpacked at a time", async () => {
  const world = await newWorld(server);
  const bundle = bundleOf(manifest(), ...Array.from({ length: 500 }, (_, at) => [`workspace/${at}`, "x"] as const));
  const answers = await Promise.all([world.import(bundle, "?name=One"), world.import(bundle, "?name=Two")]);
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 429]);
});

test("an instance that is deleted during an import keeps nothing of it", async () => {
  const world = await newWorld(server);
  const bundle = bundleOf(manifest(), ...Array.from({ length: 500 }, (_, at) => [`workspace/${at}`, "x"] as const));
  const [imported] = await Promise.all([world.import(bundle), world.person.ask("DELETE", world.instance)]);
  expect(imported.status).toBe(404);
  await server.app.settled();
  const { sqlite } = server.foundation.store;
  expect(sqlite.query("SELECT * FROM agents WHERE instance_id = ?").all(world.instanceId)).toEqual([]);
  expect(usage(world.person.accountId)).toEqual({ agents: 0, bytes: 0, history: 0 });
});
