import { expect, test } from "bun:test";
import { ModelError, type ModelEvent, type ModelMessage } from "../../src/models/engine.ts";
import { MAX_STEPS, runAgent } from "../../src/runtime/agent-loop.ts";
import type { LoopEvent, RunInput, RunOutcome } from "../../src/runtime/protocol.ts";
import { type CallParts, MAX_CALLS_AT_ONCE } from "../../src/runtime/step-calls.ts";

const RUN: RunInput = {
  runId: "run_a",
  agentName: "Ada",
  files: [],
  skills: [],
  moreSkills: 0,
  readsSkills: false,
  model: { contextTokens: 8_000, tools: true, prompt: "full" },
  conversation: [{ role: "user", text: "hi" }],
  earlier: 0,
  journal: [],
};
const text = (...parts: string[]): ModelEvent[] => parts.map((part) => ({ type: "text", text: part }));
const call = (id: string, name = "now", input = "{}"): ModelEvent => ({ type: "tool_call", call: { id, name, input } });
const finish = (reason: "stop" | "length" | "tool_calls" = "stop"): ModelEvent => ({ type: "finish", reason });
const usage: ModelEvent = { type: "usage", promptTokens: 5, completionTokens: 2 };

type CallTool = CallParts["callTool"];

interface Play {
  /** One answer for each model call: batches of events, or the error that it throws. */
  answers: (ModelEvent[][] | Error)[];
  run?: Partial<RunInput>;
  callTool?: CallTool;
  /** Whether its tools change nothing. */
  reads?: boolean;
  limitMs?: number;
  /** Cancels after this many events. */
  cancelAfter?: number;
}

/** Runs an agent against a scripted model, and returns all its events and all its calls. */
async function play({ answers, run = {}, callTool, reads = false, limitMs = 60_000, cancelAfter = -1 }: Play) {
  const asked: ModelMessage[][] = [];
  const tools: string[] = [];
  const events: LoopEvent[] = [];
  const faults: unknown[] = [];
  const abort = new AbortController();
  const streamModel = async function* (messages: ModelMessage[], signal: AbortSignal) {
    asked.push(structuredClone(messages));
    const answer = answers[asked.length - 1] ?? answers.at(-1) ?? [];
    if (answer instanceof Error) throw answer;
    for (const batch of answer) {
      signal.throwIfAborted();
      yield batch;
    }
    signal.throwIfAborted();
  };
  const tool: CallTool = async (asked, signal) => {
    tools.push(`${asked.name} ${asked.input}`);
    return (await callTool?.(asked, signal)) ?? { output: `out ${tools.length}`, isError: false };
  };
  if (cancelAfter === 0) abort.abort();
  for await (const event of runAgent(
    { ...RUN, ...run },
    {
      ...{ streamModel, callTool: tool, mayRunTogether: async () => reads, signal: abort.signal, limitMs },
      onFault: (error) => faults.push(error),
    },
  )) {
    events.push(event);
    if (events.length === cancelAfter) abort.abort();
  }
  const ended = events.at(-1);
  if (ended?.type !== "ended") throw new Error("the last event is the end");
  expect(events.filter(({ type }) => type === "ended")).toHaveLength(1);
  return { events, asked, tools, faults, outcome: ended.outcome, last: asked.at(-1) ?? [] };
}

const kinds = (events: LoopEvent[]): string => events.map(({ type }) => type).join(" ");
const spoken = (events: LoopEvent[]): string =>
  events.flatMap((event) => (event.type === "delta" ? [event.text] : [])).join("");

test("text alone completes the run, with its usage", async () => {
  const { events, asked, outcome } = await play({ answers: [[text("Hel", "lo"), [usage, finish()]]] });
  expect(events).toEqual([
    { type: "step" },
    { type: "delta", text: "Hello" },
    usage as LoopEvent,
    { type: "ended", outcome: { kind: "completed", finishReason: "stop" } },
  ]);
  expect(asked).toHaveLength(1);
  expect(outcome.kind).toBe("completed");
});

test("every model call is reported, except one that was counted with the start of the run", async () => {
  const answers = [[[call("a"), finish("tool_calls")]], [text("noon")]];
  const stepsOf = (events: LoopEvent[]) => events.filter(({ type }) => type === "step").length;
  expect(stepsOf((await play({ answers })).events)).toBe(2);
  expect(stepsOf((await play({ answers, run: { firstStepCounted: true } })).events)).toBe(1);
});

test("a model that says nothing at all completes the run", async () => {
  expect((await play({ answers: [[]] })).outcome).toEqual({ kind: "completed", finishReason: "stop" });
  const long = await play({ answers: [[[...text("a"), finish("length")]]] });
  expect(long.outcome).toEqual({ kind: "completed", finishReason: "length" });
});

test("tool calls are made in order, each reported before and after, and their results go to the model", async () => {
  const first = [...text("Look. "), call("a"), call("b", "now", '{"timeZone":"UTC"}'), finish("tool_calls")];
  const { events, tools, last } = await play({ answers: [[first], [[...text("Done."), finish()]]] });
  expect(kinds(events)).toBe("step delta tool.started tool.completed tool.started tool.completed step delta ended");
  expect(tools).toEqual(["now {}", 'now {"timeZone":"UTC"}']);
  const calls = [
    { id: "a", name: "now", input: "{}" },
    { id: "b", name: "now", input: '{"timeZone":"UTC"}' },
  ];
  expect(last.slice(1)).toEqual([
    { role: "user", content: "hi" },
    { role: "assistant", content: "Look. ", toolCalls: calls },
    { role: "tool", toolCallId: "a", content: "out 1" },
    { role: "tool", toolCallId: "b", content: "out 2" },
  ]);
  expect(spoken(events)).toBe("Look. \n\nDone.");
});

test("a tool's error is reported as such, and the run continues", async () => {
  const callTool: CallTool = async () => ({ output: "no such zone", isError: true });
  const { events, outcome, last } = await play({ answers: [[[call("a")]], [text("Sorry.")]], callTool });
  expect(events[2]).toEqual({
    type: "tool.completed",
    toolCallId: "a",
    name: "now",
    output: "no such zone",
    isError: true,
  });
  expect(last.at(-1)).toEqual({ role: "tool", toolCallId: "a", content: "no such zone", isError: true });
  expect(outcome.kind).toBe("completed");
});

test("an agent that calls tools forever is ended after 20 steps", async () => {
  const { events, asked, outcome } = await play({ answers: [[[call("a")]]] });
  expect(asked).toHaveLength(MAX_STEPS);
  expect(outcome).toMatchObject({ kind: "failed", code: "model_error" });
  expect(events.filter(({ type }) => type === "tool.completed")).toHaveLength(MAX_STEPS);
});

test("a run that takes too long is ended", async () => {
  const callTool: CallTool = (_, signal) =>
    new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const { outcome } = await play({ answers: [[[call("a")]]], callTool, limitMs: 10 });
  expect(outcome).toMatchObject({
    kind: "failed",
    code: "model_error",
    message: expect.stringContaining("longer than"),
  });
});

test("a run that is cancelled between any two events ends there and makes no more calls", async () => {
  const answers = [
    [text("Look. "), [call("a"), call("b")]],
    [text("Do", "ne"), [usage, finish()]],
  ];
  const whole = await play({ answers });
  for (let count = 0; count < whole.events.length - 1; count++) {
    const { events, tools, asked, outcome } = await play({ answers, cancelAfter: count });
    expect([count, outcome]).toEqual([count, { kind: "cancelled" }]);
    // What was in progress when it was cancelled may still be reported, once.
    expect(events.length).toBeLessThanOrEqual(count + 3);
    expect(events.slice(0, count)).toEqual(whole.events.slice(0, count));
    expect(tools.length).toBeLessThanOrEqual(events.filter(({ type }) => type === "tool.started").length);
    expect(asked.length).toBeLessThanOrEqual(events.filter(({ type }) => type === "step").length);
  }
});

test("a model's failure is reported with its message, any other error without, but to the host's log", async () => {
  const failed = await play({ answers: [new ModelError("silent", "the model said nothing for 60 s")] });
  expect(failed.outcome).toEqual({ kind: "failed", code: "model_error", message: "the model said nothing for 60 s" });
  const broken = await play({ answers: [new Error("secret internals")] });
  expect(broken.outcome).toMatchObject({ kind: "failed", code: "internal_error" });
  expect(JSON.stringify(broken.outcome)).not.toContain("secret");
  expect([failed.faults, broken.faults]).toEqual([[], [new Error("secret internals")]]);
});

test("a prompt that is too long for the model is cut until it fits; one that never fits fails", async () => {
  const overflow = new ModelError("context_overflow", "too long", {
    overflow: { promptTokens: 4_000, limitTokens: 2_000 },
  });
  const conversation = Array.from({ length: 41 }, (_, at) => ({
    role: at % 2 === 0 ? ("user" as const) : ("assistant" as const),
    text: `${at} ${"word ".repeat(40)}`,
  }));
  const { asked, outcome } = await play({ answers: [overflow, overflow, [text("ok")]], run: { conversation } });
  expect(outcome.kind).toBe("completed");
  const sizes = asked.map((messages) => JSON.stringify(messages).length);
  expect(sizes[1] ?? 0).toBeLessThan((sizes[0] ?? 0) * 0.55);
  expect(sizes[2] ?? 0).toBeLessThan((sizes[1] ?? 0) * 0.55);
  for (const messages of asked)
    expect(messages.at(-1)).toEqual({ role: "user", content: conversation[40]?.text ?? "" });
  const never = await play({ answers: [overflow], run: { conversation } });
  expect(never.outcome).toEqual({ kind: "failed", code: "model_error", message: "too long" });
  expect(never.asked.length).toBeLessThanOrEqual(6);
});

const made = (id: string, output: string) => ({ id, name: "now", input: "{}", result: { output, isError: false } });

test("what an earlier attempt completed is shown again but not repeated", async () => {
  const journal = [
    { text: "Look. ", calls: [made("a", "noon")] },
    { text: "", calls: [made("b", "outcome unknown")] },
  ];
  const { events, tools, asked } = await play({ answers: [[text("It is noon.")]], run: { journal } });
  expect(spoken(events)).toBe("Look. \n\nIt is noon.");
  expect(tools).toEqual([]);
  const expected: ModelMessage[] = [
    { role: "user", content: "hi" },
    { role: "assistant", content: "Look. ", toolCalls: [{ id: "a", name: "now", input: "{}" }] },
    { role: "tool", toolCallId: "a", content: "noon" },
    { role: "assistant", content: "", toolCalls: [{ id: "b", name: "now", input: "{}" }] },
    { role: "tool", toolCallId: "b", content: "outcome unknown" },
  ];
  expect(asked[0]?.slice(1)).toEqual(expected);
  expect(kinds(events)).toBe("delta step delta ended");
});

test("what is said before a call and after it are two paragraphs, also after a wait and after a crash", async () => {
  const inOne = await play({
    answers: [
      [text("I will look."), [call("a")]],
      [text("It "), text("is noon.")],
    ],
  });
  expect(spoken(inOne.events)).toBe("I will look.\n\nIt is noon.");
  expect(inOne.asked[1]?.[2]?.content).toBe("I will look.");
  const journal = [{ text: "I will look.", calls: [made("a", "noon")] }];
  const answers = [[text("It is noon.")]];
  const crashed = await play({ answers, run: { journal } });
  expect(spoken(crashed.events)).toBe("I will look.\n\nIt is noon.");
  const waited = await play({ answers, run: { journal, journalShown: true } });
  expect(spoken(waited.events)).toBe("\n\nIt is noon.");
  const twice = await play({ answers, run: { journal: [...journal, { ...journal[0], text: "\n\nI see." } as never] } });
  expect(spoken(twice.events)).toBe("I will look.\n\nI see.\n\nIt is noon.");
  // The break is for people: the model gets what it has said.
  expect(twice.asked[0]?.at(-2)?.content).toBe("I see.");
});

test.each([
  ["Let me look. ", ["Done."], "Let me look. \n\nDone."],
  ["Let me look:\n", ["Done."], "Let me look:\n\nDone."],
  ["Let me look.\n\n", ["Done."], "Let me look.\n\nDone."],
  ["Let me look.", ["\n", "\n", " ", "\nDone."], "Let me look.\n\nDone."],
  ["Let me look.", [" Done."], "Let me look.\n\n Done."],
  ["Code:", [" \n", "  ", "  x = 1"], "Code:\n\n    x = 1"],
  ["\n", ["Done."], "\nDone."],
])(
  "%j before a call and %j after it are two paragraphs of one answer, with one break between them",
  async (first, then, shown) => {
    const { events } = await play({ answers: [[text(first), [call("a")]], then.map((part) => text(part))] });
    expect(spoken(events)).toBe(shown);
  },
);

test("after a crash, what it said on the way to an answer of a given form is not shown either", async () => {
  const journal = [{ text: "I will look.", calls: [made("a", "noon")] }];
  const limits = { output: { name: "time", schema: { type: "object" } } };
  const { events } = await play({ answers: [[text('{"hour":12}')]], run: { journal, limits } });
  expect(spoken(events)).toBe('{"hour":12}');
});

test("steps of an earlier attempt count towards the limit", async () => {
  const journal = Array.from({ length: 18 }, (_, at) => ({ text: "", calls: [made("a", `out ${at}`)] }));
  const { asked } = await play({ answers: [[[call("b")]]], run: { journal } });
  expect(asked).toHaveLength(2);
});

test("each call names its step, and the first of a step lists the following ones, so that a crash loses no call", async () => {
  const first = [call("a"), call("b", "now", '{ "timeZone": "UTC" }'), call("c", "now", "no JSON")];
  const { events } = await play({ answers: [[first], [[call("d")]], [text("Done.")]] });
  expect(events.filter(({ type }) => type === "tool.started")).toEqual([
    {
      type: "tool.started",
      step: 1,
      toolCallId: "a",
      name: "now",
      input: "{}",
      following: [
        { id: "b", name: "now", input: '{"timeZone":"UTC"}' },
        { id: "c", name: "now", input: "no JSON" },
      ],
    },
    { type: "tool.started", step: 1, toolCallId: "b", name: "now", input: '{"timeZone":"UTC"}', following: [] },
    { type: "tool.started", step: 1, toolCallId: "c", name: "now", input: "no JSON", following: [] },
    { type: "tool.started", step: 2, toolCallId: "d", name: "now", input: "{}", following: [] },
  ]);
});

test("each call of a run has an id of its own, also where the server numbers the calls of each answer anew", async () => {
  const journal = [
    { text: "", calls: [{ id: "c0", name: "now", input: "{}", result: { output: "1", isError: false } }] },
  ];
  const { events, asked } = await play({
    run: { journal },
    answers: [[[call("c0"), call("c1")]], [[call("c0")]], [text("Done.")]],
  });
  const started = events.flatMap((event) => (event.type === "tool.started" ? event.toolCallId : []));
  expect(started).toEqual(["c0_2", "c1", "c0_3"]);
  expect(events.flatMap((event) => (event.type === "tool.completed" ? event.toolCallId : []))).toEqual(started);
  // The model's own server gets them back as they are told.
  const told = asked.at(-1)?.flatMap((message) => (message.role === "tool" ? message.toolCallId : []));
  expect(told).toEqual(["c0", ...started]);
});

test("calls that an earlier attempt did not make are made before the model is called again", async () => {
  const calls = [made("a", "noon"), { ...made("b", ""), result: null }, { ...made("c", ""), result: null }];
  const { events, tools, asked } = await play({
    answers: [[text("Done.")]],
    run: { journal: [{ text: "Look. ", calls }] },
  });
  expect(kinds(events)).toBe("delta tool.started tool.completed tool.started tool.completed step delta ended");
  expect(events[1]).toMatchObject({ type: "tool.started", step: 1, toolCallId: "b", following: [] });
  expect(tools).toHaveLength(2);
  expect(asked[0]?.slice(-3).map(({ content }) => content)).toEqual(["noon", "out 1", "out 2"]);
});

/** Calls that wait until each is released. */
function openCalls() {
  const open: { id: string; finish: () => void }[] = [];
  const begun: (() => void)[] = [];
  const callTool: CallTool = ({ id }) =>
    new Promise((resolve) => {
      open.push({ id, finish: () => resolve({ output: `out ${id}`, isError: false }) });
      begun.shift()?.();
    });
  const next = () => new Promise<void>((resolve) => void begun.push(resolve));
  return { open, callTool, next };
}

test("calls that change nothing run at the same time, reported as they end, and to the model in order", async () => {
  const { open, callTool, next } = openCalls();
  const both = [next(), next()];
  const playing = play({ answers: [[[call("a"), call("b")]], [text("Done.")]], callTool, reads: true });
  await Promise.all(both);
  for (const { finish } of open.toReversed()) {
    finish();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { events, last } = await playing;
  expect(events.flatMap((event) => ("toolCallId" in event ? [`${event.type} ${event.toolCallId}`] : []))).toEqual([
    "tool.started a",
    "tool.started b",
    "tool.completed b",
    "tool.completed a",
  ]);
  expect(last.slice(-2)).toEqual([
    { role: "tool", toolCallId: "a", content: "out a" },
    { role: "tool", toolCallId: "b", content: "out b" },
  ]);
});

test("calls of which one changes something are made one after the other", async () => {
  const { open, callTool, next } = openCalls();
  let begun = next();
  const playing = play({ answers: [[[call("a"), call("b"), call("c")]], [text("Done.")]], callTool });
  for (const at of [0, 1, 2]) {
    await begun;
    begun = next();
    await new Promise((resolve) => setImmediate(resolve));
    expect(open.map(({ id }) => id)).toEqual(["a", "b", "c"].slice(0, at + 1));
    open[at]?.finish();
  }
  expect((await playing).outcome.kind).toBe("completed");
});

test("a step runs a limited number of calls at the same time, however many it has", async () => {
  let running = 0;
  let most = 0;
  const callTool: CallTool = async ({ id }) => {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setImmediate(resolve));
    running--;
    return { output: id, isError: false };
  };
  const many = Array.from({ length: 3 * MAX_CALLS_AT_ONCE + 1 }, (_, at) => call(`c${at}`));
  const { last } = await play({ answers: [[many], [text("Done.")]], callTool, reads: true });
  expect(most).toBe(MAX_CALLS_AT_ONCE);
  expect(last.slice(-many.length).map(({ content }) => content)).toEqual(many.map((_, at) => `c${at}`));
});

/** Calls of these ids wait. */
const waiting =
  (...ids: string[]): CallTool =>
  async ({ id }) =>
    ids.includes(id) ? "waits" : { output: `out ${id}`, isError: false };
const courseOf = (events: LoopEvent[]) =>
  events.flatMap((event) => ("toolCallId" in event ? [`${event.type.slice(5)} ${event.toolCallId}`] : []));

test("a call that waits ends the loop as waiting; if calls are made in turn, those after it are not made", async () => {
  const answers = [[[...text("Look. "), call("a"), call("b"), call("c")]], [text("Done.")]];
  const { events, asked, outcome } = await play({ answers, callTool: waiting("b") });
  expect(outcome).toEqual({ kind: "waiting" });
  expect(asked).toHaveLength(1);
  expect(courseOf(events)).toEqual(["started a", "completed a", "started b"]);
});

test("calls that run at the same time are all made, however many of them wait", async () => {
  const many = Array.from({ length: MAX_CALLS_AT_ONCE + 2 }, (_, at) => call(`c${at}`));
  const { events, outcome } = await play({ answers: [[many]], callTool: waiting("c0", "c3", "c8"), reads: true });
  expect(outcome).toEqual({ kind: "waiting" });
  const completed = courseOf(events).filter((one) => one.startsWith("completed"));
  expect(completed).toEqual([1, 2, 4, 5, 6, 7, 9].map((at) => `completed c${at}`));
});

test("a run that has waited shows its text once, and the model gets all results in the order of their calls", async () => {
  const calls = [
    { ...made("a", ""), result: null, goAhead: "appr_a" },
    made("b", "was done before"),
    { ...made("c", ""), result: null },
  ];
  const journal = [{ text: "Look. ", calls }];
  const answers = [[text("Done.")]];
  for (const reads of [false, true]) {
    const { events, asked } = await play({ answers, callTool: waiting(), reads, run: { journal, journalShown: true } });
    expect(spoken(events)).toBe("\n\nDone.");
    expect(events.flatMap((event) => (event.type === "tool.started" ? [event.following] : []))).toEqual([[], []]);
    expect(asked[0]?.slice(-3).map(({ content }) => content)).toEqual(["out a", "was done before", "out c"]);
  }
});

test("a run may wait again, in the same step or a later one", async () => {
  const calls = ["a", "b"].map((id) => ({ ...made(id, ""), result: null, goAhead: `appr_${id}` }));
  const again = await play({ answers: [], callTool: waiting("b"), run: { journal: [{ text: "", calls }] } });
  expect([again.outcome, again.asked.length, courseOf(again.events)]).toEqual([
    { kind: "waiting" },
    0,
    ["started a", "completed a", "started b"],
  ]);
  const later = await play({
    answers: [[[call("c")]]],
    callTool: waiting("c"),
    run: { journal: [{ text: "", calls }] },
  });
  expect([later.outcome, later.asked.length]).toEqual([{ kind: "waiting" }, 1]);
});

const same: CallTool = async () => ({ output: "noon", isError: false });
const LOOP: RunOutcome = { kind: "failed", code: "loop_detected", message: expect.stringContaining("now 5 times") };

test("the third identical call with an identical result warns the model, and the fifth ends the run", async () => {
  const { asked, tools, events, outcome } = await play({ answers: [[[call("a")]]], callTool: same });
  expect(outcome).toEqual(LOOP);
  expect([asked.length, tools.length]).toEqual([5, 5]);
  const results = asked[4]?.slice(2).flatMap(({ role, content }) => (role === "tool" ? [content] : []));
  expect(results).toEqual([
    "noon",
    "noon",
    expect.stringMatching(/^noon\n\[You have made this call 3 times/),
    expect.stringMatching(/^noon\n\[You have made this call 4 times/),
  ]);
  // The reported output is the tool's own text, without the warning.
  expect(events.flatMap((event) => (event.type === "tool.completed" ? [event.output] : []))).toEqual(
    Array(5).fill("noon"),
  );
});

test("calls with another input or another result are not a loop; neither are many of one answer", async () => {
  const inputs = Array.from({ length: 8 }, (_, at) => call(`c${at}`, "now", `{"at":${at}}`));
  expect((await play({ answers: [[inputs], [text("Done.")]], callTool: same })).outcome.kind).toBe("completed");
  expect((await play({ answers: [[[call("a")]]] })).outcome).toMatchObject({ code: "model_error" });
  const eight = Array.from({ length: 8 }, (_, at) => call(`c${at}`));
  const inTurn = await play({ answers: [[eight], [text("Done.")]], callTool: same });
  expect([inTurn.outcome, inTurn.tools.length]).toEqual([LOOP, 5]);
  expect((await play({ answers: [[eight], [text("Done.")]], callTool: same, reads: true })).outcome).toEqual(LOOP);
});

test("identical calls count across a restart, also the one that ended the run", async () => {
  const journal = Array.from({ length: 4 }, () => ({ text: "", calls: [made("a", "noon")] }));
  const fifth = await play({ answers: [[[call("b")]]], callTool: same, run: { journal } });
  expect([fifth.outcome, fifth.asked.length]).toEqual([LOOP, 1]);
  const over = await play({ answers: [], run: { journal: [...journal, { text: "", calls: [made("a", "noon")] }] } });
  expect([over.outcome, over.asked.length, over.tools]).toEqual([LOOP, 0, []]);
});

test("all of a run's events can be serialised as JSON", async () => {
  const { events, asked } = await play({ answers: [[[...text("a"), call("a")]], [text("b"), [usage, finish()]]] });
  expect(JSON.parse(JSON.stringify(events))).toEqual(events);
  expect(JSON.parse(JSON.stringify(asked))).toEqual(asked);
});
