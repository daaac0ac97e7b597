import { expect, test } from "bun:test";
import fs from "node:fs";
import { join } from "node:path";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const STORE = join(import.meta.dir, "../../src/storage/store.ts");
const WORKSPACES = join(import.meta.dir, "../../src/agents/workspaces.ts");
const REMOVALS = join(import.meta.dir, "../../src/storage/removals.ts");
const CLOCK = join(import.meta.dir, "../../src/lib/clock.ts");

/** Runs `change` in a process that dies by SIGKILL at `moment`: before the commit, or after it and before the files. */
async function dieWhile(moment: "before" | "after", dataDir: string, change: string): Promise<void> {
  const program = `
    const { openStore } = await import(${JSON.stringify(STORE)});
    const { createWorkspaces } = await import(${JSON.stringify(WORKSPACES)});
    const { createRemovals } = await import(${JSON.stringify(REMOVALS)});
    const { systemClock } = await import(${JSON.stringify(CLOCK)});
    const { pino } = await import("pino");
    const store = openStore(${JSON.stringify(dataDir)});
    const die = () => process.kill(process.pid, "SIGKILL");
    const { sqlite } = store;
    const log = pino({ level: "silent" });
    const removals = createRemovals(store, log);
    const workspaces = createWorkspaces({ store, clock: systemClock, log, dataDir: ${JSON.stringify(dataDir)}, removals });
    const change = (place, target, changes, also = () => {}) =>
      workspaces.inTurn({ accountId: "", instanceId: place.instanceId }, 0, async (stage) => {
        const staged = await stage(target, workspaces.check(place, changes));
        await store.commitSoon(() => {
          ${moment === "after" ? "store.afterCommit(die);" : ""}
          also();
          workspaces.change(place, staged);
          ${moment === "before" ? "die();" : ""}
        }, "full");
      });
    await ${change}`;
  const child = Bun.spawn([process.execPath, "-e", program], { stderr: "pipe" });
  const errors = await new Response(child.stderr).text();
  await child.exited;
  expect([child.signalCode, errors]).toEqual(["SIGKILL", ""]);
}

/** A server with one agent, stopped so that another process can open its folder. */
async function cutOff(
  moment: "before" | "after",
  changeOf: (place: { instanceId: string; agentId: string }) => string,
): Promise<{
  server: TestServer;
  ask: (path?: string) => Promise<{ status: number; body: Record<string, unknown> }>;
  entries: () => string[];
}> {
  const server = await startTestServer();
  const owner = await server.signUp();
  const { instanceId } = (await owner.ask("POST", "/v1/instances", { name: "one" })).body;
  const agents = `/v1/instances/${instanceId}/agents`;
  const input = { name: "Ada", slug: "ada", useDefaults: false, files: { "a.md": "a", "b.md": "b" } };
  const { agentId } = (await owner.ask("POST", agents, input)).body;
  await dieWhile(moment, server.dataDir, changeOf({ instanceId, agentId }));
  await server.restart();
  const folder = join(server.dataDir, "instances", instanceId);
  return {
    server,
    ask: (path = `${agents}/${agentId}`) => owner.ask("GET", path),
    entries: () => [...fs.readdirSync(join(folder, "agents")), ...fs.readdirSync(join(folder, ".staging"))].sort(),
  };
}

type Ids = { instanceId: string; agentId: string };
const ada = ({ instanceId, agentId }: Ids) => `{ instanceId: "${instanceId}", agentId: "${agentId}", slug: "ada" }`;
const edit = (ids: Ids) =>
  `change(${ada(ids)}, { kind: "edit", slug: "ada" },
    [{ name: "a.md", content: null }, { name: "c/d.md", content: "d" }]);`;
const rename = (ids: Ids) =>
  `change(${ada(ids)}, { kind: "rename", slug: "eve", from: "ada" }, [{ name: "a.md", content: "A" }], () =>
    sqlite.run("UPDATE agents SET slug = 'eve' WHERE agent_id = '${ids.agentId}'"));`;
const remove = (ids: Ids) =>
  `change(${ada(ids)}, { kind: "remove", slug: "ada" }, [], () => {
    sqlite.run("UPDATE agents SET removed_at = 1, slug = agent_id WHERE agent_id = '${ids.agentId}'");
    removals.add("agent", "${ids.agentId}");
  });`;

test("a change that was committed when the host died is finished at the next start", async () => {
  const { server, ask, entries } = await cutOff("after", edit);
  expect((await ask()).body.files).toEqual({ "b.md": "b", "c/d.md": "d" });
  expect(entries()).toEqual(["ada"]);
  await server.stop();
});

test("a committed new slug has its folder with all files", async () => {
  const { server, ask, entries } = await cutOff("after", rename);
  expect((await ask()).body).toMatchObject({ slug: "eve", files: { "a.md": "A", "b.md": "b" } });
  expect(entries()).toEqual(["eve"]);
  await server.stop();
});

test("a committed deletion leaves no folder", async () => {
  const { server, ask, entries } = await cutOff("after", remove);
  expect((await ask()).status).toBe(404);
  await server.app.settled();
  expect(entries()).toEqual([]);
  expect(server.foundation.store.sqlite.query("SELECT * FROM agents").all()).toEqual([]);
  await server.stop();
});

test("a change that was not committed has no effect, and its staged files are gone when the instance is next used", async () => {
  const { server, ask } = await cutOff("before", edit);
  const staging = fs
    .readdirSync(join(server.dataDir, "instances"), { recursive: true })
    .filter((name) => String(name).includes("change_"));
  expect(staging.length).toBeGreaterThan(0);
  expect((await ask()).body.files).toEqual({ "a.md": "a", "b.md": "b" });
  const [instanceId = ""] = fs.readdirSync(join(server.dataDir, "instances"));
  const person = server.foundation.accounts.list(null, 1)[0];
  const link = server.foundation.links.create(person?.email ?? "", 0n);
  const { token } = (await server.ask("POST", "/v1/auth/redeem-link", { body: { link } })).body;
  const created = await server.ask("POST", `/v1/instances/${instanceId}/agents`, { token, body: { name: "Bob" } });
  expect(created.status).toBe(201);
  expect(fs.readdirSync(join(server.dataDir, "instances", instanceId, ".staging"))).toEqual([]);
  await server.stop();
});
