import { afterAll, expect, test } from "bun:test";
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { newId } from "../../src/lib/id.ts";
import { conversationQueries } from "../../src/messages/conversation-queries.ts";
import { messageQueries } from "../../src/messages/queries.ts";
import { createTransfer } from "../../src/messages/transfer.ts";
import { startTestServer } from "../support/test-server.ts";
import { bundleOf, filesIn, manifest } from "./archives.ts";
import { newWorld } from "./world.ts";

// Nothing is asked of the model.
const server = await startTestServer({ ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: "http://127.0.0.1:9/v1" });
afterAll(() => server.stop());

const SECRET = "hunter2-Zürich=très+secret";

test("no value of a secret is in a bundle, in whatever form it stands in a file, a skill or a message", async () => {
  const world = await newWorld(server);
  const { person, instance } = world;
  await person.ask("POST", `${instance}/secrets`, { key: "DOOR", value: SECRET });
  const base64 = Buffer.from(`user:${SECRET}`).toString("base64");
  const forms = [
    SECRET,
    base64,
    Buffer.from(SECRET).toString("hex"),
    encodeURIComponent(SECRET),
    JSON.stringify(SECRET),
  ];
  const { path, slug } = await world.create({
    name: "Careless",
    files: { "TOOLS.md": `The door: ${forms.join(" or ")}.`, "tool-output/a.txt": `{"auth":"${base64}"}` },
  });
  const folder = join(server.dataDir, "instances", world.instanceId, "agents", slug);
  writeFileSync(join(folder, "photo.bin"), Buffer.concat([Buffer.from([0xff, 0xfe, 0]), Buffer.from(SECRET)]));
  await person.ask("POST", `${instance}/skills`, {
    files: { "SKILL.md": `---\nname: door\ndescription: Opens.\n---\nUse ${SECRET}.\n` },
  });
  const message = `It is ${SECRET}, or ${base64}.`;
  await person.ask("POST", `${path}/messages`, { message }, { Prefer: "respond-async" });

  const bundle = await world.export(path, "?history=true");
  const archive = gunzipSync(bundle);
  for (const form of forms) expect([form, archive.includes(form)]).toEqual([form, false]);
  const files = await filesIn(bundle);
  expect(files.get("workspace/TOOLS.md")?.toString()).toBe(
    `The door: [secret DOOR] or ${base64.slice(0, 7)}${files.get("workspace/TOOLS.md")?.toString().split(base64.slice(0, 7))[1]}`,
  );
  for (const name of [
    "workspace/tool-output/a.txt",
    "workspace/photo.bin",
    "skills/door/SKILL.md",
    "history/0001.jsonl",
  ]) {
    expect([name, files.get(name)?.toString("latin1").includes("[secret DOOR]")]).toEqual([name, true]);
  }
  expect(files.get("workspace/photo.bin")?.subarray(0, 3)).toEqual(Buffer.from([0xff, 0xfe, 0]));
});

test("no value of a secret is in a name: of the agent, a conversation, a sender, a file, a skill's file, or what is left out", async () => {
  const [world, other] = [await newWorld(server), await newWorld(server)];
  const { person, instance } = world;
  const value = "sk-supersecret-abc123XYZ";
  await person.ask("POST", `${instance}/secrets`, { key: "TOKEN", value });
  const files = {
    [`notes/${value}.md`]: "by its value",
    [`${value}/x ${value}.md`]: "twice",
    "notes/plain.md": "plain",
    // Two that would have one name, which differs in its case, and one that would be in a file.
    [`a/${value}`]: "first",
    "a/SECRET token": "second",
    "secret TOKEN 2": "a file",
    [`${value} 2/x.md`]: "in it",
  };
  const { path, slug, agentId } = await world.create({ name: `Key ${value}`, useDefaults: false, files });
  await person.ask("PATCH", path, { displayName: `Key ${value} ${"x".repeat(70)}` });
  const { conversationId } = (await person.ask("POST", `${path}/conversations`, { title: `try ${value}` })).body;
  const { store } = server.foundation;
  const message = `INSERT INTO messages (message_id, agent_id, conversation_id, run_id, role, text, sender_type, sender_id,
    sender_name, created_at) VALUES (?1, ?2, ?3, 'run', 'agent', 'hello', 'agent', ?2, ?4, 1)`;
  store.transaction(() => store.sqlite.run(message, [newId("msg"), agentId, conversationId, `Key ${value}`]));
  await person.ask("POST", `${instance}/skills`, {
    files: { "SKILL.md": "---\nname: door\ndescription: Opens.\n---\n", [`references/${value}.md`]: "x" },
  });
  const folder = join(server.dataDir, "instances", world.instanceId, "agents", slug);
  writeFileSync(join(folder, `é ${value}`), "");
  // A cut must not leave the beginning of one.
  writeFileSync(join(folder, `é${"x".repeat(225)}${value}`), "");

  const bundle = await world.export(path, "?history=true");
  expect(gunzipSync(bundle).includes("supersecret-abc123XYZ")).toBe(false);
  const packed = await filesIn(bundle);
  const described = JSON.parse(packed.get("manifest.json")?.toString() ?? "");
  expect(described.agent).toMatchObject({ name: "Key [secret TOKEN]" });
  expect(described.agent.displayName).toStartWith("Key [secret TOKEN] xxx");
  expect(described.leftOut.toSorted()).toEqual([
    "skills/door/references/[secret TOKEN].md",
    "workspace/[secret TOKEN] 2/x.md",
    "workspace/a/[secret TOKEN]",
    "workspace/é [secret TOKEN]",
    `workspace/é${"x".repeat(225)}[secret TOKEN]`,
  ]);
  expect(packed.get("workspace/secret TOKEN/x secret TOKEN.md")?.toString()).toBe("twice");

  const { status, body } = await other.import(bundle);
  expect([status, body.name]).toEqual([201, "Key [secret TOKEN]"]);
  const copy = `${other.instance}/agents/${body.agentId}`;
  expect((await other.person.ask("GET", `${copy}/files/notes/secret TOKEN.md`)).body).toBe("by its value");
  const conversations = (await other.person.ask("GET", `${copy}/conversations`)).body.data;
  expect(conversations.map(({ title }: { title: string }) => title)).toContain("try [secret TOKEN]");
});

test("a file that may be a stranger's is still one under the name that it gets in a bundle, and a slug is left out", async () => {
  const world = await newWorld(server);
  const agent = { name: "abcdefgh", slug: "abcdefgh" };
  const given = bundleOf(manifest({ agent, tainted: ["abcdefgh.md"] }), ["workspace/abcdefgh.md", "x"]);
  const { agentId } = (await world.import(given)).body;
  await world.person.ask("POST", `${world.instance}/secrets`, { key: "TOKEN", value: "abcdefgh" });
  const packed = await filesIn(await world.export(`${world.instance}/agents/${agentId}`));
  const { agent: said, tainted } = JSON.parse(packed.get("manifest.json")?.toString() ?? "");
  expect([said.name, said.slug, tainted]).toEqual(["[secret TOKEN]", null, ["secret TOKEN.md"]]);
});

test("a bundle can be imported, whatever the values of secrets are: they stand for nothing but what was written", async () => {
  const [world, other] = [await newWorld(server), await newWorld(server)];
  const { person, instance } = world;
  const values = { DEBUG: "true", TTL: "3600", TZ: "Europe/Berlin", PASSWORD: "admin" };
  for (const [key, value] of Object.entries(values)) await person.ask("POST", `${instance}/secrets`, { key, value });
  const files = { "large.md": "admin ".repeat(40_000), "small.md": "It is admin." };
  const { path } = await world.create({ name: "Careless", useDefaults: false, files });
  await person.ask("POST", `${path}/schedules`, {
    ...{ name: "true", message: `${"admin ".repeat(5_000)}is it true?`, everySeconds: 3_600 },
    ...{ timeZone: "Europe/Berlin", announce: true },
  });
  const { status, body } = await other.import(await world.export(path));
  expect([status, body.review?.leftOut]).toEqual([201, ["workspace/large.md"]]);
  const copy = `${other.instance}/agents/${body.agentId}`;
  expect((await other.person.ask("GET", `${copy}/files/small.md`)).body).toBe("It is [secret PASSWORD].");
  const [schedule] = (await other.person.ask("GET", `${copy}/schedules`)).body.data;
  expect(schedule).toMatchObject({ name: "[secret DEBUG]", everySeconds: 3_600, announce: true });
  expect(schedule.message.length).toBe(32_000);
});

test("another instance's skills, rules and agents are not in a bundle", async () => {
  const [own, other] = [await newWorld(server), await newWorld(server)];
  await other.person.ask("POST", `${other.instance}/skills`, { name: "calculator" });
  await other.create({ name: "Neighbour", files: { "private.md": "private" } });
  await own.create({ name: "Sister", files: { "sister.md": "hers" } });
  const { path } = await own.create({ name: "Ada", useDefaults: false, files: { "own.md": "own" } });
  expect([...(await filesIn(await own.export(path))).keys()]).toEqual(["manifest.json", "workspace/own.md"]);
});

test("a HEAD says what a GET would give, and packs nothing", async () => {
  const world = await newWorld(server);
  const { path } = await world.create({ name: "Ada" });
  const headers = { Authorization: `Bearer ${world.person.token}` };
  const heads = Array.from({ length: 8 }, () => fetch(`${server.url}${path}/bundle`, { method: "HEAD", headers }));
  for (const head of await Promise.all(heads)) {
    expect([head.status, head.headers.get("content-disposition")]).toEqual([200, 'attachment; filename="ada.tar.gz"']);
  }
});

test("a history that is cleared or deleted while it is read is found to be no longer whole", async () => {
  const world = await newWorld(server);
  const { path, agentId } = await world.create({ name: "Ada" });
  const { store } = server.foundation;
  const [queries, rows] = [messageQueries(store.db), conversationQueries(store.db)];
  const transfer = createTransfer({ queries, rows, quotas: { requireHistoryRoom() {} } });
  const { conversationId } = (await world.person.ask("POST", `${path}/conversations`, { title: "Plans" })).body;
  store.transaction(() => addMessages(agentId, 1, "hello"));
  const before = transfer.begin({ agentId });
  expect(before.conversations.map(({ title }) => title)).toEqual([null, "Plans"]);
  expect(transfer.isWhole(before)).toBe(true);
  // What is said meanwhile is not of that moment.
  store.transaction(() => addMessages(agentId, 1, "later"));
  const [first] = before.conversations;
  expect(first && transfer.page(before, first, 0).rows.map(({ text }) => text)).toEqual(["hello"]);
  await world.person.ask("DELETE", `${path}/messages`);
  // Also once nothing is left of what was cleared.
  await server.app.settled();
  expect(transfer.isWhole(before)).toBe(false);
  const after = transfer.begin({ agentId });
  await world.person.ask("DELETE", `${path}/conversations/${conversationId}`);
  expect(transfer.isWhole(after)).toBe(false);
});

test("a history that no import would take is not exported, and the agent without it is", async () => {
  const world = await newWorld(server);
  const { path, agentId } = await world.create({ name: "Ada" });
  server.foundation.store.transaction(() => addMessages(agentId, 65, "x".repeat(1024 * 1024)));
  const { status, body } = await world.person.ask("GET", `${path}/bundle?history=true`);
  expect([status, body.error.code]).toEqual([409, "conflict"]);
  expect(body.error.message).toContain("export the agent without it");
  expect((await filesIn(await world.export(path))).has("manifest.json")).toBe(true);
});

/** Adds messages of a person to the default conversation. */
function addMessages(agentId: string, count: number, text: string): void {
  const insert = server.foundation.store.sqlite.query(
    `INSERT INTO messages (message_id, agent_id, conversation_id, run_id, role, text, sender_type, sender_id,
       sender_name, created_at) VALUES (?1, ?2, ?3, 'run', 'user', ?4, 'human', 'a', 'A', 1)`,
  );
  for (let at = 0; at < count; at++) insert.run(newId("msg"), agentId, agentId.replace("agt_", "conv_"), text);
}

test("of an account, two bundles are downloaded at once; one that is left takes no place", async () => {
  const world = await newWorld(server);
  const { path, slug } = await world.create({ name: "Ada" });
  const noise = crypto.getRandomValues(new Uint8Array(64 * 1024));
  const folder = join(server.dataDir, "instances", world.instanceId, "agents", slug);
  // More than the buffers of a connection hold.
  for (let file = 0; file < 400; file++)
    writeFileSync(
      join(folder, `${file}.bin`),
      noise.map((byte) => byte ^ file),
    );
  const left = await Promise.all([beginDownload(path, world.person.token), beginDownload(path, world.person.token)]);
  const third = await world.person.ask("GET", `${path}/bundle`);
  expect([third.status, third.body.error.code, third.headers.get("retry-after")]).toEqual([429, "rate_limited", "5"]);
  for (const connection of left) connection.destroy();
  let status = 429;
  while (status === 429) {
    const answer = await world.person.fetch("GET", `${path}/bundle`);
    status = answer.status;
    await answer.arrayBuffer();
  }
  expect(status).toBe(200);
  expect(readdirSync(join(server.dataDir, "bundles"))).toEqual([]);
});

/** A client that reads the head of its answer, and nothing more. */
async function beginDownload(path: string, token: string): Promise<Socket> {
  const { hostname, port, host } = new URL(server.url);
  const connection = connect(Number(port), hostname);
  connection.write(`GET ${path}/bundle HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n\r\n`);
  const head = await new Promise<string>((resolve) => {
    connection.once("data", (bytes) => {
      connection.pause();
      resolve(String(bytes));
    });
  });
  expect(head).toStartWith("HTTP/1.1 200");
  return connection;
}

test("what an operator has put into a workspace, and no bundle can hold, is listed as left out", async () => {
  const world = await newWorld(server);
  const { path, slug } = await world.create({ name: "Ada", useDefaults: false, files: { "own.md": "own" } });
  const folder = join(server.dataDir, "instances", world.instanceId, "agents", slug);
  const deep = "a/b/c/d/e/f/g/h/i.md";
  for (const name of ["Übersicht.md", ".git/config", "large.bin", "notes/plain.md", "notes/画.md", deep]) {
    mkdirSync(join(folder, name, ".."), { recursive: true });
    writeFileSync(join(folder, name), name === "large.bin" ? new Uint8Array(256 * 1024 + 1) : name);
  }
  symlinkSync("/etc/hostname", join(folder, "link.md"));
  const files = await filesIn(await world.export(path));
  expect([...files.keys()]).toEqual(["manifest.json", "workspace/notes/plain.md", "workspace/own.md"]);
  const { leftOut } = JSON.parse(files.get("manifest.json")?.toString() ?? "");
  expect(leftOut.toSorted()).toEqual(
    [".git", "a/b/c/d/e/f/g/h", "large.bin", "link.md", "notes/画.md", "Übersicht.md"].map(
      (name) => `workspace/${name}`,
    ),
  );
});

test("of a workspace with thousands of such files, a hundred lines say so", async () => {
  const world = await newWorld(server);
  const { path, slug } = await world.create({ name: "Ada", useDefaults: false, files: { "own.md": "own" } });
  const folder = join(server.dataDir, "instances", world.instanceId, "agents", slug);
  for (let at = 0; at < 2_000; at++) writeFileSync(join(folder, `é${at}`), "");
  const files = await filesIn(await world.export(path));
  const { leftOut } = JSON.parse(files.get("manifest.json")?.toString() ?? "");
  expect([leftOut.length, leftOut.at(-1)]).toEqual([100, "and 1901 more"]);
});
