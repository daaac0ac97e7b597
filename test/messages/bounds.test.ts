import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/lib/clock.ts";
import { newId } from "../../src/lib/id.ts";
import { MAX_HISTORY_BYTES } from "../../src/limits/account-limits.ts";
import { createEventLog } from "../../src/messages/events/event-log.ts";
import { createEventReader } from "../../src/messages/events/event-reader.ts";
import { createHub, type Hub } from "../../src/messages/events/hub.ts";
import { EVENT_ROW_BYTES, KEPT_BYTES } from "../../src/messages/events/pruning.ts";
import { messageQueries } from "../../src/messages/queries.ts";
import { defaultConversationOf } from "../../src/messages/schema.ts";
import type { Place, Slice } from "../../src/storage/retention.ts";
import { type Conversation, readEvents, startConversation } from "./conversation.ts";

let it: Conversation;
beforeAll(async () => {
  it = await startConversation();
});
afterAll(() => it.stop());
beforeEach(() => it.begin());

const store = () => it.server.foundation.store;
const one = <T>(sql: string, ...values: string[]): T =>
  Object.values(
    store()
      .sqlite.query<Record<string, T>, string[]>(sql)
      .get(...values) ?? {},
  )[0] as T;

/** Inserts messages of the agent directly, each of this many characters. */
function say(texts: readonly string[]): void {
  store().transaction(() => {
    const { insertMessage } = messageQueries(store().db);
    for (const text of texts) {
      insertMessage({
        messageId: newId("msg"),
        agentId: it.agent,
        conversationId: defaultConversationOf(it.agent),
        runId: newId("run"),
        role: "user",
        text,
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

describe("the history of an account", () => {
  const used = () => one<number>("SELECT history_bytes FROM account_usage");
  const counted = () =>
    one<number>(`SELECT coalesce(sum(512 + octet_length(text) + octet_length(sender_type) + octet_length(sender_id)
      + octet_length(sender_name)), 0) FROM messages`);
  /** Fills the account's history except for this many bytes. */
  const fill = (left: number) =>
    store().transaction(() =>
      store().sqlite.run("UPDATE account_usage SET history_bytes = ?", [MAX_HISTORY_BYTES - left]),
    );

  test("is counted as it grows, and its space is freed as cleared or deleted messages are removed", async () => {
    const before = used();
    expect(before).toBe(counted());
    await it.send("ünï€😀".repeat(50));
    say(Array(250).fill("x".repeat(1_000)));
    expect(used()).toBe(counted());
    expect(used() - before).toBeGreaterThan(250_000);
    await it.person.ask("DELETE", it.at("/messages"));
    await it.server.app.settled();
    expect(used()).toBe(before);
    say(["y".repeat(1_000)]);
    await it.person.ask("DELETE", it.at(""));
    await it.server.app.settled();
    expect(used()).toBe(before);
    expect(used()).toBe(counted());
  });

  test("has a quota: the next message is refused with what to do, but the answer to the last one is stored", async () => {
    const before = used();
    fill(600);
    const accepted = await it.send("the last one");
    expect(accepted.status).toBe(200);
    expect(accepted.body.message).toBe("Hello, world");
    const runs = one<number>("SELECT count(*) FROM runs");
    const refused = await it.send("one more");
    expect([refused.status, refused.body.error.code]).toEqual([409, "conflict"]);
    expect(refused.body.error.message).toContain(`at most ${MAX_HISTORY_BYTES} for the account`);
    expect(refused.body.error.message).toContain(`${used() + "one more".length}; clear a conversation or delete`);
    expect(one<number>("SELECT count(*) FROM runs")).toBe(runs);
    await it.person.ask("DELETE", it.at("/messages"));
    await it.server.app.settled();
    expect((await it.send("again")).status).toBe(200);
    await it.person.ask("DELETE", it.at("/messages"));
    await it.server.app.settled();
    fill(MAX_HISTORY_BYTES - before);
  });
});

describe("a page of history", () => {
  test("ends early if its messages are long, and the next continues after it, in both orders", async () => {
    const texts = Array.from({ length: 30 }, (_, at) => `${at} `.padEnd(25_000, "é"));
    say(texts);
    const sizes: number[] = [];
    for (const order of ["asc", "desc"]) {
      const seen: string[] = [];
      for (let cursor: string | null = ""; cursor !== null; ) {
        const after = cursor === "" ? "" : `&after=${cursor}`;
        const { body } = await it.person.ask("GET", it.at(`/messages?limit=100&order=${order}${after}`));
        const page: string[] = body.data.map(({ message }: { message: string }) => message);
        sizes.push(Buffer.byteLength(page.join("")));
        seen.push(...page);
        expect(body.hasMore).toBe(body.nextCursor !== null);
        cursor = body.nextCursor;
      }
      expect(seen).toEqual(order === "asc" ? texts : texts.toReversed());
    }
    expect(Math.max(...sizes)).toBeLessThanOrEqual(256 * 1024);
    expect(sizes.length).toBe(12);
  });

  test("shows at least one message, however long it is", async () => {
    say(["a", "b".repeat(3 * 1024 * 1024), "c"]);
    const first = (await it.person.ask("GET", it.at("/messages"))).body;
    expect(first.data.map(({ message }: { message: string }) => message.length)).toEqual([1]);
    const second = (await it.person.ask("GET", it.at(`/messages?after=${first.nextCursor}`))).body;
    expect(second.data.map(({ message }: { message: string }) => message.length)).toEqual([3 * 1024 * 1024]);
    const third = (await it.person.ask("GET", it.at(`/messages?after=${second.nextCursor}`))).body;
    expect([third.data.length, third.hasMore, third.nextCursor]).toEqual([1, false, null]);
  });
});

describe("the events of an agent", () => {
  const bytes = () => one<number>("SELECT event_bytes FROM agents WHERE agent_id = ?", it.agent);
  const counted = () =>
    one<number>(
      `SELECT coalesce(sum(octet_length(data) + ${EVENT_ROW_BYTES}), 0) FROM events WHERE agent_id = ?`,
      it.agent,
    );
  const firstId = () => one<number>("SELECT min(event_id) FROM events WHERE agent_id = ?", it.agent);
  const lastId = () => one<number>("SELECT last_event_id FROM agents WHERE agent_id = ?", it.agent);
  const log = () => createEventLog(store(), systemClock, () => {});
  /** Adds events of this many characters, of a run that has ended. */
  const tell = (count: number, size: number) =>
    store().transaction(() => {
      for (let at = 0; at < count; at++) {
        log().append(it.agent, [{ type: "message.delta", runId: "run_x", delta: "x".repeat(size) }]);
      }
    });

  test("are counted when they are added, and when they are removed, by the bytes of whatever language they are in", async () => {
    await it.send("hi");
    expect(bytes()).toBe(counted());
    const delta = "Grüße 🦉 漢字";
    store().transaction(() => log().append(it.agent, [{ type: "message.delta", runId: "run_x", delta }]));
    expect(bytes()).toBe(counted());
    await it.person.ask("DELETE", it.at("/messages"));
    await it.server.app.settled();
    expect(counted()).toBeGreaterThan(0);
    expect(bytes()).toBe(counted());
  });

  test("are bounded: adding one removes the oldest, and a cursor among those is 410", async () => {
    await it.send("hi");
    const before = lastId();
    tell(45, 400_000);
    expect(counted()).toBeLessThanOrEqual(KEPT_BYTES);
    expect(bytes()).toBe(counted());
    expect(firstId()).toBeGreaterThan(before);
    expect((await it.events(1)).response.status).toBe(410);
    expect((await it.events(firstId() - 2)).response.status).toBe(410);
    await using kept = await it.events(firstId() - 1);
    expect((await kept.next())?.id).toBe(firstId());
    await using all = await it.events(0);
    const frames = await all.until(({ id }) => id === lastId());
    expect(frames.map(({ id }) => id)).toEqual(Array.from({ length: frames.length }, (_, index) => firstId() + index));
  });

  test("are read from the beginning without reading more at once than a reader takes", () => {
    tell(100, 100_000);
    const follow = (after: number, bytes: number) => log().follow(it.agent, after, { rows: 200, bytes }, null)?.rows;
    const [lengths, none] = [follow(0, 32 * 1024), follow(lastId(), 1)];
    expect(lengths?.map(({ eventId }) => eventId)).toEqual([1]);
    expect(none).toEqual([]);
    expect(follow(0, 250_000)).toHaveLength(3);
  });

  test("are pruned by a limited number of rows in a commit, until no agent has too many or too old ones", async () => {
    tell(500, 10);
    store().transaction(() =>
      store().sqlite.run("UPDATE events SET created_at = 0 WHERE agent_id = ? AND event_id <= 300", [it.agent]),
    );
    const rows = () => one<number>("SELECT count(*) FROM events");
    let most = 0;
    for (let after: Place = ""; after !== null; ) {
      const from: Place = after;
      const before = rows();
      const { removed, next }: Slice = store().transaction(() => log().prune(1, from, 70));
      expect(removed).toBe(before - rows());
      most = Math.max(most, removed);
      after = next;
    }
    expect(most).toBe(70);
    expect(firstId()).toBe(301);
    expect(bytes()).toBe(counted());
  });

  test("that are removed before a slow reader has read them end its stream; it gets 410 when it reconnects", async () => {
    const hub: Hub = createHub(createEventReader(store().db).follow, () => {});
    const events = createEventLog(store(), systemClock, hub.publish);
    const say = (count: number) =>
      store().transaction(() => {
        for (let at = 0; at < count; at++) {
          events.append(it.agent, [{ type: "message.delta", runId: "run_x", delta: "x".repeat(400_000) }]);
        }
      });
    say(10);
    await using slow = readEvents(
      new Response(hub.open({ agentId: it.agent, owner: "acct_a", after: 0, conversationId: null, runId: null }).body),
    );
    expect((await slow.next())?.id).toBe(1);
    say(50);
    const frames = await slow.rest();
    const seen = frames.at(-1)?.id ?? 0;
    expect(frames.map(({ id }) => id)).toEqual(Array.from({ length: seen }, (_, index) => index + 1));
    expect(seen).toBeLessThan(firstId() - 1);
    expect((await it.events(seen)).response.status).toBe(410);
    hub.endAll();
  });
});
