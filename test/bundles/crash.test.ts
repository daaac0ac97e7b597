import { expect, test } from "bun:test";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTestServer } from "../support/test-server.ts";
import { bundleOf, manifest } from "./archives.ts";

const TEST_SERVER = join(import.meta.dir, "../support/test-server.ts");
const WORLD = join(import.meta.dir, "world.ts");

const heading = { title: null, isDefault: true, createdAt: "2026-01-01T00:00:00.000Z" };
const message = {
  ...{ role: "user", message: "Hello", sender: { type: "human", id: "a", name: "A" }, inReplyTo: null },
  ...{ createdAt: "2026-01-01T00:00:00.000Z", finishReason: null, promptTokens: null, completionTokens: null },
};
const lines = [heading, ...Array(1_000).fill(message)].map((line) => JSON.stringify(line));
const bundle = bundleOf(
  manifest(),
  ...Array.from({ length: 300 }, (_, at) => [`workspace/notes/${at}.md`, `note ${at}`] as const),
  ["history/0001.jsonl", lines.join("\n")],
);

/** Where the process dies, by SIGKILL. */
const MOMENTS = {
  "while it unpacks": `
    const { open } = fs.promises;
    let opened = 0;
    fs.promises.open = (path, ...rest) => String(path).includes("/bundles/") && ++opened === 200 ? die() : open(path, ...rest);`,
  "while it writes the index of files": "dieAtCommit(2);",
  "while it writes the history": "dieAtCommit(9);",
  "when the folder is staged": `
    const { rename } = fs.promises;
    fs.promises.rename = async (...paths) => { await rename(...paths); die(); };`,
  "in the commit that shows it": `
    const { run } = server.foundation.store.sqlite;
    const { insert } = server.foundation.store.db;
    server.foundation.store.db.insert = (table) => {
      if (table === workspaceChanges) die();
      return insert.call(server.foundation.store.db, table);
    };`,
} as const;
const AFTER = `
    const { renameSync } = fs;
    fs.renameSync = (from, to) => (String(from).endsWith("/workspace") ? die() : renameSync(from, to));`;

/** Imports in a process that dies, then starts a server on what it has left. */
async function importAndDie(moment: string) {
  const dataDir = fs.mkdtempSync(join(tmpdir(), "roost-crash-"));
  const program = `
    import fs from "node:fs";
    const { startTestServer } = await import(${JSON.stringify(TEST_SERVER)});
    const { newWorld } = await import(${JSON.stringify(WORLD)});
    const { workspaceChanges } = await import(${JSON.stringify(join(import.meta.dir, "../../src/agents/schema.ts"))});
    const server = await startTestServer({}, { dataDir: ${JSON.stringify(dataDir)} });
    const world = await newWorld(server);
    const die = () => process.kill(process.pid, "SIGKILL");
    function dieAtCommit(count) {
      const { store } = server.foundation;
      const { commitSoon } = store;
      let commits = 0;
      store.commitSoon = (work, durability) => commitSoon(() => {
        const result = work();
        if (++commits === count) store.afterCommit(die);
        return result;
      }, durability);
    }
    ${moment}
    await world.import(new Uint8Array(await Bun.stdin.arrayBuffer()));`;
  const child = Bun.spawn([process.execPath, "-e", program], { stdin: bundle, stderr: "pipe" });
  const errors = await new Response(child.stderr).text();
  await child.exited;
  expect([child.signalCode, errors]).toEqual(["SIGKILL", ""]);
  const server = await startTestServer({}, { dataDir });
  await server.app.settled();
  const { sqlite } = server.foundation.store;
  return {
    server,
    rowsIn: (table: string) => sqlite.query<{ rows: number }, []>(`SELECT count(*) AS rows FROM ${table}`).get()?.rows,
    usage: () => sqlite.query("SELECT agents, workspace_bytes, history_bytes FROM account_usage").get(),
    filesLeft: () =>
      fs
        .readdirSync(dataDir, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && /\/(bundles|instances)/.test(entry.parentPath))
        .map(({ name }) => name),
  };
}

test.each(Object.keys(MOMENTS) as (keyof typeof MOMENTS)[])(
  "an import that is killed %s leaves nothing",
  async (moment) => {
    const { server, rowsIn, usage, filesLeft } = await importAndDie(MOMENTS[moment]);
    const tables = ["agents", "conversations", "messages", "workspace_files", "workspace_changes", "removals"];
    expect(tables.map((table) => [table, rowsIn(table)])).toEqual(tables.map((table) => [table, 0]));
    expect(usage()).toEqual({ agents: 0, workspace_bytes: 0, history_bytes: 0 });
    expect(filesLeft()).toEqual([]);
    await server.stop();
  },
);

test("an import that is killed after its commit is whole after the next start", async () => {
  const { server, rowsIn, usage, filesLeft } = await importAndDie(AFTER);
  expect([rowsIn("agents"), rowsIn("messages"), rowsIn("workspace_files")]).toEqual([1, 1_000, 300]);
  expect(usage()).toMatchObject({ agents: 1, workspace_bytes: 300 * 5 + 10 + 90 * 2 + 200 * 3 });
  expect(filesLeft().length).toBe(300);
  const person = server.foundation.accounts.list(null, 1)[0];
  const link = server.foundation.links.create(person?.email ?? "", 0n);
  const { token } = (await server.ask("POST", "/v1/auth/redeem-link", { body: { link } })).body;
  const [instance] = (await server.ask("GET", "/v1/instances", { token })).body.data;
  const agents = `/v1/instances/${instance.instanceId}/agents`;
  const [agent] = (await server.ask("GET", agents, { token })).body.data;
  const file = await server.ask("GET", `${agents}/${agent.agentId}/files/notes/299.md`, { token });
  expect([instance.agentCount, agent.slug, file.body]).toEqual([1, "ada", "note 299"]);
  await server.stop();
});
