import { afterAll, beforeAll, expect, test } from "bun:test";
import { MAX_OF_ACCOUNT, MAX_OF_CHAIN, MAX_OF_RUN } from "../../src/delegation/rules.ts";
import { scriptedTool } from "../support/scripted-tools.ts";
import { type Agents, startAgents } from "./agents.ts";

let it: Agents;
const paused = Promise.withResolvers<string>();
beforeAll(async () => {
  it = await startAgents([scriptedTool("pause", "nothing", () => paused.promise)]);
});
afterAll(() => it.stop());

const delegates = (prefix: string): [string, object] => [
  "delegate",
  { tasks: [0, 1, 2, 3].map((at) => ({ title: `${prefix}${at}`, message: `${prefix}${at}` })) },
];

test("one run asks for help a bounded number of times", async () => {
  const ada = await it.agent("Ada");
  const steps = MAX_OF_RUN / 4 + 1;
  it.when("again", ...Array.from({ length: steps }, (_, at): [string, object][] => [delegates(`step ${at} `)]), "End.");
  await it.send(ada, "again");
  const results = it.results("again");
  expect(results).toHaveLength(steps);
  expect(results.filter((result) => result.includes("as much help as you may"))).toEqual([results.at(-1) ?? ""]);
  expect(await it.runs(ada)).toHaveLength(MAX_OF_RUN + 1);
});

test("copies that message agents that delegate again, as often as they may, come to an end within the total, while a neighbour is answered", async () => {
  const [bomb, ...others] = await Promise.all(
    ["Bomb", "Fuse 0", "Fuse 1", "Fuse 2", "Fuse 3"].map((name) => it.agent(name)),
  );
  const neighbour = await it.server.signUp();
  const { instanceId } = (await neighbour.ask("POST", "/v1/instances", { name: "beside" })).body;
  const { agentId } = (await neighbour.ask("POST", `/v1/instances/${instanceId}/agents`, { name: "Nina" })).body;
  it.when("explode", [delegates("a")], "Spent.");
  // Each copy messages four agents one after the other, and each of these delegates to four copies of its own.
  for (const copy of [0, 1, 2, 3]) {
    const messages = [0, 1, 2, 3].map((at): [string, object][] => [
      ["message_agent", { agent: `Fuse ${at}`, message: `b${copy}${at}` }],
    ]);
    it.when(`a${copy}`, ...messages, "Burnt.");
    for (const at of [0, 1, 2, 3]) it.when(`b${copy}${at}`, [delegates(`c${copy}${at}`)], "Burnt.");
  }
  const explosion = it.send(bomb ?? "", "explode");
  const beside = await neighbour.ask("POST", `/v1/instances/${instanceId}/agents/${agentId}/messages`, {
    message: "hi",
  });
  expect(beside.status).toBe(200);
  expect((await explosion).body.message).toBe("Spent.");
  const counts = await Promise.all([bomb ?? "", ...others].map(async (agent) => (await it.runs(agent)).length));
  // All but the first were caused by it. 4 + 16 + 64 were wanted.
  expect(counts.reduce((sum, count) => sum + count, 0) - 1).toBeLessThanOrEqual(MAX_OF_CHAIN);
  const refused = it.mock.requests.some(({ body }) =>
    JSON.stringify(body.messages).includes("as many agents were asked"),
  );
  expect(refused).toBe(true);
});

test("a copy's title is one line without control characters", async () => {
  const ada = await it.agent("Ada");
  const titled = (title: string): [string, object][] => [["delegate", { tasks: [{ title, message: "part" }] }]];
  it.when("part", "Done.");
  it.when("split", titled("\0part"), titled("a\nb"), titled("part"), "End.");
  expect((await it.send(ada, "split")).body.message).toBe("End.");
  const refused = expect.stringContaining("title: expected one line without control characters");
  expect(it.results("split")).toEqual([refused, refused, expect.stringContaining("Done.")]);
});

test("a full queue is told to the model, and nothing is left half begun", async () => {
  const ada = await it.agent("Ada");
  const bob = await it.agent("Busy Bob");
  it.when("hang", "HANG");
  for (let at = 0; at < 3; at++) await it.queue(bob, "hang", { conversationId: await it.conversation(bob) });
  for (let at = 0; at < 33; at++) await it.queue(bob, "hang");
  it.when("ask", [["message_agent", { agent: "busy-bob", message: "hello" }]], "Well.");
  await it.send(ada, "ask");
  expect(it.results("ask")[0]).toContain("32 messages wait for this agent already");
  expect((await it.person.ask("GET", it.at(bob, "/conversations?origin=agent"))).body.data).toEqual([]);
  const { sqlite } = it.server.foundation.store;
  expect(sqlite.query("SELECT count(*) AS open FROM delegations WHERE is_open = 1").get()).toEqual({ open: 0 });
  await it.person.ask("DELETE", it.at(bob));
});

test("a run that asks in vain goes on, though another of its agent's runs takes its place meanwhile", async () => {
  const [ada, bob] = [await it.agent("Asks in vain"), await it.agent("Spent Bob")];
  await it.person.ask("PATCH", it.at(bob), { modelLimits: { tokensPerDay: 1 } });
  it.when("hang", "HANG");
  const others = await Promise.all(Array.from({ length: 16 }, (_, at) => it.agent(`Other ${at}`)));
  // All of the account's places but one.
  const agents = [...others, ...others, ...others, ...others.slice(1)];
  // Queued at once: a model that says nothing is left after a minute.
  const queued = await Promise.all(
    agents.map(async (agent) => {
      const runId = await it.queue(agent, "hang", { conversationId: await it.conversation(agent) });
      return { agent, runId };
    }),
  );
  for (const { agent, runId } of queued) await it.until(agent, "run.started", runId);
  it.when("ask", [["pause", {}]], [["message_agent", { agent: bob, message: "hello" }]], "Well.");
  const asking = await it.queue(ada, "ask");
  await it.until(ada, "tool.started", asking);
  const beside = await it.queue(ada, "beside", { conversationId: await it.conversation(ada) });
  expect((await it.run(ada, beside)).status).toBe("queued");
  paused.resolve("Now.");
  await it.until(ada, "run.completed", beside);
  await it.until(ada, "run.completed", asking);
  expect(it.results("ask").at(-1)).toContain("tokensPerDay");
  await Promise.all(others.map((agent) => it.person.ask("DELETE", it.at(agent))));
});

test("a person's message does not wait for the copies that are queued", async () => {
  const ada = await it.agent("Ada");
  const part = (message: string) => ({ title: message, message });
  it.when("wait", "HANG");
  it.when("four", [["delegate", { tasks: [0, 1, 2, 3].map(() => part("wait")) }]], "End.");
  it.when("one more", [["delegate", { tasks: [part("later")] }]], "End.");
  const first = await it.queue(ada, "four");
  const { tasks } = await it.until(ada, "delegation.started", first);
  for (const { runId } of tasks) await it.until(ada, "run.started", runId);
  const cancel = (runId: string) => it.person.ask("POST", it.at(ada, `/runs/${runId}/cancel`));
  // One place is lent to the second parent, and taken again before its copy can have it.
  const second = await it.conversation(ada);
  const parent = await it.queue(ada, "one more", { conversationId: second });
  const held = Promise.withResolvers<void>();
  it.when("held", "Held.");
  it.holds("held", held.promise);
  const blocking = await it.queue(ada, "held", { conversationId: await it.conversation(ada) });
  await cancel(tasks[0].runId);
  await it.until(ada, "delegation.started", parent);
  await it.until(ada, "run.started", blocking);
  const person = await it.queue(ada, "hi", { conversationId: await it.conversation(ada) });
  await cancel(tasks[1].runId);
  await it.until(ada, "run.completed", person);
  held.resolve();
  await it.until(ada, "run.completed", parent);
  const started = (await it.runs(ada)) as { runId: string; origin: { id: string }; startedAt: string }[];
  const copy = started.find(({ origin }) => origin.id === parent)?.startedAt ?? "";
  expect((started.find(({ runId }) => runId === person)?.startedAt ?? "~") <= copy).toBe(true);
  await cancel(first);
});

test("an account has a bounded number of runs that others wait for", async () => {
  const [ada, bob] = [await it.agent("Asking"), await it.agent("Asked")];
  it.when("ask", [["message_agent", { agent: bob, message: "hello" }]], "Well.");
  const { store } = it.server.foundation;
  const fill = `WITH RECURSIVE n(at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM n WHERE at < ${MAX_OF_ACCOUNT})
    INSERT INTO delegations SELECT 'run_' || at, 'conv', ?, 'run', 'run', 'wait' || at, 0, NULL, NULL, 1, 1, 9e15 FROM n`;
  store.transaction(() => store.sqlite.run(fill, [it.person.accountId]));
  await it.send(ada, "ask");
  expect(it.results("ask")[0]).toContain("too many agents of this account are waited for");
  store.transaction(() => store.sqlite.run("DELETE FROM delegations WHERE conversation_id = 'conv'"));
  await it.send(ada, "ask");
  expect(it.results("ask").at(-1)).toContain("Said: hello");
});

test("an agent keeps 300 conversations of this kind: the one unused for longest makes room, never one in which it works", async () => {
  const [ada, bob] = [await it.agent("Asks much"), await it.agent("Remembers")];
  const { store } = it.server.foundation;
  const held = Promise.withResolvers<void>();
  it.when("hold on", "Held.");
  it.holds("hold on", held.promise);
  it.when("first", [["message_agent", { agent: bob, message: "hold on" }]], "First.");
  const first = await it.queue(ada, "first");
  const { tasks } = await it.until(ada, "delegation.started", first);
  // Its conversation has been used the longest ago of all, but it works there.
  const fill = `WITH RECURSIVE n(at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM n WHERE at < 299)
    INSERT INTO conversations (conversation_id, agent_id, origin_type, updated_at, created_at)
    SELECT 'conv_' || at, ?, 'agent', at, at FROM n`;
  store.transaction(() => {
    store.sqlite.run(fill, [bob]);
    store.sqlite.run("UPDATE conversations SET updated_at = 0 WHERE conversation_id = ?", [tasks[0].conversationId]);
  });
  it.when("second", [["message_agent", { agent: bob, message: "hello" }]], "Second.");
  await it.send(ada, "second", { conversationId: await it.conversation(ada) });
  expect(it.results("second")[0]).toContain("Said: hello");
  const open =
    "SELECT conversation_id AS id FROM conversations WHERE agent_id = ? AND origin_type = 'agent' AND state = 'open'";
  const ids = store.sqlite
    .query<{ id: string }, [string]>(open)
    .all(bob)
    .map(({ id }) => id);
  expect([ids.length, ids.includes(tasks[0].conversationId), ids.includes("conv_1")]).toEqual([300, true, false]);
  held.resolve();
  await it.until(ada, "run.completed", first);
  expect(it.results("first")[0]).toContain("Held.");
});
