import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFoundation } from "../../src/app/foundation.ts";
import { type ArchivedFile, writeArchive } from "../../src/backup/archive.ts";
import { createBackup } from "../../src/backup/create.ts";
import { locate } from "../../src/backup/destination.ts";
import { restoreBackup } from "../../src/backup/restore.ts";
import { takeSnapshot } from "../../src/backup/snapshot.ts";
import { verifyBackup } from "../../src/backup/verify.ts";
import { stageChange } from "../../src/workspace/workspace-change.ts";
import { addAgent } from "./folders.ts";
import { type Host, startHost } from "./host.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "roost-moved-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

type Files = Record<string, string>;

async function createAgent({ ask, instanceId }: Host, slug: string, files: Files): Promise<string> {
  const path = `/v1/instances/${instanceId}/agents`;
  const { status, body } = await ask("POST", path, { name: slug, slug, files, useDefaults: false });
  expect(status).toBe(201);
  return body.agentId;
}

async function change({ ask, instanceId }: Host, method: string, agent: string, body?: object): Promise<void> {
  const { status } = await ask(method, `/v1/instances/${instanceId}/agents/${agent}`, body);
  expect(status).toBeLessThan(300);
}

const filesOf = (agent: string): Files =>
  Object.fromEntries(["1.md", "2.md", "3.md"].map((name) => [name, `${agent} ${name}`]));

/** A backup with a pause before each file of a workspace; it is verified and restored. */
async function backUp(dataDir: string, pause: (nth: number) => Promise<void>): Promise<string> {
  const snapshot = await takeSnapshot(dataDir, { withKeys: false });
  async function* files(): AsyncGenerator<ArchivedFile> {
    let nth = 0;
    await pause(nth++);
    for await (const file of snapshot.files()) {
      yield file;
      if (file.name.includes("/agents/")) await pause(nth++);
    }
  }
  const archive = new Blob([await new Response(await writeArchive(files(), snapshot.contents, null)).bytes()]);
  await snapshot.close();
  const options = { archive, size: archive.size, passphrase: null };
  await verifyBackup(dataDir, options);
  const restored = join(folder, "restored");
  await restoreBackup(restored, options);
  return restored;
}

/** What is in the workspace that the database names, by the file's name. */
function workspaceIn(dataDir: string, agentId: string): Files {
  using sqlite = new Database(join(dataDir, "roost.db"), { readonly: true });
  const { instance_id, slug } = sqlite.query("SELECT * FROM agents WHERE agent_id = ?").get(agentId) as {
    instance_id: string;
    slug: string;
  };
  const cwd = join(dataDir, "instances", instance_id, "agents", slug);
  const names = existsSync(cwd) ? [...new Bun.Glob("[0-9].md").scanSync({ cwd })].sort() : [];
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(cwd, name), "utf8")]));
}

test("an agent that is renamed while a backup is made is in it with all its files, and nobody else's", async () => {
  await using host = await startHost();
  const one = await createAgent(host, "one", filesOf("one"));
  const two = await createAgent(host, "two", filesOf("two"));
  const three = await createAgent(host, "three", filesOf("three"));
  const restored = await backUp(host.dataDir, async (nth) => {
    // Before any of them, and then in the middle of the first two: they exchange their slugs.
    if (nth === 0) await change(host, "PATCH", three, { slug: "third" });
    if (nth === 1) await change(host, "PATCH", one, { slug: "other" });
    if (nth === 2) {
      await change(host, "PATCH", two, { slug: "one" });
      await change(host, "PATCH", one, { slug: "two" });
    }
    if (nth === 4) await change(host, "PATCH", two, { slug: "second" });
  });
  expect([one, two, three].map((id) => workspaceIn(restored, id))).toEqual(["one", "two", "three"].map(filesOf));
  using sqlite = new Database(join(restored, "roost.db"), { readonly: true });
  expect(sqlite.query("SELECT slug FROM agents ORDER BY agent_id").values().flat()).toEqual(["one", "two", "three"]);
});

test("an agent that is removed or emptied while a backup is made does not spoil it", async () => {
  await using host = await startHost();
  const removed = await createAgent(host, "removed", filesOf("removed"));
  const emptied = await createAgent(host, "emptied", { "1.md": "1" });
  const kept = await createAgent(host, "kept", filesOf("kept"));
  const restored = await backUp(host.dataDir, async (nth) => {
    if (nth > 0) return;
    await change(host, "DELETE", removed);
    await change(host, "DELETE", `${emptied}/files/1.md`);
    await createAgent(host, "removed", filesOf("new"));
  });
  expect([removed, emptied, kept].map((id) => workspaceIn(restored, id))).toEqual([{}, {}, filesOf("kept")]);
});

/** A data folder that was left between the commit of a rename and the move of its folder. */
async function leftInRename(): Promise<string> {
  const dataDir = join(folder, "data");
  openFoundation({ dataDir }).store.close();
  addAgent(dataDir, "after");
  using sqlite = new Database(join(dataDir, "roost.db"));
  sqlite.run("INSERT INTO workspace_files (agent_id, name, size, updated_at) VALUES ('agt_a', '1.md', 1, 1)");
  sqlite.run("INSERT INTO workspace_changes (change_id, instance_id) VALUES ('change_a', 'inst_a')");
  const instance = join(dataDir, "instances/inst_a");
  mkdirSync(join(instance, "agents/before"), { recursive: true });
  writeFileSync(join(instance, "agents/before/1.md"), "1");
  await stageChange(instance, "change_a", { kind: "rename", slug: "after", from: "before" }, []);
  return dataDir;
}

test("a rename that a crash has left half done is in a backup", async () => {
  const restored = await backUp(await leftInRename(), async () => {});
  expect(workspaceIn(restored, "agt_a")).toEqual({ "1.md": "1" });
});

test("a backup that lacks the files of an agent does not pass for a good one", async () => {
  const dataDir = await leftInRename();
  rmSync(join(dataDir, "instances"), { recursive: true });
  const file = join(folder, "backup.tar.zst");
  await createBackup({ dataDir, ...locate(file), withKeys: false, passphrase: null });
  const archive = Bun.file(file);
  const verified = verifyBackup(dataDir, { archive, size: archive.size, passphrase: null });
  expect(await verified.catch(String)).toContain("it has no files of 1 of the agents");
});
