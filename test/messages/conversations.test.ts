import { afterAll, beforeAll, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { type Conversation, kindsOf, readEvents, startConversation } from "./conversation.ts";

let it: Conversation;
beforeAll(async () => {
  it = await startConversation();
});
afterAll(() => it.stop());
beforeEach(async () => {
  await it.begin();
  it.when("hang", { kind: "hang" });
});

const ask = (method: string, path: string, body?: object, headers?: Record<string, string>) =>
  it.person.ask(method, it.at(path), body, headers);
const idOfDefault = () => it.agent.replace("agt_", "conv_");
const make = async (title?: string): Promise<string> =>
  (await ask("POST", "/conversations", { title })).body.conversationId;
const say = async (conversationId: string, message: string) =>
  (await ask("POST", "/messages", { message, conversationId })).body;
const queue = async (conversationId: string, message: string, more: object = {}): Promise<string> =>
  (await ask("POST", "/messages", { message, conversationId, ...more }, { Prefer: "respond-async" })).body.runId;
const textsOf = async (conversationId: string): Promise<string[]> =>
  (await ask("GET", `/messages?conversationId=${conversationId}`)).body.data.map(
    (one: { message: string }) => one.message,
  );
const listed = async (query = ""): Promise<string[]> =>
  (await ask("GET", `/conversations${query}`)).body.data.map((one: { conversationId: string }) => one.conversationId);
const statusOf = async (runId: string): Promise<string> => (await it.run(runId)).body.status;
const follow = async (query: string, headers?: Record<string, string>) =>
  readEvents(await it.person.fetch("GET", it.at(`/events?${query}`), undefined, headers));
const one = <T>(sql: string, ...values: string[]): T =>
  Object.values(it.server.foundation.store.sqlite.query<Record<string, T>, string[]>(sql).get(...values) ?? {})[0] as T;

describe("an agent's conversations", () => {
  test("include a default one from the start, which is used where none is named", async () => {
    const answer = (await it.send("hi")).body;
    const { data } = (await ask("GET", "/conversations")).body;
    expect(data).toEqual([
      {
        conversationId: idOfDefault(),
        agentId: it.agent,
        title: null,
        isDefault: true,
        origin: { type: "user", id: null },
        messageCount: 2,
        createdAt: expect.any(String),
        updatedAt: answer.createdAt,
      },
    ]);
    expect((await ask("GET", `/conversations/${idOfDefault()}`)).body).toEqual(data[0]);
    expect(answer.conversationId).toBe(idOfDefault());
    expect((await it.run(answer.runId)).body.conversationId).toBe(idOfDefault());
    expect(await textsOf(idOfDefault())).toEqual(["hi", "Hello, world"]);
  });

  test("are created, titled, untitled and found, and every invalid request is refused with a message", async () => {
    const made = await ask("POST", "/conversations", { title: "  Plans  " });
    expect([made.status, made.body.title, made.body.isDefault, made.body.messageCount]).toEqual([
      201,
      "Plans",
      false,
      0,
    ]);
    expect((await ask("POST", "/conversations")).status).toBe(201);
    const path = `/conversations/${made.body.conversationId}`;
    expect((await ask("PATCH", path, { title: "Trips" })).body.title).toBe("Trips");
    expect((await ask("PATCH", path, { title: null })).body.title).toBeNull();
    for (const [method, to, body] of [
      ["PATCH", path, {}],
      ["PATCH", path, { title: "" }],
      ["POST", "/conversations", { title: "x".repeat(201) }],
      ["GET", "/conversations?origin=nobody", undefined],
      ["GET", "/runs?status=lost", undefined],
      ["POST", "/messages", { message: "hi", whileRunning: "wait" }],
    ] as const) {
      expect([to, body, (await ask(method, to, body)).status]).toEqual([to, body, 400]);
    }
  });

  test("are 404 wherever they are named if unknown, malformed or another agent's", async () => {
    const foreign = idOfDefault();
    await it.begin();
    for (const id of [foreign, `conv_${"0".repeat(32)}`, "conv_x", ""]) {
      const { messageId } = await say(idOfDefault(), "hi");
      const answers = await Promise.all([
        ask("GET", `/conversations/${id === "" ? "x" : id}`),
        ask("PATCH", `/conversations/${id || "x"}`, { title: "x" }),
        ask("DELETE", `/conversations/${id || "x"}`),
        ask("POST", `/conversations/${id || "x"}/fork`, { messageId }),
        ask("POST", "/messages", { message: "hi", conversationId: id }),
        ask("GET", `/messages?conversationId=${id}`),
        ask("DELETE", `/messages?conversationId=${id}`),
        ask("GET", `/runs?conversationId=${id}`),
        ask("GET", `/events?conversationId=${id}`),
      ]);
      expect([id, answers.map(({ status }) => status)]).toEqual([id, answers.map(() => 404)]);
    }
  });

  test("are listed by their latest activity, page by page, and by their origin", async () => {
    const ids = [await make("a"), await make("b"), await make("c")];
    await say(ids[0] ?? "", "hi");
    const order = [ids[0], ids[2], ids[1], idOfDefault()] as string[];
    expect(await listed()).toEqual(order);
    expect(await listed("?origin=user")).toEqual(order);
    expect(await listed("?origin=schedule")).toEqual([]);
    const seen: string[] = [];
    for (let cursor = ""; ; ) {
      const { body } = await ask("GET", `/conversations?limit=1${cursor}`);
      seen.push(...body.data.map((row: { conversationId: string }) => row.conversationId));
      if (!body.hasMore) break;
      cursor = `&after=${body.nextCursor}`;
      const other = await ask("GET", `/conversations?origin=user&limit=1${cursor}`);
      expect(other.status).toBe(400);
    }
    expect(seen).toEqual(order);
  });

  test("have their runs in one list, newest first, page by page and by status", async () => {
    const other = await make();
    const asked: string[] = [];
    for (const id of [idOfDefault(), other, other, idOfDefault(), other]) asked.unshift((await say(id, "hi")).runId);
    for (const query of ["", "&status=completed"]) {
      const seen: string[] = [];
      for (let cursor = ""; ; ) {
        const { body } = await ask("GET", `/runs?limit=2${query}${cursor}`);
        seen.push(...body.data.map((run: { runId: string }) => run.runId));
        if (!body.hasMore) break;
        cursor = `&after=${body.nextCursor}`;
      }
      expect(seen).toEqual(asked);
    }
    const inDefault = (await ask("GET", `/runs?conversationId=${idOfDefault()}`)).body.data;
    expect(inDefault.map((run: { runId: string }) => run.runId)).toEqual([asked[1], asked[4]]);
  });

  test("are at most a thousand besides the default one, and deleting one makes room", async () => {
    const { store } = it.server.foundation;
    const kept = await make();
    store.transaction(() => {
      const insert = store.sqlite.prepare(
        "INSERT INTO conversations (conversation_id, agent_id, updated_at, created_at) VALUES (?, ?, 0, 0)",
      );
      for (let at = 1; at < 1_000; at++)
        insert.run(`conv_${String(at).padStart(32, "0")}${it.agent.slice(-4)}`, it.agent);
    });
    const { messageId } = await say(kept, "hi");
    for (const refused of [
      await ask("POST", "/conversations", {}),
      await ask("POST", `/conversations/${kept}/fork`, { messageId }),
    ]) {
      expect([refused.status, refused.body.error.code]).toEqual([409, "conflict"]);
      expect(refused.body.error.message).toContain("1000");
    }
    await ask("DELETE", `/conversations/${kept}`);
    expect((await ask("POST", "/conversations", {})).status).toBe(201);
    await ask("DELETE", "");
    await it.server.app.settled();
    expect(one<number>("SELECT count(*) FROM conversations WHERE agent_id = ?", it.agent)).toBe(0);
  });
});

describe("a conversation", () => {
  test("shares nothing with the others: neither history, prompt, runs nor events", async () => {
    const [first, second] = [await make("one"), await make("two")];
    await say(first, "my name is Grace");
    const { runId } = await say(second, "who am I?");
    expect(await textsOf(second)).toEqual(["who am I?", "Hello, world"]);
    expect(await textsOf(idOfDefault())).toEqual([]);
    expect(JSON.stringify(it.mock.requests.at(-1)?.body.messages)).not.toContain("Grace");
    const runs = (await ask("GET", `/runs?conversationId=${second}`)).body.data;
    expect(runs).toHaveLength(1);
    expect(runs[0]).toMatchObject({ runId, conversationId: second, status: "completed", waitingFor: null });
    expect(runs[0]).toMatchObject({ origin: { type: "user", id: null }, model: "openai:mock" });
    expect(runs[0].usage).toEqual({
      promptTokens: 12,
      completionTokens: 3,
      totalTokens: 15,
      cachedTokens: 0,
      cost: null,
    });
    const all = (await ask("GET", "/runs?limit=1")).body;
    expect([all.data[0].runId, all.hasMore]).toEqual([runId, true]);
    const next = (await ask("GET", `/runs?limit=1&after=${all.nextCursor}`)).body;
    expect([next.data[0].conversationId, next.hasMore]).toEqual([first, false]);
    expect((await ask("GET", "/runs?status=failed")).body.data).toEqual([]);
    expect((await ask("GET", "/runs?status=completed")).body.data).toHaveLength(2);
  });

  test("has its own events, which can be filtered live and from the log, after any cursor", async () => {
    const [first, second] = [await make(), await make()];
    await using live = await follow(`conversationId=${second}`);
    await using whole = await follow("after=0");
    await say(first, "a");
    await say(second, "b");
    await ask("PATCH", "", { name: "Renamed" });
    await say(first, "c");
    const { runId } = await say(second, "d");
    const isLast = ({ event, data }: { event: string; data: { runId?: string } }) =>
      event === "run.completed" && data.runId === runId;
    const frames = await live.until(isLast);
    const all = await whole.until(isLast);
    for (const { data } of all) expect("conversationId" in data).toBe("runId" in data);
    const own = all.filter(({ data }) => data.conversationId === second);
    expect(own.length).toBeLessThan(all.length);
    expect(frames).toEqual(own);
    await using again = await follow(`conversationId=${second}&after=0`);
    expect(await again.until(isLast)).toEqual(own);
    for (const after of [own[2]?.id ?? 0, all.findLast(({ data }) => data.conversationId === first)?.id ?? 0]) {
      await using behind = await follow(`conversationId=${second}`, { "Last-Event-ID": String(after) });
      expect(await behind.until(isLast)).toEqual(own.filter(({ id }) => id > after));
    }
    await using ofRun = await follow(`conversationId=${second}&runId=${runId}`);
    expect(kindsOf(await ofRun.rest()).at(-1)).toBe("run.completed");
    expect((await ask("GET", `/events?conversationId=${first}&runId=${runId}`)).status).toBe(404);
  });

  test("is cleared at once and from the disk, while others continue", async () => {
    const [first, second] = [await make(), await make()];
    await say(first, "secret");
    const kept = await say(second, "kept");
    const pending = say(first, "hang");
    await using events = await follow(`conversationId=${first}&after=0`);
    await events.until(({ event, data }) => event === "run.started" && data.runId !== undefined && data.id > 6);
    const { body } = await ask("DELETE", `/messages?conversationId=${first}`);
    expect(body).toEqual({ agentId: it.agent, deleted: true });
    expect((await pending).finishReason).toBe("cancelled");
    expect(await textsOf(first)).toEqual([]);
    expect((await ask("GET", `/conversations/${first}`)).body.messageCount).toBe(0);
    await say(first, "fresh");
    expect((await ask("GET", `/runs?conversationId=${first}`)).body.data.length).toBeGreaterThan(0);
    await it.server.app.settled();
    expect(await textsOf(first)).toEqual(["fresh", "Hello, world"]);
    expect((await ask("GET", `/conversations/${first}`)).body.messageCount).toBe(2);
    expect(await textsOf(second)).toEqual(["kept", "Hello, world"]);
    expect(await statusOf(kept.runId)).toBe("completed");
    expect(one<number>("SELECT count(*) FROM events WHERE conversation_id = ? AND data LIKE '%secret%'", first)).toBe(
      0,
    );
    expect(one<number>("SELECT cleared_event_id FROM conversations WHERE conversation_id = ?", first)).toBe(0);
    await using log = await follow("after=0");
    const { runId } = await say(second, "last");
    const frames = await log.until(({ event, data }) => event === "run.completed" && data.runId === runId);
    expect(frames.filter(({ data }) => data.runId === kept.runId).map(({ event }) => event)).toContain("message.delta");
  });
});

test("a request whose run is cancelled and cleared before the disk has its message is answered all the same", async () => {
  const { store } = it.server.foundation;
  const { commitSoon } = store;
  const synced = Promise.withResolvers<void>();
  const slowDisk = spyOn(store, "commitSoon").mockImplementation(async (work, durability, owner) => {
    const result = await commitSoon(work, durability, owner);
    if (durability === "full") await synced.promise;
    return result;
  });
  await using events = await follow("after=0");
  const pending = say(idOfDefault(), "hang");
  await events.until(({ event }) => event === "run.started");
  slowDisk.mockRestore();
  expect((await ask("DELETE", "/messages")).status).toBe(200);
  await it.server.app.settled();
  synced.resolve();
  expect((await pending).finishReason).toBe("cancelled");
});

describe("deleting a conversation", () => {
  test("cancels its runs, ends its streams, hides it at once and removes it; the default one stays", async () => {
    const gone = await make("gone");
    await using events = await follow(`conversationId=${gone}&after=0`);
    const pending = say(gone, "hang");
    await events.until(({ event }) => event === "run.started");
    const waiting = await queue(gone, "never answered");
    expect((await ask("DELETE", `/conversations/${gone}`)).body).toEqual({ conversationId: gone, deleted: true });
    expect((await pending).finishReason).toBe("cancelled");
    expect(kindsOf(await events.rest()).filter((kind) => kind === "run.cancelled")).toHaveLength(2);
    expect((await ask("DELETE", `/conversations/${gone}`)).status).toBe(404);
    expect((await it.run(waiting)).status).toBe(404);
    expect(await listed()).toEqual([idOfDefault()]);
    await it.server.app.settled();
    for (const table of ["conversations", "messages", "runs"]) {
      expect([table, one<number>(`SELECT count(*) FROM ${table} WHERE conversation_id = ?`, gone)]).toEqual([table, 0]);
    }
    const refused = await ask("DELETE", `/conversations/${idOfDefault()}`);
    expect([refused.status, refused.body.error.code]).toEqual([409, "conflict"]);
    expect((await it.send("still here")).status).toBe(200);
  });

  test("continues after a restart, and frees the space of its messages", async () => {
    const used = () => one<number>("SELECT history_bytes FROM account_usage");
    const before = used();
    const gone = await make();
    await say(gone, "x".repeat(10_000));
    expect(used()).toBeGreaterThan(before + 10_000);
    await ask("DELETE", `/conversations/${gone}`);
    await it.server.restart();
    await it.server.app.settled();
    expect(used()).toBe(before);
  });
});

describe("runs", () => {
  test("run one at a time in a conversation and four at a time in an agent; the next starts when one of them ends", async () => {
    const ids = await Promise.all(Array.from({ length: 5 }, () => make()));
    const runs: string[] = [];
    for (const id of ids) runs.push(await queue(id, "hang"));
    const behind = await queue(ids[0] ?? "", "second of the first");
    for (const runId of runs.slice(0, 4)) await it.until("run.started", runId);
    expect(await Promise.all([...runs, behind].map(statusOf))).toEqual([
      ...Array(4).fill("running"),
      "queued",
      "queued",
    ]);
    await it.cancel(runs[1] ?? "");
    await it.until("run.started", runs[4]);
    expect(await statusOf(behind)).toBe("queued");
    await it.cancel(runs[0] ?? "");
    await it.until("run.completed", behind);
    for (const runId of runs) await it.cancel(runId);
  });

  test("of an agent may wait: thirty-two at most, in all its conversations together", async () => {
    const ids = await Promise.all(Array.from({ length: 4 }, () => make()));
    for (const id of ids) await queue(id, "hang");
    for (let at = 0; at < 32; at++) expect(await queue(ids[at % 4] ?? "", "wait")).toStartWith("run_");
    for (const conversationId of [...ids, idOfDefault()]) {
      const refused = await ask("POST", "/messages", { message: "one more", conversationId });
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([
        429,
        expect.stringMatching(/^([5-9]|1[0-5])$/),
      ]);
    }
    for (const id of ids) await ask("DELETE", `/conversations/${id}`);
    expect((await it.send("hi")).status).toBe(200);
  });

  test("are queued, interrupt the current one or are rejected, as whileRunning says", async () => {
    const id = await make();
    const first = await queue(id, "hang");
    await it.until("run.started", first);
    const rejected = await ask("POST", "/messages", { message: "no", conversationId: id, whileRunning: "reject" });
    expect([rejected.status, rejected.body.error.code]).toEqual([409, "conflict"]);
    expect(rejected.body.error.message).toContain(first);
    expect(await textsOf(id)).toEqual(["hang"]);
    const queued = await queue(id, "b", { whileRunning: "queue" });
    const last = await queue(id, "c", { whileRunning: "interrupt" });
    await it.until("run.completed", last);
    expect([await statusOf(first), await statusOf(queued)]).toEqual(["cancelled", "completed"]);
    for (const whileRunning of ["reject", "interrupt", "queue"]) {
      const { body } = await ask("POST", "/messages", { message: "hi", conversationId: id, whileRunning });
      expect(body.finishReason).toBe("stop");
    }
  });

  test("of four conversations continue after a restart, each from its own events, and then queued ones run", async () => {
    const ids = await Promise.all(Array.from({ length: 4 }, () => make()));
    const texts = ids.map((_, at) => `begin ${at}`);
    for (const text of texts) {
      it.when(
        text,
        { kind: "text", tokens: ["Once", " upon"], delayMs: 1, ending: "hang" },
        { kind: "text", tokens: [text] },
      );
    }
    const runs: string[] = [];
    for (const [at, id] of ids.entries()) runs.push(await queue(id, texts[at] ?? ""));
    const behind: string[] = [];
    for (const id of [...ids, idOfDefault()]) behind.push(await queue(id, "next"));
    for (const runId of runs) await it.until("message.delta", runId);
    await it.server.restart();
    for (const runId of [...runs, ...behind]) await it.until("run.completed", runId);
    for (const [at, id] of ids.entries()) {
      expect(await textsOf(id)).toEqual([texts[at] ?? "", "next", texts[at] ?? "", "Hello, world"]);
      await using events = await follow(`conversationId=${id}&after=0`);
      const kinds = kindsOf(
        await events.until(({ event, data }) => event === "run.completed" && data.runId === behind[at]),
      );
      expect(kinds.filter((kind) => kind === "run.restarted")).toHaveLength(1);
      // One after the other: the second begins when the first has ended.
      expect(kinds.filter((kind) => /^run\.(started|completed)$/.test(kind))).toEqual([
        "run.started",
        "run.completed",
        "run.started",
        "run.completed",
      ]);
    }
  });
});
