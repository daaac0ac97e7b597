import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { EventLog } from "../../src/messages/events/event-log.ts";
import { readJournal, UNKNOWN_OUTCOME } from "../../src/messages/runs/journal.ts";
import type { Run, StoredEvent } from "../../src/messages/schema.ts";
import { type Conversation, type Frame, kindsOf, shownText, startConversation } from "./conversation.ts";

const RUN = { runId: "run_a", agentId: "agt_a", firstEventId: 3 } as Run;

/** The journal of a run with these events, another run's between them. */
function journalOf(...told: [type: string, own?: object][]) {
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
  const ofRun: EventLog["ofRun"] = ({ runId }, after, limit) =>
    rows.filter((row) => row.eventId > after && row.runId === runId).slice(0, limit);
  return readJournal({ ofRun }, RUN) ?? expect.unreachable();
}
const delta = (text: string): [string, object] => ["message.delta", { delta: text }];
const started = (toolCallId: string, input: unknown = {}): [string, object] => [
  "tool.started",
  { toolCallId, name: "now", input },
];
const completed = (toolCallId: string, output: string): [string, object] => [
  "tool.completed",
  { toolCallId, name: "now", output, isError: false },
];
const call = (id: string, output: string, input = "{}") => ({ id, name: "now", input, output, isError: false });
const unknown = (id: string) => ({ id, name: "now", input: "{}", output: UNKNOWN_OUTCOME, isError: true });

test("a run that had shown nothing has an empty journal", () => {
  expect(journalOf(["run.queued"], ["run.started"])).toEqual({ shown: false, text: "", steps: [] });
  expect(journalOf(["run.started"], delta("Half"), ["run.restarted"])).toEqual({ shown: false, text: "", steps: [] });
});

test("text that no tool follows is shown, and is not a step", () => {
  expect(journalOf(["run.started"], delta("Ha"), delta("lf"))).toEqual({ shown: true, text: "Half", steps: [] });
});

test("a call without an outcome is unknown; those with one have it", () => {
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

test("calls of one answer that run side by side are one step", () => {
  const { steps } = journalOf(started("a"), started("b"), completed("b", "two"), completed("a", "one"), started("c"));
  expect(steps.map(({ calls }) => calls.map(({ id, output }) => `${id} ${output}`))).toEqual([
    ["a one", "b two"],
    [`c ${UNKNOWN_OUTCOME}`],
  ]);
});

test("servers that number their calls anew with each answer confuse nothing", () => {
  const { steps } = journalOf(started("call_0"), completed("call_0", "first"), started("call_0"));
  expect(steps.map(({ calls }) => calls[0]?.output)).toEqual(["first", UNKNOWN_OUTCOME]);
  const both = journalOf(
    started("call_0"),
    completed("call_0", "first"),
    started("call_0"),
    completed("call_0", "2nd"),
  );
  expect(both.steps.map(({ calls }) => calls[0]?.output)).toEqual(["first", "2nd"]);
});

test("an input that is no JSON is kept as the model wrote it", () => {
  expect(journalOf(started("a", "{not json")).steps[0]?.calls[0]?.input).toBe("{not json");
});

test("a run that was cut off again and again keeps each step once, wherever it was cut", () => {
  const first = [["run.started"], delta("One. "), started("a"), completed("a", "1")] as [string, object?][];
  const again = [["run.restarted"], delta("One"), delta(". ")] as [string, object?][];
  const second = [delta("Two. "), started("b"), completed("b", "2")] as [string, object?][];
  const steps = [
    { text: "One. ", calls: [call("a", "1")] },
    { text: "Two. ", calls: [call("b", "2")] },
  ];
  expect(journalOf(...first, ...again, ...second).steps).toEqual(steps);
  expect(journalOf(...first, ["run.restarted"], ...again, ...second).steps).toEqual(steps);
  // Cut off while it was telling the first step again.
  expect(journalOf(...first, ["run.restarted"], delta("One"), ...again, ...second).steps).toEqual(steps);
  expect(journalOf(...first, ...again, ...second, ["run.restarted"], delta("One. Two. "), delta("Thr"))).toEqual({
    shown: true,
    text: "One. Two. Thr",
    steps,
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

/** Asks an agent whose model calls a tool and, once it has been asked again with the tool's output, says nothing more. */
async function askUntilTheModelHangs(): Promise<{ runId: string; frames: Frame[] }> {
  it.when(
    "time?",
    { kind: "tools", text: "Look. ", calls: [{ id: "c1", name: "now", arguments: {} }] },
    { kind: "hang" },
  );
  const asked = it.mock.requests.length;
  const runId = await it.queue("time?");
  const frames = await it.until("tool.completed", runId);
  // The event comes before the second question: what the model is told to answer from here on must not be its answer.
  await it.mock.arrived(asked + 2);
  return { runId, frames };
}

test("after a restart a completed tool call is not repeated: the model is told its output", async () => {
  const { runId, frames: before } = await askUntilTheModelHangs();
  const output = before.at(-1)?.data.output;
  it.when("time?", { kind: "text", tokens: ["Noon."] });
  await it.appliance.restart();
  const frames = (await it.until("run.completed", runId)).filter(({ data }) => data.runId === runId);
  expect(kindsOf(frames).filter((kind) => kind === "tool.started")).toHaveLength(1);
  expect(kindsOf(frames)).toContain("run.restarted");
  expect(shownText(frames)).toBe("Look. Noon.");
  const { messages } = it.mock.requests.at(-1)?.body ?? {};
  expect(messages.slice(-2)).toMatchObject([
    { role: "assistant", content: "Look. ", tool_calls: [{ id: "c1", function: { name: "now" } }] },
    { role: "tool", tool_call_id: "c1", content: output },
  ]);
});

test("a tool call whose outcome the crash took is told as unknown, and is not repeated", async () => {
  const { runId } = await askUntilTheModelHangs();
  // As a crash between the two leaves it.
  it.appliance.foundation.store.transaction(() =>
    it.appliance.foundation.store.sqlite.run("DELETE FROM events WHERE run_id = ? AND type = 'tool.completed'", [
      runId,
    ]),
  );
  it.when("time?", { kind: "text", tokens: ["I cannot know."] });
  await it.appliance.restart();
  const frames = (await it.until("run.completed", runId)).filter(({ data }) => data.runId === runId);
  expect(kindsOf(frames).filter((kind) => kind.startsWith("tool."))).toEqual(["tool.started"]);
  expect(it.mock.requests.at(-1)?.body.messages.at(-1)).toEqual({
    role: "tool",
    tool_call_id: "c1",
    content: UNKNOWN_OUTCOME,
  });
  expect(shownText(frames)).toBe("Look. I cannot know.");
});
