import { afterAll, beforeAll, beforeEach, describe, expect, spyOn, test } from "bun:test";
import fs from "node:fs";
import { join } from "node:path";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";

const MANY = 10_000;
let server: TestServer;
let owner: Person;
let instanceId: string;
let agents: string;

beforeAll(async () => {
  server = await startTestServer();
  owner = await server.signUp();
});
beforeEach(async () => {
  ({ instanceId } = (await owner.ask("POST", "/v1/instances", { name: "one" })).body);
  agents = `/v1/instances/${instanceId}/agents`;
});
afterAll(() => server.stop());

const folder = (slug = "ada") => join(server.dataDir, "instances", instanceId, "agents", slug);
const nameAt = (at: number) => `${String(at).padStart(6, "0")}${"x".repeat(90)}`;

/** An agent whose workspace an operator has filled; the host has not indexed it yet, as after an upgrade. */
async function filled(count: number, slug = "ada"): Promise<string> {
  const { body } = await owner.ask("POST", agents, { name: "Ada", slug, useDefaults: false, files: { "a.md": "a" } });
  for (let at = 0; at < count; at++) fs.writeFileSync(join(folder(slug), nameAt(at)), "");
  return body.agentId;
}

/** Starts a comparison of the workspace with the disk, and waits for it. */
async function indexed(agentId: string): Promise<void> {
  const { store } = server.foundation;
  store.transaction(() => store.sqlite.run("UPDATE agents SET indexed_at = NULL WHERE agent_id = ?", [agentId]));
  expect([200, 503]).toContain((await owner.ask("GET", `${agents}/${agentId}`)).status);
  await server.app.settled();
}

/** The disk calls in this turn of a request: their number must not depend on what a tenant has stored. */
async function callsOf(work: () => Promise<unknown>): Promise<{ readdirSync: number; lstatSync: number }> {
  const spies = { readdirSync: spyOn(fs, "readdirSync"), lstatSync: spyOn(fs, "lstatSync") };
  try {
    await work();
    return { readdirSync: spies.readdirSync.mock.calls.length, lstatSync: spies.lstatSync.mock.calls.length };
  } finally {
    for (const spy of Object.values(spies)) spy.mockRestore();
  }
}

describe("a workspace of ten thousand files", () => {
  test("is walked by no request: not by a list, a GET, a PUT, a PATCH or a DELETE", async () => {
    const agentId = await filled(MANY - 1);
    const agent = `${agents}/${agentId}`;
    await indexed(agentId);
    const requests: [string, string, unknown?][] = [
      ["GET", `${agents}?limit=100`],
      ["GET", agent],
      ["GET", `${agent}/files?limit=100`],
      ["PUT", `${agent}/files/a.md`, "new"],
      ["PATCH", agent, { files: { "a.md": "newer" } }],
      ["DELETE", `${agent}/files/a.md`],
      ["DELETE", agent],
    ];
    for (const [method, path, body] of requests) {
      const calls = await callsOf(async () => {
        expect((await owner.ask(method, path, body)).status).toBe(200);
      });
      // Of the staging folder at most; of the workspace itself never. A slice of what follows may be among them.
      expect([method, path, calls.readdirSync]).toEqual([method, path, 0]);
      expect(calls.lstatSync).toBeLessThan(500);
    }
    await server.app.settled();
    expect(fs.existsSync(folder())).toBe(false);
  });

  test("is listed page by page by name, its names cut in the list of agents, its texts in the record, and both say so", async () => {
    const agentId = await filled(MANY - 1);
    await indexed(agentId);
    const names: string[] = [];
    for (let after = ""; ; ) {
      const { body } = await owner.ask("GET", `${agents}/${agentId}/files?limit=100${after}`);
      names.push(...body.data.map(({ name }: { name: string }) => name));
      if (!body.hasMore) break;
      after = `&after=${body.nextCursor}`;
    }
    expect(names).toEqual([...Array.from({ length: MANY - 1 }, (_, at) => nameAt(at)), "a.md"]);
    const [listed] = (await owner.ask("GET", agents)).body.data;
    expect(listed.filesTruncated).toBe(true);
    expect(listed.files).toEqual(names.slice(0, Math.floor((64 * 1024) / nameAt(0).length)));
    const record = (await owner.ask("GET", `${agents}/${agentId}`)).body;
    expect(record.filesTruncated).toBe(true);
    expect(Object.keys(record.files)).toEqual(names.slice(0, 250));
  });

  test("takes no file more: 409, which names the quota and what would be used; it may shrink, and change what it has", async () => {
    const agentId = await filled(MANY - 1);
    const agent = `${agents}/${agentId}`;
    await indexed(agentId);
    const message = "files: expected at most 10000 for the workspace; this would make it 10001";
    for (const answer of [
      await owner.ask("PUT", `${agent}/files/new.md`, "x"),
      await owner.ask("PATCH", agent, { files: { "new.md": "x" } }),
    ]) {
      expect([answer.status, answer.body.error.code, answer.body.error.message]).toEqual([409, "conflict", message]);
    }
    expect((await owner.ask("PUT", `${agent}/files/a.md`, "changed")).status).toBe(200);
    expect((await owner.ask("DELETE", `${agent}/files/${nameAt(1)}`)).status).toBe(200);
    expect((await owner.ask("PUT", `${agent}/files/new.md`, "x")).status).toBe(201);
    expect((await owner.ask("PUT", `${agent}/files/A.md`, "x")).status).toBe(400);
    expect((await owner.ask("PUT", `${agent}/files/a.md/b`, "x")).status).toBe(400);
  });
});

describe("what an operator does in a large workspace", () => {
  test("shows once it was compared with the disk, which a request sets off and no request waits for", async () => {
    const agentId = await filled(1_000);
    await indexed(agentId);
    await server.restart(); // which forgets that it was compared a moment ago
    fs.writeFileSync(join(folder(), "by-hand.md"), "x");
    fs.mkdirSync(join(folder(), "deep/er"), { recursive: true });
    fs.writeFileSync(join(folder(), "deep/er/file"), "xyz");
    fs.rmSync(join(folder(), nameAt(7)));
    fs.writeFileSync(join(folder(), nameAt(8)), "longer");
    const sizes = async () => {
      const { sqlite } = server.foundation.store;
      const rows = sqlite.query<{ name: string; size: number }, [string]>(
        "SELECT name, size FROM workspace_files WHERE agent_id = ?",
      );
      return new Map(rows.all(agentId).map(({ name, size }) => [name, size]));
    };
    expect((await sizes()).has("by-hand.md")).toBe(false);
    expect((await owner.ask("GET", `${agents}/${agentId}/files`)).status).toBe(200);
    await server.app.settled();
    const after = await sizes();
    expect([after.get("by-hand.md"), after.get("deep/er/file"), after.get(nameAt(8))]).toEqual([1, 3, 6]);
    expect([after.has(nameAt(7)), after.size]).toEqual([false, 1_002]);
  });

  test("beyond ten thousand files is not listed, and drives out nothing that is", async () => {
    const agentId = await filled(MANY + 500);
    await indexed(agentId);
    const { sqlite } = server.foundation.store;
    const row = sqlite
      .query(
        "SELECT file_count, (SELECT 1 FROM workspace_files WHERE name = 'a.md' AND agent_id = ?1) AS kept FROM agents WHERE agent_id = ?1",
      )
      .get(agentId);
    expect(row).toEqual({ file_count: MANY, kept: 1 });
    expect((await owner.ask("GET", `${agents}/${agentId}/files/${nameAt(MANY + 400)}`)).status).toBe(200);
  });
});

test("workspaces from before the index are indexed when first shown, small or large", async () => {
  const large = await filled(300, "large");
  const small = await filled(3, "small");
  const { store } = server.foundation;
  store.transaction(() => {
    store.sqlite.run("DELETE FROM workspace_files WHERE agent_id IN (?, ?)", [large, small]);
    store.sqlite.run("UPDATE agents SET indexed_at = NULL WHERE agent_id IN (?, ?)", [large, small]);
  });
  let answer = await owner.ask("GET", agents);
  // It waits ten seconds for the index.
  while (answer.status === 503) answer = await owner.ask("GET", agents);
  const { data } = answer.body;
  expect(data.map((one: { agentId: string; files: string[] }) => [one.agentId, one.files.length])).toEqual([
    [large, 301],
    [small, 4],
  ]);
  expect(data[0].filesTruncated).toBeUndefined();
  await server.app.settled();
});

test("a record shows no more text than JSON writes in hardly more than a mebibyte", async () => {
  const size = 256 * 1024;
  const files = {
    "a.md": "\u0001".repeat(size),
    "b.md": "line\n\t".repeat(size / 6),
    "c.md": "\u0001".repeat(size / 2),
  };
  const { body: created } = await owner.ask("POST", agents, { name: "Ada", useDefaults: false });
  for (const [name, text] of Object.entries(files)) {
    expect((await owner.ask("PUT", `${agents}/${created.agentId}/files/${name}`, text)).status).toBe(201);
  }
  const { body } = await owner.ask("GET", `${agents}/${created.agentId}`);
  expect([Object.keys(body.files), body.filesTruncated]).toEqual([["b.md", "c.md"], true]);
  expect(body.files["b.md"]).toBe(files["b.md"]);
});
