import { afterEach, describe, expect, test } from "bun:test";
import { pino } from "pino";
import { z } from "zod";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/log.ts";
import { ModelError, type ModelEvent, messagesIn } from "../../src/models/engine.ts";
import { createHost, type Host } from "../../src/runtime/host.ts";
import type { HostBounds } from "../../src/runtime/host-places.ts";
import { type HostedRun, NO_MESSAGES, type WaitingCall } from "../../src/runtime/hosted-run.ts";
import type { ModelCall } from "../../src/runtime/model-call.ts";
import { buildPrompt, toMessages } from "../../src/runtime/prompt.ts";
import type { LoopEvent, LoopOutcome, RunInput, Turn, WorkerToHost } from "../../src/runtime/protocol.ts";
import { tokensOfTurn } from "../../src/runtime/tokens.ts";
import { createAgentTurns } from "../../src/runtime/worker-calls.ts";
import { spawnWorker } from "../../src/runtime/worker-handle.ts";
import type { Durability } from "../../src/storage/store.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { createToolbox } from "../../src/tools/toolbox.ts";
import { handClock } from "../lib/hand-clock.ts";
import { policyPorts } from "../support/policy-ports.ts";
import { askingTool, type ScriptedRun, scriptedRequest, scriptedTool } from "../support/scripted-tools.ts";

const log = await createLog("silent", "json");
type Stream = (call: ModelCall, signal: AbortSignal) => AsyncIterable<ModelEvent[]>;

let host: Host | undefined;
afterEach(() => host?.close());

const BOUNDS: HostBounds = { workers: 100, workersOfOne: 100, idleOfOne: 100, runs: 100, runsOfOne: 100 };

/** A host whose runs take their places when they are started, or when there is room, except those passed to `runReserved`. */
function start(
  stream: Stream,
  parts: Partial<Parameters<typeof createHost>[0]> = {},
): Host & { runReserved: Host["run"] } {
  const waiting: (() => void)[] = [];
  const made = createHost({
    clock: systemClock,
    log,
    toolboxOf: () => createToolbox([]),
    policy: policyPorts(),
    callModel: stream,
    traces: null,
    turns: createAgentTurns(),
    idleMs: 60_000,
    bounds: BOUNDS,
    // On a busy machine a worker may answer late.
    stuckTicks: Number.POSITIVE_INFINITY,
    ...parts,
    onRoom() {
      for (const again of waiting.splice(0)) again();
      parts.onRoom?.();
    },
  });
  const started: ReturnType<typeof start> = {
    ...made,
    run(instanceId, run) {
      if (made.reserve("acct_a", instanceId) === "taken") made.run(instanceId, run);
      else waiting.push(() => started.run(instanceId, run));
    },
    runReserved: made.run,
  };
  host = started;
  return started;
}

const inputOf = (runId: string): RunInput => ({
  runId,
  agentName: "Ada",
  files: [],
  skills: [],
  moreSkills: 0,
  readsSkills: false,
  model: { contextTokens: 8_000, tools: true, prompt: "full" },
  conversation: [{ role: "user", text: "hi" }],
  earlier: 0,
  journal: [],
});

/** What a reservation comes to once no other worker starts. */
async function onceStarted(reserve: () => ReturnType<Host["reserve"]>): Promise<ReturnType<Host["reserve"]>> {
  for (;;) {
    const place = reserve();
    if (place !== "each") return place;
    await ticks(1, 1);
  }
}

/** A run that records its events, and whose end can be awaited. */
function observed(runId: string, input: RunInput = inputOf(runId), committed?: () => Promise<void>) {
  const events: LoopEvent[] = [];
  const sunk: { kinds: string[]; durability: Durability }[] = [];
  let waits: readonly WaitingCall[] = [];
  const ended = Promise.withResolvers<LoopOutcome>();
  const first = Promise.withResolvers<void>();
  const run: HostedRun = {
    agentId: `agt_${runId}`,
    conversationId: `conv_${runId}`,
    models: [`m_${runId}`],
    tools: [{ name: `tool of ${runId}`, description: "", inputSchema: {} }],
    input,
    turnTokens: input.conversation.map(tokensOfTurn),
    turnMessages: NO_MESSAGES,
    isTainted: false,
    mayAsk: true,
    async taint() {},
    async sink(batch, durability, waiting) {
      sunk.push({ kinds: batch.map(({ type }) => type), durability });
      waits = waiting;
      // Everything that passes the port is plain data.
      expect(JSON.parse(JSON.stringify(batch))).toEqual(batch);
      events.push(...batch);
      if (batch.some(({ type }) => type === "delta")) first.resolve();
      const last = batch.at(-1);
      if (last?.type === "ended") ended.resolve(last.outcome);
      await committed?.();
    },
  };
  return { run, events, sunk, waits: () => waits, ended: ended.promise, begun: first.promise };
}

const say: Stream = async function* () {
  yield [{ type: "text", text: "Hello" }];
  yield [{ type: "finish", reason: "stop" }];
};
const beginAndHang: Stream = async function* (_, signal) {
  yield [{ type: "text", text: "Once" }];
  await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
};
const COMPLETED: LoopOutcome = { kind: "completed", finishReason: "stop" };
test("what was found in the agent's memory is in the prompt, and a search that fails keeps no run from its answer", async () => {
  const asked: ModelCall[] = [];
  const one = start(async function* (call, signal) {
    asked.push(call);
    yield* say(call, signal);
  });
  for (const recall of [async () => ["Maren prefers tea."], () => Promise.reject(new Error("no index"))]) {
    const seen = observed("run_a");
    one.run("inst_a", { ...seen.run, recall });
    expect(await seen.ended).toEqual(COMPLETED);
  }
  const systems = asked.map(({ messages }) => messagesIn(messages)[0]?.content);
  expect(systems).toEqual([expect.stringContaining("Maren prefers tea."), expect.not.stringContaining("Maren")]);
});

test("a run wakes its instance's worker, calls its model with the run's tools and ends", async () => {
  const asked: ModelCall[] = [];
  const { run, events, ended } = observed("run_a");
  start(async function* (request, signal) {
    asked.push(request);
    yield* say(request, signal);
  }).run("inst_a", run);
  expect(await ended).toEqual(COMPLETED);
  expect(events.filter(({ type }) => type === "delta")).toEqual([{ type: "delta", text: "Hello" }]);
  expect(asked).toMatchObject([{ models: ["m_run_a"], tools: run.tools, accountId: "acct_a", instanceId: "inst_a" }]);
  expect(host?.awake()).toBe(1);
});

test("an answer that arrives at once is reported at once, with its end", async () => {
  const { run, sunk, ended } = observed("run_a", { ...inputOf("run_a"), firstStepCounted: true });
  start(async function* () {
    const usage = { type: "usage", promptTokens: 5, completionTokens: 2 } as const;
    yield [{ type: "text", text: "Hello" }, usage, { type: "finish", reason: "stop" }];
  }).run("inst_a", run);
  expect(await ended).toEqual(COMPLETED);
  expect(sunk.map(({ kinds }) => kinds)).toEqual([["usage", "delta", "ended"]]);
});

test("the turns that stay with the host are in each prompt where they belong, and fewer once it was too long", async () => {
  const turns = Array.from({ length: 41 }, (_, at): Turn => {
    const text = `${at} ${"word ".repeat(40)}`;
    if (at % 2 === 0) return { role: "user", text };
    const call = { id: `call_${at}`, name: "now", input: "{}" };
    return { role: "assistant", text, steps: [{ text: "", calls: [{ call, result: "noon" }] }] };
  });
  const prompts: ModelCall["messages"][] = [];
  for (const prompt of ["full", "short"] as const) {
    const input: RunInput = { ...inputOf(`run_${prompt}`), conversation: turns };
    input.model = { ...input.model, prompt };
    const seen = observed(`run_${prompt}`, input);
    start(async function* (call, signal) {
      prompts.push(call.messages);
      if (prompts.length === 1) {
        throw new ModelError("context_overflow", "too long", { overflow: { promptTokens: 2_000, limitTokens: 1_000 } });
      }
      yield* say(call, signal);
    }).run("inst_a", seen.run);
    expect(await seen.ended).toEqual(COMPLETED);
    host?.close();
  }
  const [whole, shrunk, short] = prompts.map((messages) => messages.slice(1));
  const all = toMessages(buildPrompt({ ...inputOf("run_full"), conversation: turns })).slice(1);
  expect(whole).toEqual(all);
  expect(shrunk?.length).toBeLessThan(all.length * 0.55);
  expect(shrunk).toEqual(all.slice(-(shrunk?.length ?? 0)));
  // It chooses from all of them.
  expect(short?.at(-1)).toEqual({ role: "user", content: turns[40]?.text ?? "" });
});

test("runs of one instance share a worker; cancelling one leaves the others alone", async () => {
  const hung = observed("run_a");
  const aborted = Promise.withResolvers<void>();
  const one = start(async function* (request, signal) {
    if (request.models[0] !== "m_run_a") yield* say(request, signal);
    else {
      signal.addEventListener("abort", () => aborted.resolve());
      yield* beginAndHang(request, signal);
    }
  });
  one.run("inst_a", hung.run);
  await hung.begun;
  const other = observed("run_b");
  one.run("inst_a", other.run);
  one.cancel("inst_a", "run_a");
  expect(await other.ended).toEqual(COMPLETED);
  expect(one.awake()).toBe(1);
  await aborted.promise;
  // Whoever cancels a run ends it, so nothing more is reported.
  expect(hung.events.some(({ type }) => type === "ended")).toBe(false);
});

test("a model's failure reaches the run with its message; an engine's unexpected error without", async () => {
  const one = start(async function* ({ models }) {
    yield [{ type: "text", text: "par" }];
    throw models[0] === "m_run_a" ? new ModelError("broken", "the server broke off") : new Error("secret");
  });
  const [failed, broken] = [observed("run_a"), observed("run_b")];
  one.run("inst_a", failed.run);
  one.run("inst_a", broken.run);
  expect(await failed.ended).toEqual({ kind: "failed", code: "model_error", message: "the server broke off" });
  expect(await broken.ended).toMatchObject({ kind: "failed", code: "internal_error" });
  expect(JSON.stringify(broken.events)).not.toContain("secret");
});

test("an instance with nothing to do sleeps, and the next run wakes it", async () => {
  const one = start(say, { idleMs: 0, tickMs: 5 });
  for (const runId of ["run_a", "run_b"]) {
    const { run, ended } = observed(runId);
    one.run("inst_a", run);
    expect(await ended).toEqual(COMPLETED);
    while (one.awake() > 0) await new Promise((resolve) => setTimeout(resolve, 1));
  }
});

test("of an account's idle instances, only so many stay awake: those used last", async () => {
  const one = start(say, { bounds: { ...BOUNDS, idleOfOne: 2 } });
  for (const name of ["a", "b", "c", "a"]) {
    const { run, ended } = observed(`run_${name}`);
    one.run(`inst_${name}`, run);
    expect(await ended).toEqual(COMPLETED);
  }
  expect(one.awake()).toBe(2);
  // A busy one does not count.
  const { run, begun } = observed("run_hangs");
  host?.close();
  const other = start(beginAndHang, { bounds: { ...BOUNDS, idleOfOne: 0 } });
  other.run("inst_a", run);
  await begun;
  expect(other.awake()).toBe(1);
});

test("an instance with a run in progress does not sleep", async () => {
  const one = start(beginAndHang, { idleMs: 0, tickMs: 2 });
  const { run, begun } = observed("run_a");
  one.run("inst_a", run);
  await begun;
  await ticks(10, 2);
  expect(one.awake()).toBe(1);
});

const badWorker = new URL("./bad-worker.ts", import.meta.url).href;
const spawn: typeof spawnWorker = (listener) => spawnWorker(listener, badWorker);

for (const fault of ["exits", "throws", "rejects", "lies"]) {
  test(`a worker that ${fault} fails its own runs and no other instance's, and the next run has a new one`, async () => {
    const one = start(beginAndHang, { spawn });
    const [dead, alive] = [observed("run_a"), observed("run_b")];
    one.run("inst_a", dead.run);
    one.run("inst_b", alive.run);
    await Promise.all([dead.begun, alive.begun]);
    const culprit = observed("run_c", { ...inputOf("run_c"), agentName: fault });
    one.run("inst_a", culprit.run);
    for (const { ended } of [dead, culprit]) {
      expect(await ended).toMatchObject({ kind: "failed", code: "internal_error" });
    }
    expect(one.awake()).toBe(1);
    const next = observed("run_d");
    one.run("inst_a", next.run);
    await next.begun;
    expect(alive.events.some(({ type }) => type === "ended")).toBe(false);
  });
}

/** Three seconds without an answer, long enough for every worker to run on a busy machine. */
const SOON_STUCK = { tickMs: 10, stuckTicks: 300 };

/**
 * Answers pings in the place of a worker that is not ready yet, and of the first `excuses` workers at all times: a busy
 * machine may keep them from answering for three seconds.
 */
function excusing(onPing: (isReady: boolean) => void = () => {}, excuses = 0): typeof spawnWorker {
  return (listener) => {
    const isExcused = excuses-- > 0;
    let isReady = false;
    const worker = spawn({
      ...listener,
      onMessages(texts) {
        isReady = true;
        listener.onMessages(texts);
      },
    });
    const send: typeof worker.send = (message) => {
      if (message.type === "ping") {
        onPing(isReady);
        if (isExcused || !isReady) listener.onMessages(['{"type":"pong"}']);
      }
      worker.send(message);
    };
    return { ...worker, send };
  };
}

test("a worker that blocks its event loop is ended, and its runs fail", async () => {
  const one = start(beginAndHang, { ...SOON_STUCK, spawn: excusing(undefined, 1) });
  const [stuck, alive] = [observed("run_a", { ...inputOf("run_a"), agentName: "loops" }), observed("run_b")];
  one.run("inst_b", alive.run);
  await alive.begun;
  one.run("inst_a", stuck.run);
  expect(await stuck.ended).toMatchObject({ kind: "failed", code: "internal_error" });
  await ticks(10, 5);
  expect(alive.events.some(({ type }) => type === "ended")).toBe(false);
  expect(one.awake()).toBe(1);
});

test("a stuck worker is found also when its run was cancelled", async () => {
  const pinged = Promise.withResolvers<void>();
  const one = start(beginAndHang, {
    ...SOON_STUCK,
    spawn: excusing((isReady) => isReady && pinged.resolve()),
  });
  const stuck = observed("run_a", { ...inputOf("run_a"), agentName: "loops" });
  one.run("inst_a", stuck.run);
  await pinged.promise;
  one.cancel("inst_a", "run_a");
  while (one.awake() > 0) await ticks(1, 10);
  expect(stuck.events).toEqual([]);
});

test("a run whose prompt cannot be built fails alone, and the cause is in the log", async () => {
  const lines: string[] = [];
  const one = start(beginAndHang, { log: pino({}, { write: (line: string) => void lines.push(line) }) });
  const [odd, other] = [observed("run_a", { ...inputOf("run_a"), files: null as never }), observed("run_b")];
  one.run("inst_a", other.run);
  await other.begun;
  one.run("inst_a", odd.run);
  expect(await odd.ended).toMatchObject({ kind: "failed", code: "internal_error" });
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    {
      ...{ accountId: "acct_a", instanceId: "inst_a", agentId: "agt_run_a", runId: "run_a" },
      stack: expect.stringMatching(/TypeError: [\s\S]+prompt\.ts/),
    },
  ]);
  expect(one.awake()).toBe(1);
  expect(other.events.some(({ type }) => type === "ended")).toBe(false);
});

const input = z.object({});
const callThenSay: Stream = async function* ({ messages }) {
  if (messagesIn(messages).at(-1)?.role === "tool") yield [{ type: "text", text: "done" }];
  else yield [{ type: "tool_call", call: { id: "c", name: "act", input: "{}" } }];
};

test("a tool acts only once its start is committed", async () => {
  const order: string[] = [];
  const act: Tool = {
    name: "act",
    description: "",
    input,
    deadlineMs: 1_000,
    changes: "outside",
    defaultPolicy: "allow",
    untrustedOutput: false,
    async run() {
      order.push("acts");
      return "ok";
    },
  };
  const committed = async () => {
    await ticks(1, 5);
    order.push("committed");
  };
  const { run, ended, events } = observed("run_a", inputOf("run_a"), committed);
  start(callThenSay, { toolboxOf: () => createToolbox([act]) }).run("inst_a", run);
  expect(await ended).toEqual(COMPLETED);
  expect(order.indexOf("acts")).toBeGreaterThan(order.indexOf("committed"));
  expect(events.find(({ type }) => type === "tool.completed")).toMatchObject({ output: "ok", isError: false });
});

test("a call that the host fails to make is an error for the model, and the run goes on", async () => {
  const tool = scriptedTool("look", "nothing", async () => "the value");
  const redact = () => Promise.reject(new Error("disk I/O error"));
  const { run, ended, events } = observed("run_a");
  start(callAllThenSay(["look"]), { toolboxOf: () => createToolbox([tool]), policy: policyPorts({ redact }) }).run(
    "inst_a",
    run,
  );
  expect(await ended).toEqual(COMPLETED);
  expect(events.find(({ type }) => type === "tool.completed")).toMatchObject({
    output: expect.stringContaining("failed inside the host"),
    isError: true,
  });
});

test("what a worker sends and the host cannot serve fails the runs of its instance, and no others", async () => {
  const toolboxOf = (instanceId: string) => {
    if (instanceId === "inst_a") throw new Error("disk I/O error");
    return createToolbox([scriptedTool("look", "nothing", async () => "the value")]);
  };
  const one = start(callAllThenSay(["look"]), { toolboxOf });
  const [broken, alive] = [observed("run_a"), observed("run_b")];
  one.run("inst_a", broken.run);
  one.run("inst_b", alive.run);
  expect(await broken.ended).toMatchObject({ kind: "failed", code: "internal_error" });
  expect(await alive.ended).toEqual(COMPLETED);
});

/** A model that calls these tools in one answer, then repeats their results. */
const callAllThenSay = (...calls: [name: string, input?: object][]): Stream =>
  async function* ({ messages }) {
    const results = messagesIn(messages).flatMap(({ role, content }) => (role === "tool" ? [content] : []));
    if (results.length > 0) yield [{ type: "text", text: results.join(" ") }];
    else
      yield calls.map(([name, input = {}], at) => ({
        type: "tool_call",
        call: { id: `c${at}`, name, input: JSON.stringify(input) },
      }));
  };

test("calls that only read run at the same time, each once the start of all is committed", async () => {
  const both = Promise.withResolvers<void>();
  let committed = 0;
  let running = 0;
  // If they ran one after the other, the first would wait for the second forever.
  const run: ScriptedRun = async ({ key }) => {
    expect(committed).toBeGreaterThan(0);
    if (++running === 2) both.resolve();
    await both.promise;
    return key;
  };
  const observing = observed("run_a", inputOf("run_a"), async () => void committed++);
  const toolbox = createToolbox([scriptedTool("read", "nothing", run), scriptedRequest(run)]);
  const calls = callAllThenSay(["read", { key: "a" }], ["request", { key: "b", method: "GET" }]);
  start(calls, { toolboxOf: () => toolbox }).run("inst_a", observing.run);
  expect(await observing.ended).toEqual(COMPLETED);
  expect(observing.events.find(({ type }) => type === "delta")).toEqual({ type: "delta", text: "a b" });
});

test("an account whose agents call many tools at once takes turns with the others", async () => {
  const made: string[] = [];
  // Longer than an account's share of a turn.
  const run: ScriptedRun = async ({ key }) => {
    for (const begun = performance.now(); performance.now() - begun < 2; );
    made.push(key);
    return key;
  };
  const hear: ((message: WorkerToHost) => void)[] = [];
  const one = start(beginAndHang, {
    toolboxOf: () => createToolbox([scriptedTool("read", "nothing", run)]),
    spawn(listener) {
      hear.push((message) => listener.onMessages([JSON.stringify(message)]));
      return { send() {}, end() {} };
    },
  });
  for (const account of ["acct_many", "acct_quiet"]) {
    expect(one.reserve(account, `inst_${account}`)).toBe("taken");
    // Its worker is at work.
    hear.at(-1)?.({ type: "pong" });
    one.runReserved(`inst_${account}`, observed(`run_${account}`).run);
  }
  const [many = expect.unreachable(), quiet = expect.unreachable()] = hear;
  const call = (of: string, callId: number): WorkerToHost => ({
    ...{ type: "tool.call", callId, runId: `run_acct_${of}` },
    call: { id: `c${callId}`, name: "read", input: JSON.stringify({ key: of }) },
  });
  for (let callId = 1; callId <= 20; callId++) many(call("many", callId));
  quiet(call("quiet", 21));
  while (made.length < 21) await ticks(1, 1);
  // On a busy machine it is charged for the time that its work was suspended, too, and waits a little longer.
  expect(made.indexOf("quiet")).toBeLessThan(10);
});

test("calls of which one changes something run one after the other, in their order", async () => {
  const order: string[] = [];
  const run: ScriptedRun = async ({ key }) => {
    order.push(`${key} begins`);
    await ticks(2, 1);
    order.push(`${key} ends`);
    return key;
  };
  const toolbox = createToolbox([scriptedTool("read", "nothing", run), scriptedRequest(run)]);
  const { run: hosted, ended } = observed("run_a");
  const calls = callAllThenSay(
    ["read", { key: "a" }],
    ["request", { key: "b", method: "POST" }],
    ["read", { key: "c" }],
  );
  start(calls, { toolboxOf: () => toolbox }).run("inst_a", hosted);
  expect(await ended).toEqual(COMPLETED);
  expect(order).toEqual(["a", "b", "c"].flatMap((key) => [`${key} begins`, `${key} ends`]));
});

test("the log has a call's result before the model gets it", async () => {
  const toolbox = createToolbox([scriptedTool("act", "outside", async ({ key }) => key)]);
  const seen = observed("run_a");
  const logged: boolean[] = [];
  const stream = callAllThenSay(["act", { key: "a" }]);
  const watched: Stream = (call, signal) => {
    logged.push(seen.events.some(({ type }) => type === "tool.completed"));
    return stream(call, signal);
  };
  start(watched, { toolboxOf: () => toolbox }).run("inst_a", seen.run);
  expect(await seen.ended).toEqual(COMPLETED);
  expect(logged).toEqual([false, true]);
});

test("only the start of a call that changes something outside must be on disk before the call is made", async () => {
  const run: ScriptedRun = async ({ key }) => key;
  const toolbox = createToolbox([
    scriptedTool("read", "nothing", run),
    scriptedTool("note", "workspace", run),
    scriptedRequest(run),
  ]);
  for (const [name, method, durability] of [
    ["read", "GET", "process"],
    ["note", "GET", "process"],
    ["request", "GET", "process"],
    ["request", "POST", "full"],
    ["nobody's", "POST", "process"],
  ] as const) {
    const one = observed("run_a");
    start(callAllThenSay([name, { key: "a", method }]), { toolboxOf: () => toolbox }).run("inst_a", one.run);
    expect(await one.ended).toEqual(COMPLETED);
    const starts = one.sunk.filter(({ kinds }) => kinds.includes("tool.started"));
    expect([name, method, starts.map((sunk) => sunk.durability)]).toEqual([name, method, [durability]]);
    expect(one.sunk.filter((sunk) => sunk.durability === "full").length).toBe(durability === "full" ? 1 : 0);
    host?.close();
  }
});

test("a call that waits releases the run: its instance may sleep, and the run's place is free", async () => {
  const { tool, acted, asked } = askingTool("send", "outside");
  const ask = callAllThenSay(["send", { key: "a" }], ["send", { key: "b" }]);
  const parts = { toolboxOf: () => createToolbox([tool]), idleMs: 0, tickMs: 5, bounds: { ...BOUNDS, runs: 1 } };
  const one = start(ask, parts);
  const waiting = observed("run_a");
  one.run("inst_a", waiting.run);
  expect(await waiting.ended).toEqual({ kind: "waiting" });
  const call = { id: "c0", name: "send", input: '{"key":"a"}' };
  expect(waiting.waits()).toEqual([
    { call, input: { key: "a", method: "GET" }, basis: null, waitsFor: asked.get("a") ?? expect.unreachable() },
  ]);
  expect(acted).toEqual([]);
  while (one.awake() > 0) await new Promise((resolve) => setTimeout(resolve, 1));

  const goAhead = asked.get("a")?.id ?? "";
  const journal = [{ text: "", calls: [{ ...call, result: null, goAhead }] }];
  const resumed = observed("run_a", { ...inputOf("run_a"), journal });
  one.run("inst_a", resumed.run);
  expect(await resumed.ended).toEqual(COMPLETED);
  expect(acted).toEqual(["a"]);
});

test("a call goes ahead once: not again in a later step, nor if a crash lost its outcome", async () => {
  const { tool, acted, asked } = askingTool("send", "outside");
  const wait = { kind: "approval", id: "appr_a" } as const;
  const call = { id: "c0", name: "send", input: '{"key":"a"}' };
  const callAgain: Stream = async function* ({ messages }) {
    if (messagesIn(messages).filter(({ role }) => role === "tool").length < 3) yield [{ type: "tool_call", call }];
  };
  const unknown = { output: "unknown", isError: true };
  for (const [result, times] of [
    [null, 1],
    [unknown, 0],
  ] as const) {
    acted.length = 0;
    asked.set("a", wait);
    const journal = [{ text: "", calls: [{ ...call, result, goAhead: wait.id }] }];
    const one = observed("run_a", { ...inputOf("run_a"), journal });
    start(callAgain, { toolboxOf: () => createToolbox([tool]) }).run("inst_a", one.run);
    expect(await one.ended).toEqual({ kind: "waiting" });
    expect([acted.length, asked.get("a") === wait]).toEqual([times, false]);
    host?.close();
  }
});

test("cancelling a run cancels all of its running tools", async () => {
  const begun = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const stopped: Promise<unknown>[] = [];
  const run: ScriptedRun = (_, { signal }) => {
    stopped.push(new Promise((resolve) => signal.addEventListener("abort", resolve)));
    begun[stopped.length - 1]?.resolve();
    return new Promise(() => {});
  };
  const one = start(callAllThenSay(["read"], ["read"]), {
    toolboxOf: () => createToolbox([scriptedTool("read", "nothing", run)]),
  });
  one.run("inst_a", observed("run_a").run);
  await Promise.all(begun.map(({ promise }) => promise));
  one.cancel("inst_a", "run_a");
  await Promise.all(stopped);
});

test("a tool does not act if its run was cancelled before its start was committed", async () => {
  let acted = false;
  const act: Tool = {
    name: "act",
    description: "",
    input,
    deadlineMs: 1_000,
    changes: "outside",
    untrustedOutput: false,
    async run() {
      acted = true;
      return "ok";
    },
  };
  const one = start(callThenSay, { toolboxOf: () => createToolbox([act]) });
  const gaveUp = Promise.withResolvers<void>();
  // Like a failed commit: the run is cancelled before the promise resolves.
  const { run } = observed("run_a", inputOf("run_a"), async () => {
    await ticks(1, 5);
    one.cancel("inst_a", "run_a");
    gaveUp.resolve();
  });
  one.run("inst_a", run);
  await gaveUp.promise;
  await ticks(2, 5);
  expect(acted).toBe(false);
});

test("a running tool is notified when its run is cancelled", async () => {
  const begun = Promise.withResolvers<void>();
  const stopped = Promise.withResolvers<void>();
  const act: Tool = {
    name: "act",
    description: "",
    input,
    deadlineMs: 60_000,
    changes: "outside",
    defaultPolicy: "allow",
    untrustedOutput: false,
    run(_, { signal }) {
      signal.addEventListener("abort", () => stopped.resolve());
      begun.resolve();
      return new Promise(() => {});
    },
  };
  const one = start(callThenSay, { toolboxOf: () => createToolbox([act]) });
  one.run("inst_a", observed("run_a").run);
  await begun.promise;
  one.cancel("inst_a", "run_a");
  await stopped.promise;
});

test("a sleeping or closed host ends its model calls, and reports nothing about runs that others have ended", async () => {
  const aborted = Promise.withResolvers<void>();
  const one = start(async function* (request, signal) {
    signal.addEventListener("abort", () => aborted.resolve());
    yield* beginAndHang(request, signal);
  });
  const { run, begun, events } = observed("run_a");
  one.run("inst_a", run);
  await begun;
  one.sleep("inst_a");
  await aborted.promise;
  expect(one.awake()).toBe(0);
  one.close();
  expect(one.closed()).toBe(true);
  await ticks(2, 5);
  expect(events.some(({ type }) => type === "ended")).toBe(false);
});

/** Resolves when a timer of `ms` has fired this often. */
async function ticks(count: number, ms: number): Promise<void> {
  for (let tick = 0; tick < count; tick++) await new Promise((resolve) => setTimeout(resolve, ms));
}

test("a run without a place is refused, and room is only reported if there is some", async () => {
  let calls = 0;
  const one = start(say, { bounds: { ...BOUNDS, workers: 1 }, onRoom: () => calls++ });
  expect(one.reserve("acct_a", "inst_a")).toBe("taken");
  expect(await onceStarted(() => one.reserve("acct_b", "inst_b"))).toBe("total");
  calls = 0;
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(calls).toBe(0);
  one.release("inst_a");
  await new Promise((resolve) => setImmediate(resolve));
  expect(calls).toBe(1);
  // The worker is idle now, and is put to sleep for the other account's.
  expect(one.reserve("acct_b", "inst_b")).toBe("taken");
  expect(one.awake()).toBe(1);
});

describe("an account that needs a worker and has no room", () => {
  const clock = handClock();
  /** Asks for a place, after enough time for whatever worker starts. */
  const ask = (account: string, at: number) => {
    clock.advance(10_000);
    return host?.reserve(`acct_${account}`, `inst_${account}${at}`);
  };
  const idle = (account: string, at: number) => {
    expect(ask(account, at)).toBe("taken");
    host?.release(`inst_${account}${at}`);
  };

  test("puts no other account's to sleep because of its own limit, however often it asks", async () => {
    const bounds = { ...BOUNDS, workers: 8, workersOfOne: 2 };
    start(say, { clock, bounds, onRoom: () => void ask("a", 2) });
    for (const at of [0, 1]) expect(ask("a", at)).toBe("taken");
    for (const account of ["b", "c", "d"]) idle(account, 0);
    expect(ask("a", 2)).toBe("each");
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(host?.awake()).toBe(5);
  });

  test("puts as many idle ones to sleep as it needs, and none if that would not help", () => {
    start(say, { clock, bounds: { ...BOUNDS, workers: 4 } });
    expect(ask("a", 0)).toBe("taken");
    for (const account of ["b", "c", "d"]) idle(account, 0);
    // An account may only take a second worker if one place stays free.
    expect(ask("a", 1)).toBe("taken");
    expect(host?.awake()).toBe(3);
    expect(ask("a", 2)).toBe("taken");
    idle("e", 0);
    expect(ask("a", 3)).toBe("total");
    expect(host?.awake()).toBe(4);
  });
});

test("a run waits for existing threads if no new one can be started, and fails if there are none", async () => {
  let threads = 1;
  const one = start(say, {
    spawn(...words) {
      if (threads-- <= 0) throw new TypeError("Failed to spawn worker thread");
      return spawnWorker(...words);
    },
  });
  expect(one.reserve("acct_a", "inst_a")).toBe("taken");
  expect(await onceStarted(() => one.reserve("acct_b", "inst_b"))).toBe("total");
  one.sleep("inst_a");
  expect(() => one.reserve("acct_b", "inst_b")).toThrow("Failed to spawn");
});

test("a place is free again when its run could not be begun and the place was released", () => {
  const run = () => {
    throw new Error("no trace");
  };
  const one = start(say, { traces: { run }, bounds: { ...BOUNDS, runsOfOne: 1 } });
  expect(one.reserve("acct_a", "inst_a")).toBe("taken");
  expect(() => one.runReserved("inst_a", observed("run_a").run)).toThrow("no trace");
  one.release("inst_a");
  expect(one.hasPlace("acct_a")).toBe(true);
});
