import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { newId } from "../../src/lib/id.ts";
import { MAX_WAITING } from "../../src/messages/runs/parking.ts";
import type { Runs } from "../../src/messages/runs/runs.ts";
import { type AskingTool, askingTool, scriptedTool } from "../support/scripted-tools.ts";
import { type Conversation, kindsOf, shownText, startConversation } from "./conversation.ts";

let it: Conversation;
let send: AskingTool;
let look: AskingTool;
let log: string[];
beforeAll(async () => {
  send = askingTool("send", "outside");
  look = askingTool("look", "nothing");
  const read = scriptedTool("read", "nothing", async ({ key }) => {
    log.push(key);
    return `read ${key}`;
  });
  it = await startConversation({}, undefined, [send.tool, look.tool, read]);
  it.when("hang", { kind: "hang" });
});
afterAll(() => it.stop());
beforeEach(() => {
  log = [];
  for (const { asked, acted } of [send, look]) {
    asked.clear();
    acted.length = 0;
  }
  return it.begin();
});

type Call = [name: string, key: string];
const callsOf = (calls: Call[]) => calls.map(([name, key]) => ({ id: `call_${key}`, name, arguments: { key } }));
/** The model answers with these calls, and then with "Done.". */
function asksFor(text: string, ...calls: Call[]): void {
  const usage = { prompt_tokens: 12, completion_tokens: 3 };
  it.when(text, { kind: "tools", text: "Wait. ", calls: callsOf(calls) }, { kind: "text", tokens: ["Done."], usage });
}
const waitOf = (key: string): string => (send.asked.get(key) ?? look.asked.get(key))?.id ?? expect.unreachable();
const decide = (...decision: Parameters<Runs["resume"]>): boolean =>
  it.server.foundation.store.transaction(() => it.server.app.runs.resume(...decision));
const DENIED = { output: "Denied.", isError: true };
const ofRun = async (kind: string, runId: string) =>
  (await it.until(kind, runId)).filter(({ data }) => data.runId === runId);
// biome-ignore lint/suspicious/noExplicitAny: the request's own shape
const isAbout = (text: string) => (message: any) => message.role === "user" && message.content === text;
/** The tool results in the model's last request of the run for this message. */
const answers = (text: string) =>
  it.mock.requests
    .findLast(({ body }) => body.messages.some(isAbout(text)))
    ?.body.messages.filter(({ role }: { role: string }) => role === "tool")
    .map(({ content }: { content: string }) => content);
/** The agent's log up to this event is no longer kept. */
function dropEvents(last: number): void {
  const { store } = it.server.foundation;
  store.transaction(() => {
    store.sqlite.run("DELETE FROM events WHERE agent_id = ? AND event_id <= ?", [it.agent, last]);
    store.sqlite.run("UPDATE agents SET pruned_event_id = ? WHERE agent_id = ?", [last, it.agent]);
  });
}
const conversation = async (): Promise<string> =>
  (await it.person.ask("POST", it.at("/conversations"), {})).body.conversationId;
const queueIn = async (conversationId: string, message: string, body: object = {}): Promise<string> =>
  (await it.send(message, { conversationId, ...body }, { Prefer: "respond-async" })).body.runId;

describe("a run that waits", () => {
  test("says what for, and continues where it was once its call may go ahead", async () => {
    asksFor("mail it", ["send", "a"]);
    const pending = it.send("mail it");
    const stream = await it.events(0);
    const shown = await stream.until(({ event }) => event === "run.waiting");
    const { runId, calls } = shown.at(-1)?.data ?? {};
    const waitingFor = waitOf("a");
    expect(calls).toEqual([{ toolCallId: "call_a", name: "send", waitsFor: { kind: "approval", id: waitingFor } }]);
    const used = { promptTokens: 9, completionTokens: 7 };
    expect((await it.run(runId)).body).toMatchObject({
      status: "waiting",
      waitingFor,
      steps: 1,
      finishedAt: null,
      usage: used,
    });
    expect((await it.person.ask("GET", it.at("/runs?status=waiting"))).body.data).toMatchObject([{ runId }]);
    expect(send.acted).toEqual([]);

    expect(decide(runId, waitingFor, "go ahead")).toBe(true);
    const { status, body } = await pending;
    expect([status, body.message, body.finishReason]).toEqual([200, "Wait. \n\nDone.", "stop"]);
    expect(body.usage).toMatchObject({ promptTokens: 21, completionTokens: 10 });
    expect(send.acted).toEqual(["a"]);
    expect(answers("mail it")).toEqual(["send a"]);
    expect((await it.run(runId)).body).toMatchObject({ status: "completed", waitingFor: null, steps: 2 });
    const frames = await stream.until(({ event }) => event === "run.completed");
    expect(kindsOf(frames)).toEqual([
      ...["run.queued", "run.started", "message.delta", "tool.started", "run.waiting", "approval.requested"],
      ...["run.resumed", "tool.started", "tool.completed", "message.delta", "message.completed", "run.completed"],
    ]);
    expect(shownText(frames)).toBe("Wait. \n\nDone.");
    await stream.close();
    const { waiting, resumed } = { waiting: frames[3], resumed: frames[7] };
    expect(resumed?.data.input).toEqual(waiting?.data.input);
  });

  test("continues with a result in place of the call, which is then not made", async () => {
    asksFor("mail it", ["send", "a"]);
    await using stream = await it.stream("mail it");
    const [queued] = await stream.until(({ event }) => event === "run.waiting");
    expect(decide(queued?.data.runId, waitOf("a"), DENIED)).toBe(true);
    const frames = await stream.rest();
    expect(kindsOf(frames).at(-1)).toBe("run.completed");
    expect(kindsOf(frames).slice(4, 8)).toEqual([
      ...["run.waiting", "approval.requested", "tool.completed", "run.resumed"],
    ]);
    expect(frames[6]?.data).toMatchObject({ toolCallId: "call_a", name: "send", ...DENIED });
    expect([answers("mail it"), send.acted]).toEqual([["Denied."], []]);
  });

  test("is decided on once: repeated, late or somebody else's decisions change nothing", async () => {
    asksFor("mail it", ["send", "a"]);
    const runId = await it.queue("mail it");
    await it.until("run.waiting", runId);
    expect(decide(newId("run"), waitOf("a"), "go ahead")).toBe(false);
    expect(decide(runId, newId("appr"), "go ahead")).toBe(false);
    expect(decide(runId, waitOf("a"), "go ahead")).toBe(true);
    expect(decide(runId, waitOf("a"), DENIED)).toBe(false);
    await it.until("run.completed", runId);
    expect(decide(runId, waitOf("a"), DENIED)).toBe(false);
    expect([send.acted, answers("mail it")]).toEqual([["a"], ["send a"]]);
    expect((await it.run(runId)).body.status).toBe("completed");
  });

  test("makes the calls after a waiting one later, in their turn", async () => {
    asksFor("three", ["read", "a"], ["send", "b"], ["read", "c"], ["send", "d"]);
    const runId = await it.queue("three");
    await it.until("run.waiting", runId);
    expect([log, [...send.asked.keys()]]).toEqual([["a"], ["b"]]);
    decide(runId, waitOf("b"), DENIED);
    await it.until("run.waiting", runId, ({ data }) => data.calls[0].toolCallId === "call_d");
    expect([log, [...send.asked.keys()]]).toEqual([
      ["a", "c"],
      ["b", "d"],
    ]);
    decide(runId, waitOf("d"), "go ahead");
    await it.until("run.completed", runId);
    expect([answers("three"), send.acted]).toEqual([["read a", "Denied.", "read c", "send d"], ["d"]]);
  });

  test("waits for several calls that change nothing at once, and continues when all are decided on", async () => {
    asksFor("four", ["look", "a"], ["read", "b"], ["look", "c"], ["read", "d"]);
    const runId = await it.queue("four");
    const shown = await ofRun("run.waiting", runId);
    expect(shown.at(-1)?.data.calls.map(({ toolCallId }: { toolCallId: string }) => toolCallId)).toEqual([
      "call_a",
      "call_c",
    ]);
    expect(log.toSorted()).toEqual(["b", "d"]);
    expect((await it.run(runId)).body.waitingFor).toBe(waitOf("a"));
    decide(runId, waitOf("a"), "go ahead");
    expect((await it.run(runId)).body).toMatchObject({ status: "waiting", waitingFor: waitOf("c") });
    expect(look.acted).toEqual([]);
    decide(runId, waitOf("c"), { output: "c is known", isError: false });
    await it.until("run.completed", runId);
    expect([look.acted, answers("four")]).toEqual([["a"], ["look a", "read b", "c is known", "read d"]]);
    expect(log).toHaveLength(2);
  });

  test("keeps its conversation's turn, but none of the agent's places", async () => {
    asksFor("mail it", ["send", "a"]);
    const first = await it.queue("mail it");
    await it.until("run.waiting", first);
    const behind = await it.queue("behind");
    const others = await Promise.all(Array.from({ length: 4 }, conversation));
    const runs: string[] = [];
    for (const id of others) runs.push(await queueIn(id, "hang"));
    for (const runId of runs) await it.until("run.started", runId);
    expect((await it.run(behind)).body.status).toBe("queued");
    expect((await it.send("no", { whileRunning: "reject" })).status).toBe(409);
    // When resumed, it needs a place like any other, and comes before queued runs.
    const fifth = await queueIn(await conversation(), "fifth");
    decide(first, waitOf("a"), "go ahead");
    expect((await it.run(first)).body.status).toBe("running");
    await it.cancel(runs[0] ?? "");
    const course = (await it.until("run.completed", fifth)).map(({ event, data }) => [event, data.runId]);
    const at = (kind: string, runId: string) => course.findIndex(([event, id]) => event === kind && id === runId);
    expect(at("run.completed", first)).toBeLessThan(at("run.started", behind));
    expect(at("run.started", behind)).toBeLessThan(at("run.started", fifth));
    for (const runId of runs) await it.cancel(runId);
  });

  test("does not count among the messages that may wait for the agent", async () => {
    asksFor("mail it", ["send", "a"]);
    const first = await it.queue("mail it");
    await it.until("run.waiting", first);
    for (let at = 0; at < 32; at++) await it.queue("behind");
    expect((await it.send("one more")).status).toBe(429);
    // This one does not have to wait.
    expect((await it.send("hi", { conversationId: await conversation() })).status).toBe(200);
    expect((await it.send("instead", { whileRunning: "interrupt" })).status).toBe(200);
    expect((await it.run(first)).body.status).toBe("cancelled");
  });

  test("is refused to the model if as many of the agent's runs wait as may", async () => {
    const runs: string[] = [];
    for (let at = 0; at < MAX_WAITING; at++) {
      asksFor(`mail ${at}`, ["send", `key ${at}`]);
      runs.push(await queueIn(await conversation(), `mail ${at}`));
    }
    for (const runId of runs) await it.until("run.waiting", runId);
    asksFor("mail it", ["send", "one more"]);
    const { status, body } = await it.send("mail it");
    expect([status, body.message]).toEqual([200, "Wait. \n\nDone."]);
    expect(answers("mail it")).toEqual([
      expect.stringContaining(`${MAX_WAITING} runs of this agent are already waiting`),
    ]);
    const own = (await it.until("run.completed", body.runId)).filter(({ data }) => data.runId === body.runId);
    expect(kindsOf(own)).not.toContain("run.waiting");
    expect(decide(body.runId, waitOf("one more"), "go ahead")).toBe(false);
    expect(send.acted).toEqual([]);
  });

  test("continues although the log has dropped what it did before", async () => {
    asksFor("mail it", ["read", "a"], ["send", "b"]);
    const runId = await it.queue("mail it");
    const last = (await it.until("run.waiting", runId)).at(-1)?.id ?? 0;
    dropEvents(last);
    decide(runId, waitOf("b"), "go ahead");
    await it.until("run.completed", runId);
    expect([answers("mail it"), log, send.acted]).toEqual([["read a", "send b"], ["a"], ["b"]]);
    const { data } = (await it.person.ask("GET", it.at("/messages"))).body;
    expect(data.at(-1).message).toBe("Wait. \n\nDone.");
    const { sqlite } = it.server.foundation.store;
    const row = sqlite.query("SELECT journal, journal_up_to FROM runs WHERE run_id = ?").get(runId);
    expect(row).toEqual({ journal: null, journal_up_to: null });
  });
});

describe("while a run waits", () => {
  const beginWaiting = async (text = "mail it"): Promise<string> => {
    asksFor(text, ["send", "a"]);
    const runId = await it.queue(text);
    await it.until("run.waiting", runId);
    return runId;
  };

  test("a restart changes nothing, and it can be decided on afterwards", async () => {
    const runId = await beginWaiting();
    const behind = await it.queue("behind");
    await it.server.restart();
    expect((await it.run(runId)).body).toMatchObject({ status: "waiting", waitingFor: waitOf("a") });
    expect((await it.run(behind)).body.status).toBe("queued");
    decide(runId, waitOf("a"), "go ahead");
    await it.until("run.completed", behind);
    const frames = await ofRun("run.completed", runId);
    expect(kindsOf(frames)).not.toContain("run.restarted");
    expect([shownText(frames), send.acted]).toEqual(["Wait. \n\nDone.", ["a"]]);
  });

  test("a restart after the decision, and before the run has a place again, keeps the decision", async () => {
    const runId = await beginWaiting();
    const others: string[] = [];
    for (let at = 0; at < 4; at++) others.push(await queueIn(await conversation(), "hang"));
    for (const other of others) await it.until("run.started", other);
    decide(runId, waitOf("a"), "go ahead");
    expect([(await it.run(runId)).body.status, send.acted]).toEqual(["running", []]);
    await it.server.restart();
    const frames = await ofRun("run.completed", runId);
    expect(kindsOf(frames)).not.toContain("run.restarted");
    expect([shownText(frames), send.acted, answers("mail it")]).toEqual(["Wait. \n\nDone.", ["a"], ["send a"]]);
    for (const other of others) await it.cancel(other);
  });

  test("a restart after the call was made does not make it again, and shows the text again", async () => {
    const runId = await beginWaiting();
    it.when("mail it", { kind: "hang" });
    const asked = it.modelAsked("mail it", 1);
    decide(runId, waitOf("a"), "go ahead");
    await asked;
    it.when("mail it", { kind: "text", tokens: ["Done."] });
    await it.server.restart();
    const frames = await ofRun("run.completed", runId);
    expect(kindsOf(frames).filter((kind) => kind === "run.restarted")).toHaveLength(1);
    expect([shownText(frames), send.acted, answers("mail it")]).toEqual(["Wait. \n\nDone.", ["a"], ["send a"]]);
  });

  test("it can be cancelled, keeps its text, and no decision resumes it", async () => {
    asksFor("mail it", ["send", "a"]);
    const pending = it.send("mail it");
    const { runId } = (await it.until("run.waiting")).at(-1)?.data ?? {};
    const behind = await it.queue("behind");
    expect((await it.cancel(runId)).body).toMatchObject({ status: "cancelled", waitingFor: null });
    expect((await pending).body).toMatchObject({ message: "Wait. ", finishReason: "cancelled" });
    expect(decide(runId, waitOf("a"), "go ahead")).toBe(false);
    await it.until("run.completed", behind);
    expect(send.acted).toEqual([]);
  });

  test("a cancelled one keeps its text although the log has dropped all that came before", async () => {
    const runId = await beginWaiting();
    await it.person.ask("PATCH", it.at(""), { displayName: "later" });
    dropEvents((await it.until("agent.updated")).at(-1)?.id ?? 0);
    expect((await it.cancel(runId)).body.status).toBe("cancelled");
    const { data } = (await it.person.ask("GET", it.at("/messages"))).body;
    expect(data.at(-1)).toMatchObject({ message: "Wait. ", finishReason: "cancelled" });
  });

  test("a message that interrupts cancels it", async () => {
    const runId = await beginWaiting();
    const { status } = await it.send("instead", { whileRunning: "interrupt" });
    expect([status, (await it.run(runId)).body.status]).toEqual([200, "cancelled"]);
  });

  test("stopping the instance cancels it, and starting it again does not resume it", async () => {
    const runId = await beginWaiting();
    await it.person.ask("POST", `/v1/instances/${it.instance}/stop`);
    await it.server.app.settled();
    expect((await it.run(runId)).body.status).toBe("cancelled");
    await it.person.ask("POST", `/v1/instances/${it.instance}/start`);
    expect(decide(runId, waitOf("a"), "go ahead")).toBe(false);
    expect((await it.send("hi")).status).toBe(200);
    expect(send.acted).toEqual([]);
  });

  test("clearing or deleting its conversation, and deleting its agent, answer pending requests", async () => {
    const other = await conversation();
    for (const gone of [it.at("/messages"), it.at(`/conversations/${other}`), it.at("")]) {
      const conversationId = gone.endsWith(other) ? other : undefined;
      asksFor(gone, ["send", gone]);
      const pending = it.send(gone, { conversationId });
      await it.until("run.waiting", undefined, () => send.asked.has(gone));
      expect((await it.person.ask("DELETE", gone)).status).toBe(200);
      expect((await pending).body).toMatchObject({ message: "Wait. ", finishReason: "cancelled" });
    }
    await it.server.app.settled();
    expect(send.acted).toEqual([]);
  });
});

test("a listener can create an approval when a run waits, and resume one run when another ends", async () => {
  const store = it.server.foundation.store;
  const waits = new Map<string, string>();
  const order: string[] = [];
  it.server.app.runs.listen({
    waiting(run, calls) {
      order.push(`${run.status} ${calls.length}`);
      expect(store.sqlite.inTransaction).toBe(true);
      for (const { call, waitsFor } of calls) waits.set(JSON.parse(call.input).key, `${run.runId} ${waitsFor.id}`);
    },
    ended({ run, reply }) {
      const [runId = "", waitId = ""] = (waits.get(run.conversationId) ?? "").split(" ");
      order.push(
        `${run.status} ${it.server.app.runs.resume(runId, waitId, { output: reply?.message ?? "", isError: false })}`,
      );
    },
  });
  const other = await conversation();
  asksFor("ask the other", ["send", other]);
  const pending = it.send("ask the other");
  await it.until("run.waiting");
  expect(order).toEqual(["waiting 1"]);
  await it.send("hi", { conversationId: other });
  expect((await pending).body.message).toBe("Wait. \n\nDone.");
  expect(order).toEqual(["waiting 1", "completed true", "completed false"]);
  expect(answers("ask the other")).toEqual(["Hello, world"]);
});
