import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { systemClock } from "../../src/lib/clock.ts";
import type { AgentEvent } from "../../src/messages/events/event.ts";
import { createEventLog, type EventLog } from "../../src/messages/events/event-log.ts";
import { KEPT_BYTES } from "../../src/messages/events/pruning.ts";
import { readJournal, UNKNOWN_OUTCOME } from "../../src/messages/runs/journal.ts";
import type { Run, StoredEvent } from "../../src/messages/schema.ts";
import { type Conversation, type Frame, kindsOf, shownText, startConversation } from "./conversation.ts";

const RUN = { runId: "run_a", agentId: "agt_a", firstEventId: 3 } as Run;

/** A log with these events of the run, and another run's between them. */
function logOf(told: [type: string, own?: object][]): Pick<EventLog, "ofRun"> {
  const conversationId = "conv_a";
  const rows: StoredEvent[] = told.flatMap(([type, own = {}], at) => [
    {
      agentId: "agt_a",
      eventId: 3 + 2 * at,
      runId: "run_a",
      conversationId,
      type,
      data: JSON.stringify(own),
      createdAt: 0,
    },
    {
      agentId: "agt_a",
      eventId: 4 + 2 * at,
      runId: "run_b",
      conversationId,
      type: "run.queued",
      data: "{}",
      createdAt: 0,
    },
  ]);
  return {
    ofRun: ({ runId }, after, limit) =>
      rows.filter((row) => row.eventId > after && row.runId === runId).slice(0, limit),
  };
}
const journalOf = (...told: [type: string, own?: object][]) => readJournal(logOf(told), RUN) ?? expect.unreachable();
const delta = (text: string): [string, object] => ["message.delta", { delta: text }];
const started = (toolCallId: string, input: unknown = {}): [string, object] => [
  "tool.started",
  { toolCallId, name: "now", input },
];
const completed = (toolCallId: string, output: string): [string, object] => [
  "tool.completed",
  { toolCallId, name: "now", output, isError: false },
];
const call = (id: string, output: string, input = "{}") => ({
  id,
  name: "now",
  input,
  result: { output, isError: false },
});
const unknown = (id: string) => ({ ...call(id, ""), result: { output: UNKNOWN_OUTCOME, isError: true } });
const lost = (toolCallId: string): AgentEvent => ({
  ...{ type: "tool.completed", runId: "run_a", toolCallId, name: "now", output: UNKNOWN_OUTCOME, isError: true },
});
const notMade = (id: string) => ({ ...call(id, ""), result: null });

test("a run that had shown nothing has an empty journal", () => {
  expect(journalOf(["run.queued"], ["run.started"])).toEqual({
    shown: false,
    text: "",
    steps: [],
    continues: false,
    lost: [],
  });
  expect(journalOf(["run.started"], delta("Half"), ["run.restarted"])).toEqual({
    shown: false,
    text: "",
    steps: [],
    continues: false,
    lost: [],
  });
});

test("text that no tool follows is shown, but is not a step", () => {
  expect(journalOf(["run.started"], delta("Ha"), delta("lf"))).toEqual({
    shown: true,
    text: "Half",
    steps: [],
    continues: false,
    lost: [],
  });
});

test("a call without an outcome is unknown; those with one keep it", () => {
  const { steps, text } = journalOf(
    ["run.started"],
    delta("Look. "),
    started("a", { timeZone: "UTC" }),
    completed("a", "noon"),
    delta("And"),
    delta(" again. "),
    started("b"),
  );
  expect(text).toBe("Look. And again. ");
  expect(steps).toEqual([
    { text: "Look. ", calls: [call("a", "noon", '{"timeZone":"UTC"}')] },
    { text: "And again. ", calls: [unknown("b")] },
  ]);
});

test("a call without an outcome lacks its result in the log, until that says that it is unknown", () => {
  const told = [started("a"), started("b"), completed("b", "two")];
  expect(journalOf(...told).lost).toEqual([lost("a")]);
  const { lost: left, steps } = journalOf(...told, completed("a", UNKNOWN_OUTCOME), ["run.restarted"]);
  expect([left, steps[0]?.calls[0]?.result?.output]).toEqual([[], UNKNOWN_OUTCOME]);
});

test("parallel calls of one answer are one step", () => {
  const { steps } = journalOf(started("a"), started("b"), completed("b", "two"), completed("a", "one"), started("c"));
  expect(steps.map(({ calls }) => calls.map(({ id, result }) => `${id} ${result?.output}`))).toEqual([
    ["a one", "b two"],
    [`c ${UNKNOWN_OUTCOME}`],
  ]);
});

test("calls are kept apart if the server restarts their ids with each answer", () => {
  const { steps } = journalOf(started("call_0"), completed("call_0", "first"), started("call_0"));
  expect(steps.map(({ calls }) => calls[0]?.result?.output)).toEqual(["first", UNKNOWN_OUTCOME]);
  const both = journalOf(
    started("call_0"),
    completed("call_0", "first"),
    started("call_0"),
    completed("call_0", "2nd"),
  );
  expect(both.steps.map(({ calls }) => calls[0]?.result?.output)).toEqual(["first", "2nd"]);
});

/** Events in the current format, in which calls have their step. */
const startedIn = (step: number, toolCallId: string, ...following: string[]): [string, object] => [
  "tool.started",
  {
    ...started(toolCallId)[1],
    step,
    ...(following.length > 0 && { following: following.map((id) => started(id)[1]) }),
  },
];

test("sequential calls of one answer are one step, and it is known which were not made", () => {
  const told = [delta("Look. "), startedIn(1, "a", "b", "c"), completed("a", "1"), startedIn(1, "b")];
  expect(journalOf(...told).steps).toEqual([{ text: "Look. ", calls: [call("a", "1"), unknown("b"), notMade("c")] }]);
  const again = [["run.restarted"], delta("Look. "), startedIn(1, "c"), completed("c", "3")] as [string, object?][];
  const first = { text: "Look. ", calls: [call("a", "1"), unknown("b"), call("c", "3")] };
  expect(journalOf(...told, ...again).steps).toEqual([first]);
  const { steps } = journalOf(...told, ...again, delta("More. "), startedIn(2, "a", "b"));
  expect(steps).toEqual([first, { text: "More. ", calls: [unknown("a"), notMade("b")] }]);
});

test("calls of answers without text between them are separate steps, whatever the crash left open", () => {
  const { steps } = journalOf(
    startedIn(1, "call_0"),
    ["run.restarted"],
    startedIn(2, "call_0"),
    completed("call_0", "2"),
  );
  expect(steps).toEqual([
    { text: "", calls: [unknown("call_0")] },
    { text: "", calls: [call("call_0", "2")] },
  ]);
});

test("a run that began before calls carried their step continues after the steps that were counted then", () => {
  const old = [delta("One. "), started("a"), completed("a", "1"), started("b"), completed("b", "2")];
  const counted = [
    { text: "One. ", calls: [call("a", "1")] },
    { text: "", calls: [call("b", "2")] },
  ];
  expect(journalOf(...old).steps).toEqual(counted);
  const { steps } = journalOf(...old, ["run.restarted"], delta("One. "), delta("Three. "), startedIn(3, "a", "b"));
  expect(steps).toEqual([...counted, { text: "Three. ", calls: [unknown("a"), notMade("b")] }]);
});

test("a saved journal comes before the run's events since, and a call that may go ahead is made once", () => {
  const saved = () => ({
    upTo: 2,
    steps: [{ text: "Look. ", calls: [{ ...notMade("a"), goAhead: "appr_a" }, notMade("b")] }],
  });
  const since = (...told: [type: string, own?: object][]) => readJournal(logOf(told), RUN, saved());
  expect(since()).toEqual({ shown: false, text: "Look. ", steps: saved().steps, continues: true, lost: [] });
  expect(since(startedIn(1, "a"))).toEqual({
    shown: true,
    text: "Look. ",
    steps: [{ text: "Look. ", calls: [unknown("a"), notMade("b")] }],
    continues: false,
    lost: [lost("a")],
  });
  expect(since(startedIn(1, "a"), ["run.restarted"], delta("Look. "), startedIn(1, "b"), completed("b", "2"))).toEqual({
    shown: true,
    text: "Look. ",
    steps: [{ text: "Look. ", calls: [unknown("a"), call("b", "2")] }],
    continues: false,
    lost: [lost("a")],
  });
});

test("an input that is not JSON is kept as the model wrote it", () => {
  expect(journalOf(started("a", "{not json")).steps[0]?.calls[0]?.input).toBe("{not json");
});

test("a run that was interrupted again and again keeps each step once, wherever it was interrupted", () => {
  const first = [["run.started"], delta("One. "), started("a"), completed("a", "1")] as [string, object?][];
  const again = [["run.restarted"], delta("One"), delta(". ")] as [string, object?][];
  const second = [delta("Two. "), started("b"), completed("b", "2")] as [string, object?][];
  const steps = [
    { text: "One. ", calls: [call("a", "1")] },
    { text: "Two. ", calls: [call("b", "2")] },
  ];
  expect(journalOf(...first, ...again, ...second).steps).toEqual(steps);
  expect(journalOf(...first, ["run.restarted"], ...again, ...second).steps).toEqual(steps);
  // Interrupted while it was showing the first step again.
  expect(journalOf(...first, ["run.restarted"], delta("One"), ...again, ...second).steps).toEqual(steps);
  expect(journalOf(...first, ...again, ...second, ["run.restarted"], delta("One. Two. "), delta("Thr"))).toEqual({
    shown: true,
    text: "One. Two. Thr",
    steps,
    continues: false,
    lost: [],
  });
  // The first step's text and the second's arrive as one.
  expect(journalOf(...first, ["run.restarted"], delta("One. Two. "), started("b"), completed("b", "2")).steps).toEqual(
    steps,
  );
});

let it: Conversation;
beforeAll(async () => {
  it = await startConversation();
});
afterAll(() => it.stop());
beforeEach(() => it.begin());

/** Asks an agent whose model calls a tool and then, when it is called again with the tool's output, hangs. */
async function askUntilTheModelHangs(): Promise<{ runId: string; frames: Frame[] }> {
  it.when(
    "time?",
    { kind: "tools", text: "Look. ", calls: [{ id: "c1", name: "now", arguments: {} }] },
    { kind: "hang" },
  );
  const asked = it.modelAsked("time?", 1);
  const runId = await it.queue("time?");
  const frames = await it.until("tool.completed", runId);
  // The event comes before the second model call, which must not get the answers that are scripted from here on.
  await asked;
  return { runId, frames };
}

test("after a restart a completed tool call is not repeated: the model gets its output", async () => {
  const { runId, frames: before } = await askUntilTheModelHangs();
  const output = before.at(-1)?.data.output;
  it.when("time?", { kind: "text", tokens: ["Noon."] });
  await it.server.restart();
  const frames = (await it.until("run.completed", runId)).filter(({ data }) => data.runId === runId);
  expect(kindsOf(frames).filter((kind) => kind === "tool.started")).toHaveLength(1);
  expect(kindsOf(frames)).toContain("run.restarted");
  expect(shownText(frames)).toBe("Look. \n\nNoon.");
  const { messages } = it.mock.requests.at(-1)?.body ?? {};
  expect(messages.slice(-2)).toMatchObject([
    { role: "assistant", content: "Look. ", tool_calls: [{ id: "c1", function: { name: "now" } }] },
    { role: "tool", tool_call_id: "c1", content: output },
  ]);
});

const INTERRUPTED: [string, () => number][] = [
  ["has just begun", () => 1],
  // Its row is then there, for the case that the host dies.
  ["takes longer than a second", () => rowsOf("model_reservations")],
];
const rowsOf = (table: string) => it.server.foundation.store.sqlite.query(`SELECT 1 FROM ${table}`).all().length;
const tookOf = (runId: string) =>
  it.server.foundation.store.sqlite
    .query(
      "SELECT sum(prompt_tokens) AS promptTokens, sum(completion_tokens) AS completionTokens FROM model_calls WHERE run_id = ?",
    )
    .get(runId) as { promptTokens: number; completionTokens: number };

test.each(INTERRUPTED)(
  "usage before a restart counts in the run's record and message, while it runs and at its end, if a call %s",
  async (_, count) => {
    const { runId } = await askUntilTheModelHangs();
    while (count() === 0) await new Promise((resolve) => setImmediate(resolve));
    expect((await it.run(runId)).body.usage).toMatchObject({ promptTokens: 9, completionTokens: 7 });
    // The model is asked while the step is still being written.
    while ((await it.run(runId)).body.steps < 2);
    it.when("time?", { kind: "text", tokens: ["Noon."], usage: { prompt_tokens: 12, completion_tokens: 3 } });
    await it.server.restart();
    const frames = await it.until("run.completed", runId);
    // With what is known of the call that the restart cut off.
    const { promptTokens, completionTokens } = tookOf(runId);
    expect([promptTokens > 21, completionTokens]).toEqual([true, 10]);
    const used = { promptTokens, completionTokens, totalTokens: promptTokens + completionTokens };
    expect((await it.run(runId)).body).toMatchObject({ usage: used, steps: 3 });
    expect(frames.at(-2)?.data.message.usage).toEqual(used);
    expect(rowsOf("model_reservations")).toBe(0);
  },
);

test("a tool call whose outcome the crash lost is reported as unknown, to clients too, and is not repeated", async () => {
  const { runId } = await askUntilTheModelHangs();
  // The state after a crash between the two.
  it.server.foundation.store.transaction(() =>
    it.server.foundation.store.sqlite.run("DELETE FROM events WHERE run_id = ? AND type = 'tool.completed'", [runId]),
  );
  it.when("time?", { kind: "text", tokens: ["I cannot know."] });
  await it.server.restart();
  const frames = (await it.until("run.completed", runId)).filter(({ data }) => data.runId === runId);
  const told = frames.filter(({ event }) => /^tool\.|^run\.restarted/.test(event));
  expect(kindsOf(told)).toEqual(["tool.started", "tool.completed", "run.restarted"]);
  const unknown = { toolCallId: told[0]?.data.toolCallId, name: "now", output: UNKNOWN_OUTCOME, isError: true };
  expect(told[1]?.data).toMatchObject(unknown);
  expect(it.mock.requests.at(-1)?.body.messages.at(-1)).toEqual({
    role: "tool",
    tool_call_id: "c1",
    content: UNKNOWN_OUTCOME,
  });
  expect(shownText(frames)).toBe("Look. \n\nI cannot know.");
});

test("calls that the crash prevented are made afterwards, and earlier ones are not repeated", async () => {
  const zones = ["UTC", "Asia/Tokyo", "Europe/Oslo"];
  const calls = zones.map((timeZone, at) => ({ id: `c${at + 1}`, name: "now", arguments: { timeZone } }));
  it.when("time?", { kind: "tools", text: "Look. ", calls }, { kind: "hang" });
  const asked = it.modelAsked("time?", calls.length);
  const runId = await it.queue("time?");
  await asked;
  // The model is asked while the last results are still being written.
  await it.until("tool.completed", runId, ({ data }) => data.toolCallId === "c3");
  // The state after a crash once the second call has started.
  const { store } = it.server.foundation;
  const isLater = `type = 'tool.completed' AND data NOT LIKE '%"c1"%' OR data LIKE '{"step":1,"toolCallId":"c3"%'`;
  store.transaction(() => store.sqlite.run(`DELETE FROM events WHERE run_id = ? AND (${isLater})`, [runId]));
  it.when("time?", { kind: "text", tokens: ["Late."] });
  await it.server.restart();
  const frames = (await it.until("run.completed", runId)).filter(({ data }) => data.runId === runId);
  const started = frames.filter(({ event }) => event === "tool.started").map(({ data }) => data);
  expect(started.map(({ step, toolCallId }) => [step, toolCallId])).toEqual(calls.map(({ id }) => [1, id]));
  expect(started[0].following.map(({ input }: { input: object }) => input)).toEqual([
    { timeZone: "Asia/Tokyo" },
    { timeZone: "Europe/Oslo" },
  ]);
  expect(started[1]).not.toHaveProperty("following");
  const results = it.mock.requests.at(-1)?.body.messages.slice(-3);
  expect(results).toEqual([
    { role: "tool", tool_call_id: "c1", content: expect.stringContaining("UTC") },
    { role: "tool", tool_call_id: "c2", content: UNKNOWN_OUTCOME },
    { role: "tool", tool_call_id: "c3", content: expect.stringContaining("Z)") },
  ]);
  expect(shownText(frames)).toBe("Look. \n\nLate.");
});

test("after a restart a run whose first events are no longer kept ends as failed, and calls no model", async () => {
  const { runId } = await askUntilTheModelHangs();
  const { store } = it.server.foundation;
  const log = createEventLog(store, systemClock, () => {});
  const delta = "x".repeat(400_000);
  // More than is kept of an agent.
  for (let bytes = 0; bytes <= KEPT_BYTES; bytes += delta.length) {
    store.transaction(() => log.append(it.agent, [{ type: "message.delta", runId: "run_x", delta }]));
  }
  it.when("time?", { kind: "text", tokens: ["Noon."] });
  const asked = it.mock.requests.length;
  await it.server.restart();
  const error = { code: "internal_error", message: expect.stringContaining("are no longer kept") };
  while (["running", "queued"].includes((await it.run(runId)).body.status));
  expect((await it.run(runId)).body).toMatchObject({ status: "failed", error });
  expect(it.mock.requests.length).toBe(asked);
});

test("an agent that makes the same call forever is ended as loop_detected, and its text is kept", async () => {
  const arguments_ = { timeZone: "Mars/Base" };
  it.when("mars?", { kind: "tools", text: "Again. ", calls: [{ id: "c", name: "now", arguments: arguments_ }] });
  const asked = it.mock.requests.length;
  await using stream = await it.stream("mars?");
  const frames = await stream.rest();
  expect(it.mock.requests.length - asked).toBe(5);
  expect(it.mock.requests.at(-1)?.body.messages.at(-1).content).toContain("4 times");
  const error = { code: "loop_detected", message: expect.stringContaining("now 5 times") };
  expect(frames.at(-1)).toMatchObject({ event: "run.failed", data: { error } });
  expect(frames.at(-2)?.data.message).toMatchObject({
    message: `${"Again. \n\n".repeat(4)}Again. `,
    finishReason: "error",
  });
  const run = (await it.run(frames[0]?.data.runId)).body;
  expect(run).toMatchObject({ status: "failed", error, steps: 5 });
  const plain = await it.send("mars?");
  expect([plain.status, plain.body.error.code]).toEqual([502, "loop_detected"]);
});
