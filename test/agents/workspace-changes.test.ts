import { afterAll, beforeAll, beforeEach, expect, spyOn, test } from "bun:test";
import fs from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import { createWorkspaceChanges } from "../../src/agents/workspace-changes.ts";
import { AppError } from "../../src/lib/app-error.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
let owner: Person;
let instanceId: string;
let agents: string;

beforeAll(async () => {
  server = await startTestServer({ ROOST_MAX_WORKSPACE_BYTES: "1000" });
});
beforeEach(async () => {
  owner = await server.signUp();
  ({ instanceId } = (await owner.ask("POST", "/v1/instances", { name: "one" })).body);
  agents = `/v1/instances/${instanceId}/agents`;
});
afterAll(() => server.stop());

const instanceFolder = () => join(server.dataDir, "instances", instanceId);
const staged = () => fs.readdirSync(join(instanceFolder(), ".staging"));
const notedChanges = () => server.foundation.store.sqlite.query("SELECT * FROM workspace_changes").all();

async function create(files: Record<string, string> = {}): Promise<string> {
  const { body } = await owner.ask("POST", agents, { name: "Ada", slug: "ada", useDefaults: false, files });
  return `${agents}/${body.agentId}`;
}

test("no change of a workspace makes the main thread wait for a file or a folder", async () => {
  const spy = spyOn(fs, "fsyncSync");
  const soon = spyOn(fs.promises, "open");
  try {
    ({ instanceId } = (await owner.ask("POST", "/v1/instances", { name: "two" })).body);
    agents = `/v1/instances/${instanceId}/agents`;
    const agent = await create({ "a.md": "a", "b/c.md": "c" });
    const requests: [string, string, unknown?][] = [
      ["PUT", `${agent}/files/new/x.md`, "x"],
      ["PUT", `${agent}/files/a.md`, "A"],
      ["PATCH", agent, { slug: "eve", files: { "a.md": null, "b/c.md": null, b: "b", "d/e.md": "e" } }],
      ["DELETE", `${agent}/files/b`],
      ["DELETE", agent],
    ];
    for (const [method, path, body] of requests) {
      soon.mockClear();
      expect((await owner.ask(method, path, body)).status).toBeLessThan(300);
      expect([method, path, spy.mock.calls.length]).toEqual([method, path, 0]);
      expect(soon.mock.calls.length).toBeGreaterThan(0);
    }
  } finally {
    spy.mockRestore();
    soon.mockRestore();
  }
});

test("changes of one account are made one after the other, completely, and leave nothing behind", async () => {
  const agent = await create();
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, at) =>
      at % 4 === 3
        ? owner.ask("PATCH", agent, { files: { one: `${at}`, two: `${at}` } })
        : owner.ask("PUT", `${agent}/files/${at % 4 === 0 ? "one" : `f${at}`}`, `${at}`),
    ),
  );
  expect(answers.every(({ status }) => status < 300)).toBe(true);
  // A PATCH returns what it wrote: both of its files.
  for (const [at, { body }] of answers.entries()) {
    if (at % 4 === 3) expect([body.files.one, body.files.two]).toEqual([`${at}`, `${at}`]);
  }
  await server.app.settled();
  expect([staged(), notedChanges()]).toEqual([[], []]);
  const { files } = (await owner.ask("GET", agent)).body;
  const onDisk = fs.readdirSync(join(instanceFolder(), "agents", "ada"));
  expect(Object.keys(files)).toEqual(onDisk.sort());
  for (const [name, text] of Object.entries(files)) {
    expect(fs.readFileSync(join(instanceFolder(), "agents", "ada", name), "utf8")).toBe(text as string);
  }
});

test("a change that its commit refuses leaves no staged files", async () => {
  const agent = await create({ a: "a" });
  const refused = await owner.ask("PUT", `${agent}/files/b`, "x".repeat(1000));
  expect([refused.status, staged(), notedChanges()]).toEqual([409, [], []]);
  expect((await owner.ask("GET", agent)).body.files).toEqual({ a: "a" });
});

test.each([
  ["before", true],
  ["after", false],
])(
  "a file for an instance that is deleted meanwhile is refused, its folder gone %s it is written: 404, and no folder comes back",
  async (_, isGone) => {
    const agent = await create({ a: "a" });
    const { open } = fs.promises;
    let isDeleted = false;
    const spy = spyOn(fs.promises, "open").mockImplementation(async (...args) => {
      if (!isDeleted) {
        isDeleted = true;
        expect((await owner.ask("DELETE", `/v1/instances/${instanceId}`)).status).toBe(200);
        if (isGone) fs.rmSync(instanceFolder(), { recursive: true, force: true });
      }
      return open(...args);
    });
    try {
      expect((await owner.ask("PUT", `${agent}/files/b`, "b")).status).toBe(404);
    } finally {
      spy.mockRestore();
    }
    await server.app.settled();
    expect([isDeleted, fs.existsSync(instanceFolder()), notedChanges()]).toEqual([true, false, []]);
  },
);

test("a list shows an operator's changes while a change waits for the disk, and no deletions that did not happen", async () => {
  const agent = await create({ a: "a" });
  const { rm } = fs.promises;
  const seen: unknown[] = [];
  let isSeen = false;
  // After the commit, with the files in place, and before its row is removed.
  const spy = spyOn(fs.promises, "rm").mockImplementation(async (path, options) => {
    if (!isSeen && String(path).includes(instanceId)) {
      isSeen = true;
      fs.writeFileSync(join(instanceFolder(), "agents/ada/by-hand"), "x");
      seen.push(Object.keys((await owner.ask("GET", agent)).body.files));
    }
    return rm(path, options);
  });
  try {
    expect((await owner.ask("PUT", `${agent}/files/b`, "b")).status).toBe(201);
  } finally {
    spy.mockRestore();
  }
  expect(seen).toEqual([["a", "b", "by-hand"]]);
});

/** Turns with their own folders; those of the account "many" wait until they are released. */
function heldTurns() {
  const { store } = server.foundation;
  const log = pino({ level: "silent" });
  const folderOf = (id: string) => join(server.dataDir, "turns", id);
  const changing = createWorkspaceChanges({ store, log, removals: { add() {} }, folderOf });
  const begun: string[] = [];
  const hold = Promise.withResolvers<void>();
  const turnOf = (accountId: string, bytes = 0) =>
    changing.inTurn({ accountId, instanceId }, bytes, async () => {
      begun.push(accountId);
      if (accountId === "many") await hold.promise;
    });
  return { begun, turnOf, letGo: hold.resolve, stop: changing.stop };
}
const codeOf = (work: () => unknown) => {
  try {
    work();
    return "taken";
  } catch (error) {
    return error instanceof AppError ? error.code : error;
  }
};

test("a stop lets the change in progress end, and refuses those that wait: it takes no longer for many", async () => {
  const { begun, turnOf, letGo, stop } = heldTurns();
  const first = turnOf("many");
  while (begun.length === 0) await turnOf("few");
  const waiting = Array.from({ length: 200 }, () => turnOf("many"));
  const stopped = stop();
  letGo();
  await first;
  const ends = await Promise.allSettled(waiting);
  expect(ends.map((end) => end.status === "rejected" && (end.reason as AppError).status)).toEqual(ends.map(() => 503));
  await stopped;
  expect(begun.filter((account) => account === "many")).toHaveLength(1);
});

test("an account with many waiting changes delays nobody else's, and its number is limited: 429", async () => {
  const { begun, turnOf, letGo } = heldTurns();
  const many = Array.from({ length: 257 }, () => turnOf("many"));
  expect(codeOf(() => turnOf("many"))).toBe("rate_limited");
  await turnOf("few");
  // One of the many has its turn now or soon: which of the two starts first depends on the disk.
  expect(begun.filter((account) => account === "few")).toHaveLength(1);
  expect(begun.filter((account) => account === "many").length).toBeLessThanOrEqual(1);
  letGo();
  await Promise.all(many);
  expect(begun).toHaveLength(258);
});

test("contents that wait for the disk are bounded, and no account takes all the room", async () => {
  const { turnOf, letGo } = heldTurns();
  const MIB = 1024 * 1024;
  const many = Array.from({ length: 48 }, () => turnOf("many", MIB));
  expect(codeOf(() => turnOf("many", MIB))).toBe("rate_limited");
  await turnOf("few", MIB);
  letGo();
  await Promise.all(many);
  await turnOf("many", 40 * MIB);
});
