import { expect, test } from "bun:test";
import fc from "fast-check";
import { toRow } from "../../src/messages/events/event.ts";
import type { EventLog } from "../../src/messages/events/event-log.ts";
import { readJournal, UNKNOWN_OUTCOME } from "../../src/messages/runs/journal.ts";
import { advance, newProgress } from "../../src/messages/runs/progress.ts";
import type { Run, StoredEvent } from "../../src/messages/schema.ts";
import type { ModelEvent, ModelMessage, ToolCall } from "../../src/models/engine.ts";
import { MAX_STEPS, runAgent } from "../../src/runtime/agent-loop.ts";
import type { LoopEvent, RunOutcome } from "../../src/runtime/protocol.ts";

/** What the model answers: a text in pieces, and calls; the last answer is the one without calls. */
interface Answer {
  pieces: string[];
  calls: ToolCall[];
}
interface Script {
  answers: Answer[];
  /** Steps whose tools change nothing, so that they run at the same time. */
  reads: boolean[];
}

/** One event log and one run, as they outlive what crashes. */
interface World {
  script: Script;
  rows: StoredEvent[];
  run: Run;
  /** Calls that acted, in all attempts: `<step>/<id>`. */
  acted: string[];
  asked: ModelMessage[][];
}

const newWorld = (script: Script): World => ({
  script,
  rows: [],
  run: { runId: "run_a", agentId: "agt_a", firstEventId: 1, steps: 0 } as Run,
  acted: [],
  asked: [],
});

const DEAD = new Error("the process is dead");

/**
 * Runs until the end, or until `lives` events are in the log and the process dies. What is under way then is told to
 * nobody; a tool whose start is in the log may have acted (`acts`) or not.
 */
async function attempt(world: World, lives: number, acts: boolean): Promise<RunOutcome | null> {
  const { script, rows, run } = world;
  const ofRun: EventLog["ofRun"] = (_, after, limit) => rows.filter(({ eventId }) => eventId > after).slice(0, limit);
  const journal = readJournal({ ofRun }, run) ?? expect.unreachable();
  let left = lives;
  let dead = lives === 0;
  const append = (event: Parameters<typeof toRow>[2]) => {
    if (dead) return;
    rows.push({ ...toRow("agt_a", "conv_a", event, 0), eventId: rows.length + 1 });
    if (--left === 0) dead = true;
  };
  if (rows.length === 0) append({ type: "run.started", runId: run.runId });
  else if (journal.shown) append({ type: "run.restarted", runId: run.runId });
  const progress = newProgress(run);
  const commit = (event: LoopEvent): RunOutcome | null => {
    const { told, outcome } = advance(progress, run.runId, [event]);
    for (const one of told) append(one);
    if (!dead) run.steps = progress.steps;
    return dead ? null : outcome;
  };
  const stepOf = (messages: readonly ModelMessage[]) => messages.filter(({ role }) => role === "assistant").length + 1;
  let step = Math.max(1, journal.steps.length);
  const parts = {
    async *streamModel({ messages }: { messages: ModelMessage[] }): AsyncGenerator<ModelEvent[]> {
      if (dead) throw DEAD;
      step = stepOf(messages);
      world.asked.push(structuredClone(messages));
      const answer = script.answers[step - 1] ?? { pieces: [], calls: [] };
      for (const text of answer.pieces) yield [{ type: "text", text }];
      yield answer.calls.map((call) => ({ type: "tool_call", call }));
    },
    async callTool({ id, input }: ToolCall) {
      const at = `${step}/${id}`;
      // The host makes no call before its start is in the log.
      if (!toldBy(world).started.includes(at)) throw DEAD;
      if (!dead || acts) world.acted.push(at);
      if (dead) throw DEAD;
      return { output: `${at} ${input}`, isError: false };
    },
    mayRunTogether: async () => script.reads[step - 1] ?? false,
    signal: new AbortController().signal,
  };
  const input = {
    runId: run.runId,
    agentName: "Ada",
    files: [],
    skills: [],
    moreSkills: 0,
    tools: [],
    model: { contextTokens: 8_000, tools: true, prompt: "full" as const },
    conversation: [{ role: "user" as const, text: "hi" }],
    earlier: 0,
    journal: journal.steps,
  };
  for await (const event of runAgent(input, parts)) {
    const outcome = commit(event);
    if (outcome) return outcome;
    if (dead && event.type !== "tool.started") return null;
  }
  return null;
}

interface Told {
  started: string[];
  text: string;
  outcomes: Map<string, string>;
}

/** What the log tells of a run. */
function toldBy({ rows }: World): Told {
  const started: string[] = [];
  const outcomes = new Map<string, string>();
  let text = "";
  for (const { type, data } of rows) {
    const { delta, step, toolCallId, output } = JSON.parse(data);
    if (type === "run.restarted") text = "";
    if (type === "message.delta") text += delta;
    if (type === "tool.started") started.push(`${step}/${toolCallId}`);
    if (type === "tool.completed") outcomes.set(started.findLast((at) => at.endsWith(`/${toolCallId}`)) ?? "", output);
  }
  return { started, text, outcomes };
}

const input = fc.oneof(
  fc.json(),
  fc.constant('{ "a" : 1 }'),
  fc.constant("not JSON"),
  fc.constant(""),
  fc.string({ unit: "binary" }),
);
const calls = (least: number) =>
  fc
    .array(input, { minLength: least, maxLength: 12 })
    // Servers number their calls anew with each answer.
    .map((inputs) => inputs.map((text, at) => ({ id: `call_${at}`, name: "", input: text })));
const pieces = fc.array(fc.oneof(fc.constantFrom("a", "ab", "aa", " "), fc.string({ minLength: 1 })), { maxLength: 3 });
const script = fc
  .record({
    steps: fc.array(fc.record({ pieces, calls: calls(1) }), { maxLength: MAX_STEPS + 1 }),
    last: pieces,
    reads: fc.array(fc.boolean(), { minLength: MAX_STEPS, maxLength: MAX_STEPS }),
  })
  .map(({ steps, last, reads }): Script => {
    // No two calls are the same: that would be a loop.
    const answers = steps.map((step, at) => ({
      ...step,
      calls: step.calls.map((call) => ({ ...call, name: `act_${at}_${call.id}` })),
    }));
    return { answers: [...answers, { pieces: last, calls: [] }], reads };
  });
const crashes = fc.array(fc.record({ lives: fc.nat({ max: 100 }), acts: fc.boolean() }), { maxLength: 6 });

test("wherever and however often a run is interrupted, it continues with what was missing and nothing else", async () => {
  await fc.assert(
    fc.asyncProperty(script, crashes, async (script, crashes) => {
      const whole = newWorld(script);
      const outcome = await attempt(whole, Number.POSITIVE_INFINITY, true);
      const cut = newWorld(script);
      let end: RunOutcome | null = null;
      for (const { lives, acts } of crashes) end ??= await attempt(cut, lives, acts);
      end ??= await attempt(cut, Number.POSITIVE_INFINITY, true);

      expect(end).toEqual(outcome);
      const [expected, told] = [toldBy(whole), toldBy(cut)];
      expect(told.text).toBe(expected.text);
      // Each call begins once, in its step and in its order; so the steps are those of the run that was not cut off.
      expect(told.started).toEqual(expected.started);
      // None acts twice, and only one whose outcome is unknown may not have acted.
      expect(new Set(cut.acted).size).toBe(cut.acted.length);
      const unknown = new Set(told.started.filter((at) => !told.outcomes.has(at)));
      expect(new Set([...cut.acted, ...unknown])).toEqual(new Set(whole.acted));
      for (const [at, output] of told.outcomes) expect(output).toBe(expected.outcomes.get(at) ?? "");

      // The last question to the model is the same but for what is unknown.
      let step = 0;
      const wanted = whole.asked.at(-1)?.map((message) => {
        if (message.role === "assistant") step++;
        const isUnknown = message.role === "tool" && unknown.has(`${step}/${message.toolCallId}`);
        return isUnknown ? { ...message, content: UNKNOWN_OUTCOME } : message;
      });
      expect(cut.asked.at(-1)).toEqual(wanted ?? []);
    }),
    { numRuns: 300 },
  );
});
