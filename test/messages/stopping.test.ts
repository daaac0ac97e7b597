import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { newId } from "../../src/lib/id.ts";
import { AFTERMATH_SLICE } from "../../src/messages/aftermath.ts";
import { messageQueries } from "../../src/messages/queries.ts";
import { defaultConversationOf } from "../../src/messages/schema.ts";
import { type Conversation, startConversation } from "./conversation.ts";

let it: Conversation;
beforeAll(async () => {
  it = await startConversation();
  it.when("hang", { kind: "hang" });
});
afterAll(() => it.stop());
beforeEach(() => it.begin());

const store = () => it.server.foundation.store;
const statuses = () =>
  Object.fromEntries(
    store()
      .sqlite.query<{ status: string; n: number }, [string]>(
        "SELECT status, count(*) AS n FROM runs WHERE agent_id = ? GROUP BY status",
      )
      .all(it.agent)
      .map(({ status, n }) => [status, n]),
  );
const stop = () => it.person.ask("POST", `/v1/instances/${it.instance}/stop`);
const start = () => it.person.ask("POST", `/v1/instances/${it.instance}/start`);

/** Inserts messages that wait for the agent, after one whose model hangs: more than its queue would accept. */
async function fillQueue(count: number): Promise<void> {
  const asked = it.modelAsked("hang");
  await it.queue("hang");
  await asked;
  const { insertMessage, insertRun } = messageQueries(store().db);
  const { stops = 0 } =
    store()
      .sqlite.query<{ stops: number }, [string]>("SELECT stops FROM instances WHERE instance_id = ?")
      .get(it.instance) ?? {};
  store().transaction(() => {
    for (let at = 0; at < count; at++) {
      const conversationId = defaultConversationOf(it.agent);
      const run = { runId: newId("run"), messageId: newId("msg"), agentId: it.agent, conversationId };
      const none = {
        model: null,
        originId: null,
        errorCode: null,
        errorMessage: null,
        startedAt: null,
        finishedAt: null,
        waitingKind: null,
        waitingId: null,
        journalUpTo: null,
        cachedTokens: null,
        cost: null,
        retryAt: null,
      };
      const zero = { steps: 0, promptTokens: 0, completionTokens: 0, createdAt: 0 };
      insertRun({
        ...run,
        ...none,
        ...zero,
        instanceId: it.instance,
        originType: "user",
        status: "queued",
        firstEventId: 10 + at,
        stops,
      });
      insertMessage({
        ...run,
        role: "user",
        text: "never answered",
        senderType: "human",
        senderId: "x",
        senderName: "x",
        inReplyTo: null,
        finishReason: null,
        promptTokens: null,
        completionTokens: null,
        createdAt: 0,
        tainted: false,
        originType: null,
        originId: null,
      });
    }
  });
}

test("stopping an instance cancels all its runs, however many, and none of them starts when it is started again", async () => {
  const asked = it.mock.requests.length;
  await fillQueue(5 * AFTERMATH_SLICE);
  expect((await stop()).body.status).toBe("stopped");
  expect((await start()).body.status).toBe("running");
  // Cancelled messages take no place in the queue, and do not come before new ones.
  expect((await it.send("hi")).status).toBe(200);
  await it.server.app.settled();
  expect(statuses()).toEqual({ cancelled: 5 * AFTERMATH_SLICE + 1, completed: 1 });
  const texts = it.mock.requests.slice(asked).map(({ body }) => body.messages.at(-1).content);
  expect(texts.filter((text: string) => text === "never answered")).toEqual([]);
});

test("a run left by an earlier process and cancelled only by a stop is not started by the next process", async () => {
  await fillQueue(3 * AFTERMATH_SLICE);
  await stop();
  await start();
  const asked = it.mock.requests.length;
  await it.server.restart();
  await it.server.app.settled();
  expect(statuses()).toEqual({ cancelled: 3 * AFTERMATH_SLICE + 1 });
  expect(it.mock.requests.length).toBe(asked);
});

test("a request that waits for a run of a stopped instance is answered, and its history has the record", async () => {
  // Whichever arrives first is in progress.
  const waiting = Array.from({ length: 21 }, () => it.send("hang"));
  await using events = await it.events(0);
  let queued = 0;
  await events.until(({ event }) => event === "run.queued" && ++queued === 21);
  await stop();
  const answers = await Promise.all(waiting);
  expect(answers.map(({ status, body }) => [status, body.finishReason])).toEqual(Array(21).fill([200, "cancelled"]));
  await start();
  const { data } = (await it.person.ask("GET", it.at("/messages?limit=100"))).body;
  expect(data.filter(({ finishReason }: { finishReason: string }) => finishReason === "cancelled")).toHaveLength(21);
});

test("deleting an instance answers requests that wait for its runs, before its rows are removed", async () => {
  const { instanceId } = (await it.person.ask("POST", "/v1/instances", { name: "gone" })).body;
  const agents = await Promise.all(
    Array.from(
      { length: 12 },
      async () =>
        (await it.person.ask("POST", `/v1/instances/${instanceId}/agents`, { name: "x" })).body.agentId as string,
    ),
  );
  const asked = it.mock.requests.length;
  const waiting = agents.flatMap((agentId) =>
    Array.from({ length: 12 }, () =>
      it.person.ask("POST", `/v1/instances/${instanceId}/agents/${agentId}/messages`, { message: "hang" }),
    ),
  );
  await it.mock.arrived(asked + 12);
  const queued = () => store().sqlite.query("SELECT 1 FROM runs WHERE instance_id = ?").all(instanceId).length;
  while (queued() < 144) await new Promise(setImmediate);
  expect((await it.person.ask("DELETE", `/v1/instances/${instanceId}`)).status).toBe(200);
  const answers = await Promise.all(waiting);
  expect(answers.map(({ status, body }) => [status, body.finishReason])).toEqual(Array(144).fill([200, "cancelled"]));
  await it.server.app.settled();
  expect(queued()).toBe(0);
});
