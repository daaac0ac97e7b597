import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { newId } from "../../src/lib/id.ts";
import { conversationQueries } from "../../src/messages/conversation-queries.ts";
import { defaultConversationOf } from "../../src/messages/schema.ts";
import { type Conversation, startConversation } from "./conversation.ts";

const RUNS = 600;
let it: Conversation;
beforeAll(async () => {
  it = await startConversation();
});
afterAll(() => it.stop());
beforeEach(() => it.begin());

const sqlite = () => it.server.foundation.store.sqlite;
const rowsOf = (table: string, agentId: string) =>
  sqlite().query<{ n: number }, [string]>(`SELECT count(*) AS n FROM ${table} WHERE agent_id = ?`).get(agentId)?.n;

/** A history of this many runs, each with its question, its answer and its events. Returns the runs' ids. */
function past(agentId: string, instanceId: string, count = RUNS): string[] {
  const conversationId = defaultConversationOf(agentId);
  const { store } = it.server.foundation;
  const runIds = Array.from({ length: count }, () => newId("run"));
  store.transaction(() => {
    const { id: before } = store.sqlite
      .query<{ id: number }, [string]>("SELECT last_event_id AS id FROM agents WHERE agent_id = ?")
      .get(agentId) ?? { id: 0 };
    const run = store.sqlite.prepare(
      "INSERT INTO runs (run_id, agent_id, instance_id, conversation_id, message_id, status, first_event_id, created_at, finished_at) VALUES (?, ?, ?, ?, ?, 'completed', ?, 0, 0)",
    );
    const message = store.sqlite.prepare(
      "INSERT INTO messages (message_id, agent_id, conversation_id, run_id, role, text, sender_type, sender_id, sender_name, in_reply_to, created_at) VALUES (?, ?, ?, ?, ?, 'old secret', 'human', 'x', 'x', ?, 0)",
    );
    const event = store.sqlite.prepare("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)");
    const kinds = ["run.queued", "run.started", "message.delta", "message.completed", "run.completed"];
    runIds.forEach((runId, at) => {
      const [asked, answered] = [newId("msg"), newId("msg")];
      const first = before + at * kinds.length + 1;
      run.run(runId, agentId, instanceId, conversationId, asked, first);
      message.run(asked, agentId, conversationId, runId, "user", null);
      message.run(answered, agentId, conversationId, runId, "agent", asked);
      kinds.forEach((kind, place) => {
        const data = kind.startsWith("message.") ? '{"delta":"old secret"}' : "{}";
        event.run(agentId, first + place, runId, conversationId, kind, data, Date.now());
      });
    });
    store.sqlite.run("UPDATE agents SET last_event_id = ? WHERE agent_id = ?", [
      before + count * kinds.length,
      agentId,
    ]);
  });
  return runIds;
}

describe("clearing a long conversation", () => {
  test("changes one row, however long it is", () => {
    const { agent, instance } = it;
    const { store } = it.server.foundation;
    past(agent, instance);
    const changes = () => store.sqlite.query<{ n: number }, []>("SELECT total_changes() AS n").get()?.n ?? 0;
    const before = changes();
    store.transaction(() => conversationQueries(store.db).clear(defaultConversationOf(agent), 0));
    expect(changes() - before).toBe(1);
  });

  test("shares its commit, in its account's turn: the thread does not wait for the disk", async () => {
    const { store } = it.server.foundation;
    past(it.agent, it.instance, 1);
    const { commitSoon } = store;
    const owners: (string | undefined)[] = [];
    store.commitSoon = (work, durability, owner) => {
      if (durability === "full") owners.push(owner);
      return commitSoon(work, durability, owner);
    };
    const { status } = await it.person.ask("DELETE", it.at("/messages"));
    store.commitSoon = commitSoon;
    expect([status, owners]).toEqual([200, [it.person.accountId]]);
  });

  test("is seen at once by everybody, and its rows are removed in the background", async () => {
    const { agent, instance } = it;
    const [runId = ""] = past(agent, instance);
    const pages = () => it.person.ask("GET", it.at("/messages?limit=1"));
    const { nextCursor } = (await pages()).body;
    expect((await it.person.ask("DELETE", it.at("/messages"))).status).toBe(200);
    expect((await pages()).body.data).toEqual([]);
    expect((await it.person.ask("GET", it.at(`/messages?after=${nextCursor}`))).body.data).toEqual([]);
    expect((await it.run(runId)).status).toBe(404);
    expect((await it.cancel(runId)).status).toBe(404);
    for (const query of ["", `?conversationId=${defaultConversationOf(agent)}`]) {
      expect((await it.person.ask("GET", it.at(`/runs${query}`))).body.data).toEqual([]);
    }
    await using events = await it.events(0);
    const frames = await events.until(({ id }) => id >= RUNS * 5);
    expect(events.text()).not.toContain("old secret");
    const kinds = frames.filter(({ data }) => data.runId === runId).map(({ event }) => event);
    expect(kinds).toEqual(["run.queued", "run.started", "run.completed"]);
    await it.server.app.settled();
    expect([rowsOf("messages", agent), rowsOf("runs", agent), rowsOf("events", agent)]).toEqual([0, 0, RUNS * 3]);
  });

  test("keeps messages sent while its rows are removed and afterwards, also after a second clearing", async () => {
    const { agent, instance } = it;
    for (const round of ["one", "two"]) {
      past(agent, instance, 300);
      await it.person.ask("DELETE", it.at("/messages"));
      expect((await it.send(`${round} at once`)).status).toBe(200);
      await it.server.app.settled();
      expect((await it.send(`${round} later`)).status).toBe(200);
      const { data } = (await it.person.ask("GET", it.at("/messages"))).body;
      const answered = ["Hello, world", "Hello, world"];
      expect(data.map(({ message }: { message: string }) => message)).toEqual([
        `${round} at once`,
        answered[0],
        `${round} later`,
        answered[1],
      ]);
      const { messages } = it.mock.requests.at(-1)?.body ?? {};
      expect(JSON.stringify(messages)).not.toContain("old secret");
    }
  });

  test("gives no number again, also if nobody else has written since, and it is cleared twice", async () => {
    const { agent } = it;
    const last = () =>
      sqlite()
        .query<{ seq: number }, [string]>("SELECT max(message_seq) AS seq FROM messages WHERE agent_id = ?")
        .get(agent)?.seq ?? 0;
    past(agent, it.instance, 3);
    const before = last();
    for (let time = 1; time <= 2; time++) {
      await it.person.ask("DELETE", it.at("/messages"));
      await it.server.app.settled();
    }
    await it.send("once more");
    expect(last()).toBe(before + 2);
  });

  test("keeps the cleared messages out of all later prompts", async () => {
    const { instance } = it;
    await it.send("an old secret");
    await it.send("one more");
    const other = await it.newAgent();
    await it.person.ask("POST", `/v1/instances/${instance}/agents/${other}/messages`, { message: "Hello" });
    await it.person.ask("DELETE", it.at("/messages"));
    await it.server.app.settled();
    await it.send("what do you know?");
    expect(JSON.stringify(it.mock.requests.at(-1)?.body.messages)).not.toContain("an old secret");
  });

  test("continues after a restart, and the rows stay hidden meanwhile", async () => {
    const { agent, instance } = it;
    past(agent, instance);
    await it.person.ask("DELETE", it.at("/messages"));
    await it.server.restart();
    expect((await it.person.ask("GET", it.at("/messages"))).body.data).toEqual([]);
    await it.server.app.settled();
    expect([rowsOf("messages", agent), rowsOf("runs", agent)]).toEqual([0, 0]);
  });
});

describe("deleting an agent with a long history", () => {
  test("hides it at once, frees its slug, and removes its rows and files in the background", async () => {
    const { agent, instance } = it;
    const { slug } = (await it.person.ask("GET", it.at(""))).body;
    past(agent, instance);
    const count = async () => (await it.person.ask("GET", `/v1/instances/${instance}`)).body.agentCount;
    const before = await count();
    expect((await it.person.ask("DELETE", it.at(""))).status).toBe(200);
    for (const path of ["", "/messages", "/events?after=0", "/files"]) {
      expect((await it.person.ask("GET", it.at(path))).status).toBe(404);
    }
    expect(await count()).toBe(before - 1);
    const listed = (await it.person.ask("GET", `/v1/instances/${instance}/agents?limit=100`)).body.data;
    expect(listed.map(({ agentId }: { agentId: string }) => agentId)).not.toContain(agent);
    const next = await it.person.ask("POST", `/v1/instances/${instance}/agents`, { name: "New", slug });
    expect(next.status).toBe(201);
    await it.server.restart();
    await it.server.app.settled();
    for (const table of ["messages", "runs", "events", "workspace_files", "agents"]) {
      expect([table, rowsOf(table, agent)]).toEqual([table, 0]);
    }
    expect(rowsOf("workspace_files", next.body.agentId)).toBeGreaterThan(0);
  });

  test("notifies its streams, and answers its pending requests", async () => {
    it.when("begin", { kind: "text", tokens: ["Once"], delayMs: 1, ending: "hang" });
    await using events = await it.events();
    const waiting = it.send("begin");
    await events.until(({ event }) => event === "message.delta");
    expect((await it.person.ask("DELETE", it.at(""))).status).toBe(200);
    expect((await waiting).body.finishReason).toBe("cancelled");
    expect((await events.rest()).at(-1)?.event).toBe("agent.deleted");
  });
});

test("deleting an instance removes all that belongs to it, notifies its streams, and leaves its neighbours unchanged", async () => {
  const { person, server } = it;
  const create = async (path: string) => {
    const { status, body } = await person.ask("POST", path, { name: "x" });
    expect({ status, body }).toMatchObject({ status: 201 });
    return body;
  };
  const made = async () => {
    const { instanceId } = await create("/v1/instances");
    const agentIds: string[] = [];
    for (let at = 0; at < 3; at++) {
      const { agentId } = await create(`/v1/instances/${instanceId}/agents`);
      past(agentId, instanceId, 150);
      agentIds.push(agentId);
    }
    await person.ask("POST", `/v1/instances/${instanceId}/skills`, { name: "meeting-notes" });
    await person.ask("POST", `/v1/instances/${instanceId}/secrets`, { key: "A", value: "a" });
    return { instanceId, agentIds };
  };
  const [gone, kept] = [await made(), await made()];
  const rows = ({ instanceId, agentIds }: typeof gone) =>
    Object.fromEntries([
      ...["instances", "installed_skills", "secrets"].map((table) => [
        table,
        sqlite().query(`SELECT 1 FROM ${table} WHERE instance_id = ?`).all(instanceId).length,
      ]),
      ...["agents", "messages", "runs", "events", "workspace_files"].map((table) => [
        table,
        agentIds.map((agentId) => rowsOf(table, agentId)),
      ]),
    ]);
  const before = rows(kept);
  const usage = () => sqlite().query<{ instances: number; agents: number }, []>("SELECT * FROM account_usage").get();
  const counted = usage();
  expect((await person.ask("DELETE", `/v1/instances/${gone.instanceId}`)).status).toBe(200);
  expect(usage()).toMatchObject({ instances: (counted?.instances ?? 0) - 1, agents: (counted?.agents ?? 0) - 3 });
  const listed = (await person.ask("GET", "/v1/instances?limit=100")).body.data;
  expect(listed.map(({ instanceId }: { instanceId: string }) => instanceId)).not.toContain(gone.instanceId);
  await server.app.settled();
  expect(Object.values(rows(gone)).flat()).toEqual(
    Object.values(rows(gone))
      .flat()
      .map(() => 0),
  );
  expect(rows(kept)).toEqual(before);
});
