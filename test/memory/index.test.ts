import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog } from "../../src/lib/log.ts";
import { createMemoryQueue } from "../../src/memory/queue.ts";
import { openAgentIndex } from "../../src/memory/search/entries.ts";
import { type Entry, MAX_ENTRIES } from "../../src/memory/search/entry.ts";
import type { FileText } from "../../src/memory/search/worker.ts";
import { createSearchThread, LostIndexError } from "../../src/memory/search-thread.ts";
import { openStore } from "../../src/storage/store.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";

const folder = mkdtempSync(join(tmpdir(), "roost-memory-"));
let server: TestServer;
let ada: Person;
let agent: string;
let agentId: string;
beforeAll(async () => {
  server = await startTestServer();
  ada = await server.signUp();
  const { instanceId } = (await ada.ask("POST", "/v1/instances", { name: "home" })).body;
  agentId = (await ada.ask("POST", `/v1/instances/${instanceId}/agents`, { name: "Ada" })).body.agentId;
  agent = `/v1/instances/${instanceId}/agents/${agentId}`;
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

const write = (name: string, text: string) => ada.ask("PUT", `${agent}/files/${name}`, text);
const search = async (query: string) =>
  (await ada.ask("GET", `${agent}/memory?query=${encodeURIComponent(query)}`)).body as {
    items: { text: string }[];
    degraded: string | null;
  };
/** Once what was written is in the index, which the first search begins. */
async function texts(query: string) {
  await search(query);
  await server.app.settled();
  return (await search(query)).items.map(({ text }) => text);
}
const indexOf = (id: string) => join(server.dataDir, "memory", `${id}.db`);

const entry = (text: string, seq: number): Entry => ({
  ...{ text, seq, fromLine: null, toLine: null, messageId: null, runId: null, conversationId: null },
  origin: "owner",
  createdAt: 0,
});
const fileOf = (name: string, text: string): FileText => ({
  ...{ name, bytes: Buffer.from(text), isNotes: false, runId: null, conversationId: null, updatedAt: 0, marks: [] },
  origin: "owner",
});

test("while an index is built anew, the one there was answers; once it is complete, only the new one does", async () => {
  const thread = createSearchThread(folder, await createLog("silent", "json"));
  const [id, limit, vector] = ["agt_a", 10, null];
  const find = async (query: string) => {
    const { found, isBeingBuilt } = await thread.ask({ type: "search", agentId: id, query, vector, limit });
    return { texts: found.map(({ text }) => text), isBeingBuilt };
  };
  await expect(find("anything")).rejects.toBeInstanceOf(LostIndexError);
  await thread.ask({ type: "rebuild", agentId: id });
  expect(await find("harbour")).toEqual({ texts: [], isBeingBuilt: true });
  await thread.ask({ type: "file", agentId: id, file: fileOf("a.md", "The old harbour.") });
  await thread.ask({ type: "file", agentId: id, file: fileOf("b.md", "The old bakery.") });
  await thread.ask({ type: "rebuilt", agentId: id });
  await thread.ask({ type: "rebuild", agentId: id });
  expect(await find("harbour")).toEqual({ texts: ["The old harbour."], isBeingBuilt: true });
  await thread.ask({ type: "file", agentId: id, file: fileOf("a.md", "The new harbour.") });
  expect((await find("harbour")).texts).toEqual(["The new harbour."]);
  expect((await find("bakery")).texts).toEqual(["The old bakery."]);
  await thread.ask({ type: "rebuilt", agentId: id });
  expect(await find("harbour")).toEqual({ texts: ["The new harbour."], isBeingBuilt: false });
  expect((await find("bakery")).texts).toEqual([]);
  thread.close();
});

test("a long file is taken in whole, however many other memories are searched meanwhile", async () => {
  const thread = createSearchThread(folder, await createLog("silent", "json"));
  const others = Array.from({ length: 80 }, (_, at) => `agt_other_${at}`);
  for (const agentId of ["agt_long", ...others]) await thread.ask({ type: "rebuild", agentId });
  const [query, vector, limit] = ["line", null, 1];
  const text = Array.from({ length: 2_000 }, (_, at) => `line ${at} ${"and more ".repeat(100)}`).join("\n\n");
  const taken = thread.ask({ type: "file", agentId: "agt_long", file: fileOf("long.md", text) });
  for (const agentId of others) await thread.ask({ type: "search", agentId, query, vector, limit });
  await taken;
  expect((await thread.ask({ type: "search", agentId: "agt_long", query, vector, limit })).total).toBe(2_000);
  thread.close();
});

test("beyond its bound, a memory leaves out the oldest messages, and then what files have too much", () => {
  const index = openAgentIndex(join(folder, "bound.db"));
  if (index === null) throw new TypeError("a new index has this version");
  index.addMessages("conv_a", [entry("the first word of all", 1), entry("the second word", 2)], 2);
  for (const _ of index.putFile(
    "long.md",
    Array.from({ length: MAX_ENTRIES - 1 }, (_, at) => entry(`line ${at}`, 0)),
  ));
  const found = (query: string) => index.search(query, null, 5).found.map(({ text }) => text);
  expect(found("first")).toEqual([]);
  expect(found("second")).toEqual(["the second word"]);
  for (const _ of index.putFile("more.md", [entry("walrus", 0), entry("narwhal", 0)]));
  expect([found("walrus"), found("narwhal"), found("second")]).toEqual([["walrus"], [], []]);
  index.close();
});

test("messages up to one, and those of many runs, are dropped at once; the others stay", () => {
  const index = openAgentIndex(join(folder, "dropped.db"));
  if (index === null) throw new TypeError("a new index has this version");
  const entries = Array.from({ length: 9 }, (_, at) => ({ ...entry(`swallow ${at}`, at + 1), runId: `run_${at}` }));
  index.addMessages("conv_a", entries, 9);
  index.addMessages("conv_b", [{ ...entry("swallow elsewhere", 10), runId: "run_4" }], 10);
  const source = { kind: "conversation", name: "conv_a" } as const;
  index.drop(source, {
    upTo: 2,
    runIds: ["run_4", "run_6", ...Array.from({ length: 5_000 }, (_, at) => `run_x${at}`)],
  });
  const left = index.search("swallow", null, 20).found.map(({ text }) => text.slice("swallow ".length));
  expect(left.toSorted()).toEqual(["2", "3", "5", "7", "8", "elsewhere"]);
  index.drop(source);
  expect(index.search("swallow", null, 20).found.map(({ text }) => text)).toEqual(["swallow elsewhere"]);
  index.close();
});

test("accounts take turns: one message does not wait behind another account's thousand files", () => {
  const dataDir = mkdtempSync(join(folder, "data-"));
  const store = openStore(dataDir);
  const queue = createMemoryQueue(store.db);
  store.transaction(() => {
    for (let at = 0; at < 1_000; at++)
      queue.add({ accountId: "acct_a", kind: "file", agentId: "agt_a", source: `${at}` });
    queue.add({ accountId: "acct_b", kind: "conversation", agentId: "agt_b", source: "conv_b" });
  });
  expect([queue.next("")?.accountId, queue.next("acct_a")?.accountId, queue.next("acct_b")?.accountId]).toEqual([
    "acct_a",
    "acct_b",
    "acct_a",
  ]);
  store.close();
});

test("what changes while it is taken in is taken in again", () => {
  const store = openStore(mkdtempSync(join(folder, "data-")));
  const queue = createMemoryQueue(store.db);
  const row = { accountId: "acct_a", kind: "file", agentId: "agt_a", source: "a.md" } as const;
  store.transaction(() => queue.add(row));
  const taken = queue.next("");
  store.transaction(() => queue.add(row));
  if (taken) store.transaction(() => queue.done(taken));
  expect(queue.isQueued("agt_a", "file", "a.md")).toBe(true);
  store.close();
});

test("a query may consist of anything", () => {
  const index = openAgentIndex(join(folder, "anything.db"));
  for (const query of [
    '"',
    "a AND",
    "NEAR(",
    "*",
    "-x",
    "the",
    "日",
    "ab",
    "\u0000",
    "'; DROP TABLE entries",
    "((",
    "😀",
  ]) {
    expect(index?.search(query, null, 5).found).toEqual([]);
  }
  index?.close();
});

test("what was written before a stop is found after the start", async () => {
  await write("trip.md", "The tickets are in the glove box.\n");
  await server.restart();
  expect(await texts("tickets glove")).toEqual(["The tickets are in the glove box."]);
});

test("a file that an operator writes on the disk is found", async () => {
  const slug = (await ada.ask("GET", agent)).body.slug;
  const [, , , instanceId] = agent.split("/");
  writeFileSync(
    join(server.dataDir, "instances", instanceId ?? "", "agents", slug, "by-hand.md"),
    "A heron by hand.\n",
  );
  expect(await texts("heron")).toEqual(["A heron by hand."]);
});

test("indexes that are gone, as after a restore, are built anew", async () => {
  await server.restart(() => rmSync(join(server.dataDir, "memory"), { recursive: true }));
  const { items, degraded } = await search("tickets");
  expect(items.length > 0 || degraded !== null).toBe(true);
  await server.app.settled();
  expect(await texts("tickets")).toEqual(["The tickets are in the glove box."]);
});

test("a damaged index is told as degraded, and built anew", async () => {
  await server.restart(() =>
    writeFileSync(indexOf(agentId), "This is no database, though it is long enough. ".repeat(99)),
  );
  expect((await search("tickets")).degraded).not.toBeNull();
  await server.app.settled();
  expect(await texts("tickets")).toEqual(["The tickets are in the glove box."]);
});

test("an index is for its owner alone", () => {
  expect(statSync(indexOf(agentId)).mode & 0o777).toBe(0o600);
});

test("a deleted agent's index is removed", async () => {
  expect(existsSync(indexOf(agentId))).toBe(true);
  await ada.ask("DELETE", agent);
  await server.app.settled();
  expect(existsSync(indexOf(agentId))).toBe(false);
});
