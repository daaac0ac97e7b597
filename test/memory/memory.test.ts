import { afterAll, beforeAll, expect, test } from "bun:test";
import { dayOf } from "../../src/lib/calendar.ts";
import { type Asking, startAsking, strangersTool } from "../approvals/asking.ts";
import { clockFromNoon } from "../lib/hand-clock.ts";

const clock = clockFromNoon();

let it: Asking;
let path: string;
beforeAll(async () => {
  const moreTools = [strangersTool("The stranger's parrot is called Rasputin.")];
  it = await startAsking(undefined, { moreTools, clock });
  path = `/v1/instances/${it.instance}/agents/${it.agent}`;
});
afterAll(() => it.stop());

interface Item {
  source: string;
  file: string | null;
  text: string;
  origin: string;
  runId: string | null;
  conversationId: string | null;
  messageId: string | null;
  fromLine: number | null;
  score: number;
}

/** The first search begins what it does not wait for for long: the indexing of what was written. */
async function search(query: string, limit = 10): Promise<Item[]> {
  return (await answerTo(query, limit)).items;
}
async function answerTo(query: string, limit = 10): Promise<{ items: Item[]; degraded: string | null }> {
  const ask = () => it.person.ask("GET", `${path}/memory?query=${encodeURIComponent(query)}&limit=${limit}`);
  await ask();
  await it.server.app.settled();
  const { status, body } = await ask();
  expect(status).toBe(200);
  return body;
}
const texts = async (query: string) => (await search(query)).map(({ text }) => text);
/** Asks until all texts have their vectors, which are computed in the background. */
async function vectors(): Promise<void> {
  while ((await it.person.ask("GET", `${path}/memory?query=anything`)).body.degraded !== null);
}
const write = (name: string, text: string) => it.person.ask("PUT", `${path}/files/${name}`, text);
const read = async (name: string) => (await it.person.ask("GET", `${path}/files/${name}`)).body as string;
const day = () => dayOf(clock.now());

async function say(message: string, ...calls: [name: string, input: object][]): Promise<string> {
  if (calls.length > 0) it.calls(message, ...calls);
  const runId = await it.queue(message);
  await it.until("run.completed", runId);
  return runId;
}

test("a person's file is found as the owner's, with its lines, and no longer once it is changed or deleted", async () => {
  await write("garden.md", "# Garden\n\nThe pump is behind the shed.\n");
  expect((await search("pump shed"))[0]).toMatchObject({
    source: "file",
    file: "garden.md",
    origin: "owner",
    fromLine: 1,
    toLine: 3,
    runId: null,
  });
  await write("garden.md", "The rake is behind the shed.\n");
  expect(await texts("rake")).toEqual(["The rake is behind the shed."]);
  await it.person.ask("DELETE", `${path}/files/garden.md`);
  expect(await texts("rake shed")).toEqual([]);
});

test("what was said is found: the person's words as the owner's, the answers as the agent's", async () => {
  const message = "My sister Ottilie moved to Trondheim.";
  it.when(message, { kind: "text", tokens: ["Noted, Trondheim", " is a fine town."] });
  const runId = await say(message);
  const found = await search("Ottilie Trondheim");
  expect(found.find(({ origin }) => origin === "owner")).toMatchObject({
    source: "conversation",
    text: message,
    runId,
  });
  expect(found.find(({ origin }) => origin === "agent")).toMatchObject({
    source: "conversation",
    text: "Noted, Trondheim is a fine town.",
    messageId: expect.stringMatching(/^msg_/),
  });
});

test("a note is a line in the day's file, and is found with its run; the text says nothing of its origin", async () => {
  const runId = await say("Note where the spare key is.", ["remember", { text: "The spare key is\nunder the fern." }]);
  expect(await read(`memory/${day()}.md`)).toBe(`# ${day()}\n\n- The spare key is under the fern.\n`);
  expect((await search("spare key fern")).find(({ file }) => file !== null)).toMatchObject({
    file: `memory/${day()}.md`,
    text: "- The spare key is under the fern.",
    origin: "agent",
    runId,
    fromLine: 3,
  });
});

test("words of two characters are found in Chinese and Japanese", async () => {
  await write("people.md", "王芳喜欢在周末去爬山。\n\n田中さんの誕生日は九月三日です。\n");
  expect(await texts("爬山")).toContain("王芳喜欢在周末去爬山。\n\n田中さんの誕生日は九月三日です。");
  expect((await texts("誕生")).length).toBeGreaterThan(0);
  expect((await texts("王芳")).length).toBeGreaterThan(0);
});

test("a text without a word of the query is found by what it means", async () => {
  await write("health.md", "Peanuts make Tobias ill.\n");
  await vectors();
  // If the query's vector takes more than a second, it is looked for by its words alone.
  const found = async (): Promise<string[]> => {
    const { degraded, items } = await answerTo("food allergy");
    return degraded === null ? items.map(({ text }) => text) : found();
  };
  expect(await found()).toContain("Peanuts make Tobias ill.");
});

test("a blank query is refused, and so is a limit of more than 50", async () => {
  for (const query of ["query=%20", "", "query=a&limit=51", "query=a&limit=0"]) {
    expect((await it.person.ask("GET", `${path}/memory?${query}`)).status).toBe(400);
  }
});

test("what a run noted after it had read a stranger's words is untrusted, also after a person has changed the file", async () => {
  await say(
    "Look it up and note it.",
    ["fetch", { key: "a" }],
    ["remember", { text: "The parrot Rasputin likes figs." }],
  );
  const origin = async () => (await search("parrot figs")).find(({ file }) => file !== null)?.origin;
  expect(await origin()).toBe("untrusted");
  const file = `memory/${day()}.md`;
  await write(file, `${await read(file)}- The owner's own line about figs.\n`);
  const found = await search("figs");
  expect(found.find(({ text }) => text.includes("parrot"))?.origin).toBe("untrusted");
  expect(found.find(({ text }) => text.includes("own line"))?.origin).toBe("owner");
});

test("of very many lines that a run notes at once only the last are known one by one; a stranger's all stay untrusted", async () => {
  const lines = Array.from({ length: 1_500 }, (_, at) => `- Seashell ${at} is listed.`);
  const noting = (name: string): [string, object] => ["write_file", { name, text: `${lines.join("\n")}\n` }];
  const notes = () =>
    it.server.foundation.store.sqlite.query<{ notes: number }, []>("SELECT count(*) AS notes FROM memory_notes").get()
      ?.notes ?? 0;
  const before = notes();
  const runId = await say("Look the shells up and note them.", ["fetch", { key: "a" }], noting("memory/shells.md"));
  expect(notes() - before).toBeLessThan(1_100);
  const edit = () => write("memory/shells.md", `${lines.join("\n")}\n- The owner's own shell.\n`);
  await edit();
  const origins = async () => {
    const found = await search("Seashell 7", 50);
    return found.filter(({ file }) => file === "memory/shells.md").map(({ text, origin }) => `${text} ${origin}`);
  };
  expect(await origins()).toContain("- Seashell 7 is listed. untrusted");
  // What is not known as the run's cannot be removed, and is trusted no more than before.
  expect((await it.person.ask("DELETE", `${path}/memory?runId=${runId}`)).body.deleted).toBe(1_002);
  expect(await read("memory/shells.md")).toBe(`${lines.slice(0, 500).join("\n")}\n- The owner's own shell.\n`);
  expect(await origins()).toContain("- Seashell 7 is listed. untrusted");
  // Once the file is gone, nothing is left of it to be distrusted.
  await it.person.ask("DELETE", `${path}/files/memory/shells.md`);
  await it.person.ask("DELETE", `${path}/memory?runId=${runId}`);
  await write("memory/shells.md", "- Seashell 7 is the owner's.\n");
  expect(await origins()).toContain("- Seashell 7 is the owner's. owner");
  await it.person.ask("DELETE", `${path}/files/memory/shells.md`);
});

test("a run that finds a stranger's words in its memory is tainted by them", async () => {
  const runId = await say("What do you know of the parrot?", ["search_memory", { query: "parrot Rasputin figs" }]);
  expect(it.results("What do you know of the parrot?")[0]).toContain("<untrusted-");
  const answer = (await search("Done")).find((one) => one.runId === runId && one.source === "conversation");
  expect(answer?.origin).toBe("untrusted");
});

test("a model finds in its memory what was noted in another conversation", async () => {
  const message = "Where is the spare key?";
  const { body } = await it.person.ask("POST", `${path}/conversations`, {});
  it.calls(message, ["search_memory", { query: "spare key", limit: 4 }]);
  const sent = await it.send(message, { conversationId: body.conversationId });
  await it.until("run.completed", sent.body.runId);
  expect(it.results(message)[0]).toContain("under the fern");
});

test("a run is forgotten: its lines and messages are found no longer, others' lines stay; a dry run changes nothing", async () => {
  const file = `memory/${day()}.md`;
  const runId = await say("Note the code of the gate.", ["remember", { text: "The gate's code is 4711." }]);
  await say("Note the colour of the gate.", ["remember", { text: "The gate is green." }]);
  const before = await read(file);
  const dry = await it.person.ask("DELETE", `${path}/memory?runId=${runId}&dryRun=true`);
  expect(dry.body.deleted).toBe(3);
  expect(dry.body.items[0]).toMatchObject({ source: "file", text: "- The gate's code is 4711.", runId });
  expect(await read(file)).toBe(before);
  const { status, body } = await it.person.ask("DELETE", `${path}/memory?runId=${runId}`);
  expect([status, body.deleted]).toEqual([200, 3]);
  expect(await read(file)).toBe(before.replace("- The gate's code is 4711.\n", ""));
  const left = await search("code gate 4711 note", 50);
  expect(left.filter((one) => one.runId === runId)).toEqual([]);
  expect(left.map(({ text }) => text)).toContain("- The gate is green.");
  // The messages themselves stay.
  const messages = await it.person.ask("GET", `${path}/messages?limit=100`);
  expect(JSON.stringify(messages.body)).toContain("Note the code of the gate.");
  expect((await it.person.ask("DELETE", `${path}/memory?runId=${runId}`)).body).toEqual({ deleted: 0, items: [] });
});

test("a run is forgotten wherever it was said: where it was announced, and in a fork", async () => {
  const message = "Look after the harbour.";
  it.when(message, { kind: "text", tokens: ["The harbour", " is frozen over."] });
  const planned = { name: "Harbour", message, everySeconds: 86_400, announce: true };
  const { scheduleId } = (await it.person.ask("POST", `${path}/schedules`, planned)).body;
  const { runId } = (await it.person.ask("POST", `${path}/schedules/${scheduleId}/run`)).body;
  await it.until("run.completed", runId);
  const { conversationId } = (await it.person.ask("GET", `${path}/runs/${runId}`)).body;
  const { data } = (await it.person.ask("GET", `${path}/messages?conversationId=${conversationId}`)).body;
  const { messageId } = data.find(({ role }: { role: string }) => role === "agent");
  const fork = () => it.person.ask("POST", `${path}/conversations/${conversationId}/fork`, { messageId });
  expect((await fork()).status).toBe(201);
  const found = async () => (await search("harbour frozen", 50)).filter((one) => one.runId === runId);
  const frozen = (await found()).filter(({ text }) => text === "The harbour is frozen over.");
  expect(new Set(frozen.map((one) => one.conversationId)).size).toBe(3);
  const forget = async (more = "") =>
    (await it.person.ask("DELETE", `${path}/memory?runId=${runId}${more}`)).body.deleted;
  expect(await forget("&dryRun=true")).toBe(5);
  expect(await forget()).toBe(5);
  expect(await found()).toEqual([]);
  expect(await forget()).toBe(0);
});

test("a conversation is forgotten with all that its runs noted", async () => {
  const { body: conversation } = await it.person.ask("POST", `${path}/conversations`, {});
  const { conversationId } = conversation;
  const message = "Note the name of the ferry.";
  it.calls(message, ["remember", { text: "The ferry is called Halcyon." }]);
  const sent = await it.send(message, { conversationId });
  await it.until("run.completed", sent.body.runId);
  expect((await texts("ferry Halcyon")).length).toBeGreaterThan(0);
  const { body } = await it.person.ask("DELETE", `${path}/memory?conversationId=${conversationId}`);
  expect(body.deleted).toBe(3);
  expect((await texts("ferry Halcyon")).filter((text) => /ferry/i.test(text))).toEqual([]);
});

test("runs that are forgotten one by one leave rows only while there are messages that they are about", async () => {
  const { body } = await it.person.ask("POST", `${path}/conversations`, {});
  const { conversationId } = body;
  const told = async (message: string): Promise<string> => {
    const { runId } = (await it.send(message, { conversationId })).body;
    await it.until("run.completed", runId);
    return runId;
  };
  const forget = async (query: string) => (await it.person.ask("DELETE", `${path}/memory?${query}`)).body.deleted;
  const rows = () =>
    it.server.foundation.store.sqlite
      .query("SELECT 1 FROM memory_forgotten WHERE conversation_id = ?")
      .all(conversationId).length;
  const runIds = [await told("The first kite is red."), await told("The second kite is blue.")];
  for (const runId of runIds) expect(await forget(`runId=${runId}`)).toBe(2);
  expect(rows()).toBe(2);
  const third = await told("The third kite is green.");
  const kites = async () => (await texts("kite")).filter((text) => text.includes("kite is"));
  expect(await kites()).toEqual(["The third kite is green."]);
  expect(await forget(`conversationId=${conversationId}&dryRun=true`)).toBe(2);
  expect(await forget(`conversationId=${conversationId}`)).toBe(2);
  expect(await forget(`runId=${third}`)).toBe(0);
  expect(rows()).toBe(1);
  expect(await kites()).toEqual([]);
  await it.person.ask("DELETE", `${path}/messages?conversationId=${conversationId}`);
  await it.server.app.settled();
  expect(rows()).toBe(0);
});

test("neither, both, an unknown or a foreign id of what to forget are refused", async () => {
  const ask = async (query: string) => (await it.person.ask("DELETE", `${path}/memory${query}`)).status;
  const unknown = "0190f5e2c4a87b3d8e1f6a2b4c5d7e90";
  expect(await ask("")).toBe(400);
  expect(await ask(`?runId=run_${unknown}&conversationId=conv_${unknown}`)).toBe(400);
  expect(await ask(`?runId=run_${unknown}`)).toBe(404);
  expect(await ask(`?conversationId=conv_${unknown}`)).toBe(404);
});

test("what is said in a conversation after it was forgotten and cleared is found", async () => {
  const { body } = await it.person.ask("POST", `${path}/conversations`, {});
  const { conversationId } = body;
  const tell = async (message: string) =>
    it.until("run.completed", (await it.send(message, { conversationId })).body.runId);
  await tell("The chestnut horse is called Alma.");
  await tell("The grey horse is called Borek.");
  await it.person.ask("DELETE", `${path}/memory?conversationId=${conversationId}`);
  await it.person.ask("DELETE", `${path}/messages?conversationId=${conversationId}`);
  await it.server.app.settled();
  await tell("The black horse is called Corvin.");
  const found = (await texts("horse called")).filter((text) => text.includes("horse"));
  expect(found).toEqual(["The black horse is called Corvin."]);
});

test("a conversation that is cleared or deleted is found no longer", async () => {
  const { body: conversation } = await it.person.ask("POST", `${path}/conversations`, {});
  const { conversationId } = conversation;
  const sent = await it.send("The lighthouse keeper is called Barnaby.", { conversationId });
  await it.until("run.completed", sent.body.runId);
  expect(await texts("lighthouse Barnaby")).toContain("The lighthouse keeper is called Barnaby.");
  await it.person.ask("DELETE", `${path}/conversations/${conversationId}`);
  expect(await texts("lighthouse Barnaby")).not.toContain("The lighthouse keeper is called Barnaby.");
});

test("a bundle says of a file that a stranger's words are in it, also where a person has changed it since", async () => {
  const bundle = await it.person.fetch("GET", `${path}/bundle`);
  const bytes = Bun.gunzipSync(new Uint8Array(await bundle.arrayBuffer()));
  expect(new TextDecoder().decode(bytes)).toMatch(new RegExp(`"tainted": \\[[^\\]]*"memory/${day()}.md"`));
});
