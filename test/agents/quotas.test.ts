import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";

const KIB = 1024;
let server: TestServer;
let owner: Person;

beforeAll(async () => {
  server = await startTestServer({
    ROOST_MAX_INSTANCES: "2",
    ROOST_MAX_AGENTS: "3",
    ROOST_MAX_WORKSPACE_BYTES: String(300 * KIB),
  });
});
beforeEach(async () => {
  owner = await server.signUp();
});
afterAll(() => server.stop());

const instance = async () => (await owner.ask("POST", "/v1/instances", { name: "x" })).body.instanceId as string;
const agentsOf = (instanceId: string) => `/v1/instances/${instanceId}/agents`;
const agent = (instanceId: string, input: object = {}) =>
  owner.ask("POST", agentsOf(instanceId), { name: "Ada", useDefaults: false, ...input });
const text = (kib: number) => "x".repeat(kib * KIB);

test("an account has a limited number of instances: 409 names the quota; a deleted one makes room at once", async () => {
  const [first] = [await instance(), await instance()];
  const refused = await owner.ask("POST", "/v1/instances", { name: "x" });
  expect([refused.status, refused.body.error.code, refused.body.error.message]).toEqual([
    409,
    "conflict",
    "instances: expected at most 2 for the account; this would make it 3",
  ]);
  await owner.ask("DELETE", `/v1/instances/${first}`);
  expect((await owner.ask("POST", "/v1/instances", { name: "x" })).status).toBe(201);
});

test("the quota of instances is checked before the price: nobody is asked to pay for what is refused anyway", async () => {
  owner = await server.signUp(undefined, "1.00");
  await instance();
  await instance();
  server.foundation.store.transaction(() =>
    server.foundation.store.sqlite.run("UPDATE balances SET balance = 0, unposted = 0 WHERE account_id = ?", [
      owner.accountId,
    ]),
  );
  expect((await owner.ask("POST", "/v1/instances", { name: "x" })).status).toBe(409);
});

test("an account has a limited number of agents in all its instances; one of two at once gets the last place", async () => {
  const [one, two] = [await instance(), await instance()];
  const first = await agent(one);
  await agent(two);
  const answers = await Promise.all([agent(one), agent(two)]);
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 409]);
  const refused = answers.find(({ status }) => status === 409)?.body.error;
  expect(refused.message).toBe("agents: expected at most 3 for the account; this would make it 4");
  await owner.ask("DELETE", `${agentsOf(one)}/${first.body.agentId}`);
  expect((await agent(one)).status).toBe(201);
  expect((await agent(one)).status).toBe(409);
  await owner.ask("DELETE", `/v1/instances/${two}`);
  expect((await agent(one)).status).toBe(201);
});

test("an account's workspaces have a limited total size, however files are written, all or nothing", async () => {
  const [one, two] = [await instance(), await instance()];
  const { agentId } = (await agent(one, { files: { a: text(200) } })).body;
  const path = `${agentsOf(one)}/${agentId}`;
  const message = (used: number) =>
    `bytes of workspaces: expected at most ${300 * KIB} for the account; this would make it ${used * KIB}`;
  for (const [answer, used] of [
    [await agent(two, { slug: "b", files: { b: text(101) } }), 301],
    [await owner.ask("PUT", `${path}/files/b`, text(150)), 350],
    [await owner.ask("PATCH", path, { name: "New", files: { b: text(150) } }), 350],
  ] as const) {
    expect([answer.status, answer.body.error.message]).toEqual([409, message(used)]);
  }
  expect((await owner.ask("GET", path)).body).toMatchObject({ name: "Ada", files: { a: text(200) } });
  expect((await owner.ask("GET", agentsOf(two))).body.data).toEqual([]);
  expect((await owner.ask("PUT", `${path}/files/b`, text(100))).status).toBe(201);
  expect((await owner.ask("PUT", `${path}/files/c`, "")).status).toBe(201);
  expect((await owner.ask("DELETE", path)).status).toBe(200);
  expect((await agent(two, { slug: "b", files: { b: text(256) } })).status).toBe(201);
});

test("an account over a lowered limit may shrink, change and delete, but not grow", async () => {
  const instanceId = await instance();
  const path = `${agentsOf(instanceId)}/${(await agent(instanceId, { files: { a: text(200) } })).body.agentId}`;
  await agent(instanceId);
  const { store } = server.foundation;
  store.transaction(() => {
    for (const [name, value] of [
      ["agents", 1],
      ["instances", 0],
      ["workspaceBytes", KIB],
    ] as const) {
      store.sqlite.run("INSERT INTO account_limits VALUES (?, ?, ?)", [owner.accountId, name, value]);
    }
  });
  expect((await owner.ask("PUT", `${path}/files/a`, text(201))).status).toBe(409);
  expect((await agent(instanceId)).status).toBe(409);
  expect((await owner.ask("PATCH", path, { name: "Eve", files: { a: text(199) } })).status).toBe(200);
  expect((await owner.ask("DELETE", `${path}/files/a`)).status).toBe(200);
  expect((await owner.ask("DELETE", path)).status).toBe(200);
  expect((await owner.ask("DELETE", `/v1/instances/${instanceId}`)).status).toBe(200);
});
