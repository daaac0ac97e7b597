import { afterAll, expect, spyOn, test } from "bun:test";
import fs, { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startMockModelServer } from "../support/mock-model-server.ts";
import { type Person, startTestServer } from "../support/test-server.ts";
import { bundleOf, filesIn, manifest } from "./archives.ts";
import { newWorld } from "./world.ts";

const mock = startMockModelServer({ record: false });
const model = { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url };
const here = await startTestServer(model);
const there = await startTestServer(model);
afterAll(() => Promise.all([here.stop(), there.stop(), mock.stop()]));

const partOf = (files: Map<string, Buffer>, part: string) =>
  Object.fromEntries(
    [...files].filter(([name]) => name.startsWith(part)).map(([name, bytes]) => [name, bytes.toString("hex")]),
  );

test("an agent that was exported and imported elsewhere has the same workspace, byte for byte", async () => {
  const a = await newWorld(here);
  const { slug, path } = await a.create({
    name: "Ἀριστοτέλης 亚里士多德",
    displayName: "أرسطو 🦉",
    files: { "SOUL.md": "\uFEFFYou are कवि.\r\n\u0000", "notes/a b/c.md": "" },
  });
  const folder = join(here.dataDir, "instances", a.instanceId, "agents", slug);
  const binary = Uint8Array.from({ length: 100_000 }, (_, at) => (at * 7919) & 0xff);
  const long = `${"d".repeat(100)}/${"e".repeat(100)}/${"f".repeat(100)}`;
  mkdirSync(join(folder, long), { recursive: true });
  writeFileSync(join(folder, "photo.bin"), binary);
  writeFileSync(join(folder, long, "deep.txt"), "deep");
  writeFileSync(join(folder, "large.bin"), new Uint8Array(256 * 1024).fill(0xff));

  const bundle = await a.export(path);
  const b = await newWorld(there);
  const answer = await b.import(bundle);
  expect(answer).toMatchObject({
    status: 201,
    body: { name: "Ἀριστοτέλης 亚里士多德", displayName: "أرسطو 🦉", slug, review: { leftOut: [], skills: [] } },
  });
  const again = await b.export(`${b.instance}/agents/${answer.body.agentId}`);

  const [before, after] = [await filesIn(bundle), await filesIn(again)];
  expect(partOf(before, "workspace/")).toEqual(partOf(after, "workspace/"));
  expect(after.get("workspace/photo.bin")).toEqual(Buffer.from(binary));
  expect(after.get(`workspace/${long}/deep.txt`)?.toString()).toBe("deep");
  const record = (await b.person.ask("GET", `${b.instance}/agents/${answer.body.agentId}`)).body;
  expect(record.files["SOUL.md"]).toBe("\uFEFFYou are कवि.\r\n\u0000");
  expect(answer.body.imported).toMatchObject({ files: before.size - 1, messages: 0 });
});

test("its list of models and their limits come along, without the models that the other host does not have", async () => {
  const list = ["openai:mock", "openai:first", "openai:second", "openai:third"];
  const limits = { tokensPerDay: 5, tokensPerMonth: null, costPerDay: "0.000001", costPerMonth: "999.500000" };
  const whole = await startTestServer({ ...model, ROOST_MODELS: "first,second,third" });
  const part = await startTestServer({ ...model, ROOST_MODELS: "second" });
  const a = await newWorld(whole);
  const { path } = await a.create({ name: "Ada", model: list });
  expect((await a.person.ask("PATCH", path, { modelLimits: limits })).status).toBe(200);
  const bundle = await a.export(path);
  const { agent } = JSON.parse((await filesIn(bundle)).get("manifest.json")?.toString() ?? "");
  expect(agent).toMatchObject({ model: list[0], fallbackModels: list.slice(1) });
  const same = (await (await newWorld(whole)).import(bundle)).body;
  expect([same.model, same.modelLimits, same.review.model]).toEqual([list, limits, null]);
  const other = (await (await newWorld(part)).import(bundle)).body;
  expect([other.model, other.modelLimits, other.review.model]).toEqual([[list[0], list[2]], limits, list[1]]);
  await Promise.all([whole.stop(), part.stop()]);
});

test("schedules come along switched off, and are listed for review", async () => {
  const a = await newWorld(here);
  const { path } = await a.create({ name: "Ada" });
  const settings = {
    name: "Morning",
    message: "Suggest a poem.",
    cron: "0 8 * * 1-5",
    timeZone: "Europe/Berlin",
    missed: "skip",
    activeHours: { from: "06:00", to: "22:00" },
    announce: false,
  };
  expect((await a.person.ask("POST", `${path}/schedules`, settings)).status).toBe(201);
  const bundle = await a.export(path);
  const b = await newWorld(there);
  const { status, body } = await b.import(bundle);
  const { name, cron, timeZone } = settings;
  expect([status, body.review.schedules]).toEqual([201, [{ name, cron, everySeconds: null, timeZone }]]);
  const agent = `${b.instance}/agents/${body.agentId}`;
  const { data } = (await b.person.ask("GET", `${agent}/schedules`)).body;
  expect(data).toMatchObject([{ ...settings, enabled: false, nextAt: null }]);
  const again = await b.export(agent);
  expect(partOf(await filesIn(again), "schedules/")).toEqual(partOf(await filesIn(bundle), "schedules/"));
});

test("a bundle is a gzipped tar archive that any tar opens", async () => {
  const a = await newWorld(here);
  const { path } = await a.create({ name: "Ada" });
  const bundle = await a.export(path);
  const folder = mkdtempSync(join(tmpdir(), "roost-bundle-"));
  const tar = Bun.spawn(["tar", "-xz", "-C", folder], { stdin: bundle, stderr: "pipe" });
  expect([await tar.exited, await new Response(tar.stderr).text()]).toEqual([0, ""]);
  expect(readdirSync(folder).sort()).toEqual(["manifest.json", "workspace"]);
  const packed = Bun.spawn(["tar", "-cz", "-C", folder, "manifest.json", "workspace"]);
  const repacked = new Uint8Array(await new Response(packed.stdout).arrayBuffer());
  expect((await a.import(repacked, "?name=Ada%202")).status).toBe(201);
  rmSync(folder, { recursive: true });
});

test("a history arrives as the same messages, of runs that are nowhere", async () => {
  const a = await newWorld(here);
  const { path: agent } = await a.create({ name: "Ada" });
  const { conversationId } = (await a.person.ask("POST", `${agent}/conversations`, { title: "Travel 旅行" })).body;
  for (const body of [{ message: "Hello" }, { message: "Where to?", conversationId }, { message: "And then?" }]) {
    expect((await a.person.ask("POST", `${agent}/messages`, body)).status).toBe(200);
  }
  const bundle = await a.export(agent, "?history=true");
  const b = await newWorld(there);
  const answer = await b.import(bundle);
  expect(answer.body.imported).toMatchObject({ conversations: 2, messages: 6 });
  const copy = `${b.instance}/agents/${answer.body.agentId}`;

  type Row = {
    message: string;
    role: string;
    sender: { name: string };
    createdAt: string;
    messageId: string;
    inReplyTo: string;
    runId: string;
  };
  const historyOf = async (person: Person, path: string, query: string) => {
    const rows: Row[] = (await person.ask("GET", `${path}/messages${query}`)).body.data;
    return rows.map((row) => ({
      message: row.message,
      role: row.role,
      sender: row.sender.name,
      createdAt: row.createdAt,
      answers: rows.findIndex(({ messageId }) => messageId === row.inReplyTo),
    }));
  };
  expect(await historyOf(b.person, copy, "")).toEqual(await historyOf(a.person, agent, ""));
  const { data } = (await b.person.ask("GET", `${copy}/conversations`)).body;
  const travel = data.find(({ title }: { title: string | null }) => title === "Travel 旅行");
  expect(await historyOf(b.person, copy, `?conversationId=${travel.conversationId}`)).toEqual(
    await historyOf(a.person, agent, `?conversationId=${conversationId}`),
  );
  const [first] = (await b.person.ask("GET", `${copy}/messages`)).body.data;
  expect((await b.person.ask("GET", `${copy}/runs/${first.runId}`)).status).toBe(404);
  expect((await b.person.ask("GET", `${copy}/runs`)).body.data).toEqual([]);
  // It goes on where it was.
  expect((await b.person.ask("POST", `${copy}/messages`, { message: "Still there?" })).status).toBe(200);
  const again = await filesIn(await b.export(copy, "?history=true"));
  expect(again.get("history/0001.jsonl")?.toString().split("\n").length).toBe(8);
});

test("without being asked, no history is in a bundle", async () => {
  const a = await newWorld(here);
  const { path } = await a.create({ name: "Ada" });
  await a.person.ask("POST", `${path}/messages`, { message: "Hello" });
  const files = await filesIn(await a.export(path));
  expect([...files.keys()].filter((name) => name.startsWith("history/"))).toEqual([]);
});

test("a slug in use is refused, and another name gives another slug", async () => {
  const world = await newWorld(here);
  const bundle = bundleOf(manifest());
  expect((await world.import(bundle)).body.slug).toBe("ada");
  const taken = await world.import(bundle);
  expect([taken.status, taken.body.error.code]).toEqual([409, "conflict"]);
  expect(taken.body.error.message).toContain('an agent "ada" already');
  const named = await world.import(bundle, "?name=Grace%20H");
  expect(named.body).toMatchObject({ name: "Grace H", displayName: "Grace H", slug: "grace-h" });
});

test("an import with the same Idempotency-Key makes one agent", async () => {
  const { person, instance } = await newWorld(here);
  const bundle = bundleOf(manifest(), ["workspace/SOUL.md", "I am."]);
  const once = () => person.ask("POST", `${instance}/import`, bundle, { "Idempotency-Key": "one" });
  const [first, second] = [await once(), await once()];
  expect([first.status, second.status, second.headers.get("idempotent-replayed")]).toEqual([201, 201, "true"]);
  expect(second.body).toEqual(first.body);
  expect((await person.ask("GET", `${instance}/agents`)).body.data.length).toBe(1);
});

test("a heartbeat comes along switched off, and its agent's word switches it on", async () => {
  const a = await newWorld(here);
  const heartbeat = { everySeconds: 1800, timeZone: "Europe/Berlin", activeHours: { from: "08:00", to: "20:00" } };
  const { path } = await a.create({ name: "Ada", heartbeat });
  const b = await newWorld(there);
  const { status, body } = await b.import(await a.export(path));
  expect([status, body.heartbeat, body.review.heartbeat, body.review.schedules]).toEqual([
    201,
    heartbeat,
    heartbeat,
    [],
  ]);
  const agent = `${b.instance}/agents/${body.agentId}`;
  const listed = async () => (await b.person.ask("GET", `${agent}/schedules`)).body.data;
  expect(await listed()).toMatchObject([{ kind: "heartbeat", everySeconds: 1800, enabled: false, nextAt: null }]);
  await b.person.ask("PATCH", agent, { heartbeat });
  expect(await listed()).toMatchObject([{ enabled: true, nextAt: expect.any(String) }]);
});

test("conversations in which it worked for another agent come along as such, and what was asked there counts as a stranger's", async () => {
  const a = await newWorld(here);
  const [ada, bob] = [await a.create({ name: "Ada" }), await a.create({ name: "Bob" })];
  mock.script(
    { kind: "tools", calls: [{ name: "message_agent", arguments: { agent: "Bob", message: "Which day?" } }] },
    { kind: "text", tokens: ["Friday."] },
    { kind: "text", tokens: ["On Friday."] },
  );
  await a.person.ask("POST", `${ada.path}/messages`, { message: "Plan it" });
  const b = await newWorld(there);
  const { body } = await b.import(await a.export(bob.path, "?history=true"));
  const path = `${b.instance}/agents/${body.agentId}`;
  const [conversation, ...more] = (await b.person.ask("GET", `${path}/conversations?origin=agent`)).body.data;
  expect([conversation.title, conversation.origin, more]).toEqual(["Asked by Ada", { type: "agent", id: null }, []]);
  const { conversationId } = conversation;
  const messages = (await b.person.ask("GET", `${path}/messages?conversationId=${conversationId}`)).body.data;
  expect(messages.map(({ message, origin }: { message: string; origin: unknown }) => [message, origin])).toEqual([
    ["Which day?", { type: "agent", id: null }],
    ["Friday.", null],
  ]);
  const tainted = "SELECT tainted FROM messages WHERE conversation_id = ? AND role = 'user'";
  expect(there.foundation.store.sqlite.query(tainted).all(conversationId)).toEqual([{ tainted: 1 }]);
});

test("an agent that has arrived stays, also where the disk fails just behind its commit", async () => {
  const world = await newWorld(there);
  const { open } = fs.promises;
  const spy = spyOn(fs.promises, "open").mockImplementation(async (...args) => {
    if (String(args[0]).endsWith(`${world.instanceId}/agents`)) throw new Error("the disk is gone");
    return await open(...args);
  });
  const bundle = bundleOf(manifest({ agent: { name: "Ada", slug: "ada" } }), ["workspace/a.md", "a"]);
  try {
    expect((await world.import(bundle)).status).toBe(500);
  } finally {
    spy.mockRestore();
  }
  await there.app.settled();
  const { data } = (await world.person.ask("GET", `${world.instance}/agents`)).body;
  expect(data.map(({ slug, files }: { slug: string; files: string[] }) => [slug, files])).toEqual([["ada", ["a.md"]]]);
});

test("names and titles of as many characters as they may have come back, also where each is two units of UTF-16", async () => {
  const owls = (count: number) => "🦉".repeat(count);
  const a = await newWorld(here);
  const { path } = await a.create({ name: owls(100), slug: "owls" });
  const { conversationId } = (await a.person.ask("POST", `${path}/conversations`, { title: owls(200) })).body;
  const sender = { type: owls(200), id: owls(200), name: owls(200) };
  await a.person.ask("POST", `${path}/messages`, { message: "Hello", conversationId, sender });

  const b = await newWorld(there);
  const { status, body } = await b.import(await a.export(path, "?history=true"));
  expect([status, body.name]).toEqual([201, owls(100)]);
  const arrived = `${b.instance}/agents/${body.agentId}`;
  const { data } = (await b.person.ask("GET", `${arrived}/conversations`)).body;
  const conversation = data.find(({ isDefault }: { isDefault: boolean }) => !isDefault);
  expect(conversation.title).toBe(owls(200));
  const messages = `${arrived}/messages?conversationId=${conversation.conversationId}`;
  expect((await b.person.ask("GET", messages)).body.data[0].sender).toEqual(sender);
});
