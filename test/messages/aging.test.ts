import { Database } from "bun:sqlite";
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { DAY, HOUR, handClock } from "../lib/hand-clock.ts";
import type { Answer } from "../support/test-server.ts";
import { type Conversation, startConversation } from "./conversation.ts";

const clock = handClock();
let it: Conversation;
let key: string;
beforeAll(async () => {
  const free = { ROOST_PRICE_PER_HOUR: "0", ROOST_MINIMUM_LAUNCH_BALANCE: "0" };
  const settings = { ROOST_KEEP_MESSAGES: "30d", ROOST_KEEP_RUNS: "60d", ...free };
  it = await startConversation(settings, undefined, undefined, { clock });
  // Tokens end within a day.
  ({ key } = (await it.person.ask("POST", "/v1/auth/keys")).body);
  const created = await ask("POST", `/v1/instances/${it.instance}/agents`, { name: "Grace" });
  expect(created.status).toBe(201);
});
afterAll(() => it.stop());
let agent: string;
beforeEach(async () => {
  agent = (await ask("POST", `/v1/instances/${it.instance}/agents`, { name: "Ada" })).body.agentId;
});

const ask = (method: string, path: string, body?: unknown, headers = {}): Promise<Answer> =>
  it.server.ask(method, path, { key, headers, ...(body === undefined ? {} : { body }) });
const at = (path: string) => `/v1/instances/${it.instance}/agents/${agent}${path}`;
const send = async (message: string) => (await ask("POST", at("/messages"), { message })).body;
const textsOf = async () =>
  (await ask("GET", at("/messages"))).body.data.map(({ message }: { message: string }) => message);
const tidy = () => it.server.app.housekeeping.tidy();
const sqlite = () => it.server.foundation.store.sqlite;
/** As the host writes: what it reads in the same turn sees one moment. */
const write = (sql: string, values: (string | number)[]) =>
  it.server.foundation.store.transaction(() => sqlite().run(sql, values));
const one = (sql: string, ...values: string[]) =>
  sqlite()
    .query(sql)
    .values(...values)[0]?.[0];
const conversation = () => agent.replace("agt_", "conv_");
const checkCounts = () => {
  const sums = sqlite().query(`SELECT u.account_id FROM account_usage AS u WHERE history_bytes <> coalesce((
      SELECT sum(512 + octet_length(text) + octet_length(sender_type) + octet_length(sender_id) + octet_length(sender_name))
      FROM messages JOIN agents USING (agent_id) JOIN instances USING (instance_id)
      WHERE instances.account_id = u.account_id), 0)`);
  expect(sums.all()).toEqual([]);
  const counts = `SELECT conversation_id FROM conversations AS c WHERE message_count <> (
    SELECT count(*) FROM messages AS m WHERE m.conversation_id = c.conversation_id AND message_seq > cleared_message_seq)`;
  expect(sqlite().query(counts).all()).toEqual([]);
};

test("messages go at the end of their life, and everything that counts or remembers them follows", async () => {
  const old = await send("the old question");
  clock.advance(29 * DAY);
  await send("the young question");
  await tidy();
  expect(await textsOf()).toEqual(["the old question", "Hello, world", "the young question", "Hello, world"]);
  clock.advance(DAY + 1);
  await tidy();
  expect(await textsOf()).toEqual(["the young question", "Hello, world"]);
  expect((await ask("GET", at(`/conversations/${conversation()}`))).body.messageCount).toBe(2);
  expect((await ask("POST", at(`/conversations/${conversation()}/fork`), { messageId: old.messageId })).status).toBe(
    404,
  );
  // Its run's record is kept for longer.
  expect((await ask("GET", at(`/runs/${old.runId}`))).body.status).toBe("completed");
  checkCounts();

  await send("what did I ask?");
  const prompt = JSON.stringify(it.mock.requests.at(-1)?.body);
  expect(prompt).toContain("the young question");
  expect(prompt).not.toContain("the old question");
});

test("events have no text that is older than messages may be, and their cursors are gone", async () => {
  write("UPDATE events SET created_at = ? WHERE agent_id = ?", [clock.now(), agent]);
  await send("Hello");
  clock.advance(7 * DAY + 1);
  await send("again");
  await tidy();
  expect((await ask("GET", at("/events?after=2"))).status).toBe(410);
  expect(one("SELECT count(*) FROM events WHERE agent_id = ? AND created_at < ?", agent, String(clock.now()))).toBe(0);
  expect(one("SELECT event_bytes FROM agents WHERE agent_id = ?", agent)).toBe(
    one("SELECT sum(128 + octet_length(data)) FROM events WHERE agent_id = ?", agent),
  );
});

test("a question stays until its answer goes, and a run that is not over keeps its question", async () => {
  it.when("wait", { kind: "hang" });
  const { runId } = (await ask("POST", at("/messages"), { message: "wait" }, { Prefer: "respond-async" })).body;
  clock.advance(40 * DAY);
  await tidy();
  expect(await textsOf()).toEqual(["wait"]);
  await ask("POST", at(`/runs/${runId}/cancel`));
  clock.advance(30 * DAY);
  await tidy();
  expect(await textsOf()).toEqual(["wait", ""]);
  clock.advance(1);
  await send("the newest number is never given to another message");
  await tidy();
  expect((await textsOf())[0]).toBe("the newest number is never given to another message");
  checkCounts();
});

test("memory drops messages that have come to the end of their life: their texts are gone, and hide nothing that is left", async () => {
  const found = async () => {
    const search = () => ask("GET", at("/memory?query=ladder&limit=1"));
    await search();
    await it.server.app.settled();
    return (await search()).body.items.map(({ text }: { text: string }) => text);
  };
  const barn = (ladder: number) => `Ladder number ${ladder} is in the barn.`;
  for (let ladder = 0; ladder < 12; ladder++) await send(barn(ladder));
  clock.advance(29 * DAY);
  await send(`One ladder is in the loft. ${"There is much else to be said of the loft. ".repeat(15)}`);
  expect(await found()).toEqual([expect.stringContaining("is in the barn.")]);
  clock.advance(2 * DAY);
  await tidy();
  expect(await found()).toEqual([expect.stringContaining("One ladder is in the loft.")]);
  const index = new Database(join(it.server.dataDir, "memory", `${agent}.db`));
  expect(index.query("SELECT text FROM entries WHERE text LIKE '%barn%'").all()).toEqual([]);
  index.close();
});

test("memory has what is said after all messages have gone, the newest of them with another agent", async () => {
  const found = async (query: string) => {
    const search = () => ask("GET", at(`/memory?query=${query}`));
    await search();
    await it.server.app.settled();
    return (await search()).body.items.map(({ text }: { text: string }) => text);
  };
  await send("The ladder is in the barn.");
  expect(await found("ladder")).toEqual(["The ladder is in the barn."]);
  clock.advance(29 * DAY);
  const other = (await ask("POST", `/v1/instances/${it.instance}/agents`, { name: "Bea" })).body.agentId;
  await ask("POST", `/v1/instances/${it.instance}/agents/${other}/messages`, { message: "Hello" });
  clock.advance(2 * DAY);
  await tidy();
  await ask("DELETE", `/v1/instances/${it.instance}/agents/${other}`);
  await it.server.app.settled();
  expect(one("SELECT count(*) FROM messages")).toBe(0);
  await send("The ladder is in the loft.");
  expect(await found("ladder")).toEqual(["The ladder is in the loft."]);
});

test("the records of runs that are over go at the end of theirs, with what was decided for them", async () => {
  const { runId } = await send("Hello");
  write(
    `INSERT INTO approvals (approval_id, account_id, instance_id, agent_id, conversation_id, run_id, first_event_id, kind,
       status, tool, input, input_hash, tainted, decided_at, expires_at, created_at)
     VALUES ('appr_1', ?, ?, ?, ?, ?, 0, 'tool', 'approved', 'now', '{}', ?, 0, ?, 0, 0)`,
    [it.person.accountId, it.instance, agent, conversation(), runId, "0".repeat(64), clock.now()],
  );
  clock.advance(60 * DAY);
  await tidy();
  expect(one("SELECT count(*) FROM approvals")).toBe(0);
  expect((await ask("GET", at(`/runs/${runId}`))).status).toBe(200);
  clock.advance(1);
  await tidy();
  expect((await ask("GET", at(`/runs/${runId}`))).status).toBe(404);
  expect((await ask("GET", at("/runs"))).body.data).toEqual([]);
});

test("a copy of old messages lives as long as what came beside it", async () => {
  const { messageId } = await send("Hello");
  clock.advance(29 * DAY);
  const { conversationId } = (await ask("POST", at(`/conversations/${conversation()}/fork`), { messageId })).body;
  clock.advance(HOUR);
  await send("and one more");
  clock.advance(DAY);
  await tidy();
  expect(await textsOf()).toEqual(["and one more", "Hello, world"]);
  const copies = await ask("GET", at(`/messages?conversationId=${conversationId}`));
  expect(copies.body.data.map(({ inReplyTo }: { inReplyTo: string | null }) => inReplyTo)).toEqual([]);
  checkCounts();
});
