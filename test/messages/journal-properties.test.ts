import { expect, test } from "bun:test";
import fc from "fast-check";
import { toRow } from "../../src/messages/events/event.ts";
import type { EventLog } from "../../src/messages/events/event-log.ts";
import { readJournal, UNKNOWN_OUTCOME } from "../../src/messages/runs/journal.ts";
import { createParking } from "../../src/messages/runs/parking.ts";
import type { ParkingQueries, SavedJournal } from "../../src/messages/runs/parking-queries.ts";
import { advance, newProgress } from "../../src/messages/runs/progress.ts";
import type { Run, StoredEvent } from "../../src/messages/schema.ts";
import type { ModelEvent, ModelMessage, ToolCall } from "../../src/models/engine.ts";
import { MAX_STEPS, runAgent } from "../../src/runtime/agent-loop.ts";
import { holdRun, NO_MESSAGES, takeGoAhead, type WaitingCall } from "../../src/runtime/hosted-run.ts";
import type { LoopEvent, LoopOutcome } from "../../src/runtime/protocol.ts";

/** The model's answers: a text in pieces, and calls; only the last answer has no calls. */
interface Answer {
  pieces: string[];
  calls: ToolCall[];
}
interface Script {
  answers: Answer[];
  /** Steps whose tools change nothing, so that they run at the same time. */
  reads: boolean[];
  /** What happens to the calls, cyclically: made at once, or waits and then may go ahead, or gets a result. */
  waits: ("no" | "go ahead" | "result")[];
  /** Whether several waiting calls are decided on in their order. */
  inOrder: boolean;
  /** Whether the log drops its events while the run waits. */
  prunes: boolean;
}

/** One event log and one run: what survives a crash. */
interface World {
  script: Script;
  rows: StoredEvent[];
  /** The last event that was pruned from the log. */
  pruned: number;
  run: Run;
  saved: SavedJournal | null;
  /** Calls whose start is in the log, once for each time. */
  starts: string[];
  /** Calls that acted, in all attempts: `<step>/<id>`. */
  acted: string[];
  asked: ModelMessage[][];
}

const newWorld = (script: Script): World => ({
  script,
  rows: [],
  pruned: 0,
  run: {
    runId: "run_a",
    agentId: "agt_a",
    conversationId: "conv_a",
    firstEventId: 1,
    status: "running",
    steps: 0,
    promptTokens: 0,
    completionTokens: 0,
    journalUpTo: null,
  } as Run,
  saved: null,
  starts: [],
  acted: [],
  asked: [],
});

const DEAD = new Error("the process is dead");

/** The database of a process that lives for so many events. */
function open(world: World, lives: number) {
  let left = lives;
  const isDead = () => left <= 0;
  const append: EventLog["append"] = (agentId, batch) => {
    for (const event of batch) {
      if (isDead()) break;
      if (event.type === "tool.started") world.starts.push(`${event.step}/${event.toolCallId}`);
      world.rows.push({ ...toRow(agentId, "conv_a", event, 0), eventId: world.rows.length + 1 });
      left--;
    }
    return world.rows.length;
  };
  const ofRun: EventLog["ofRun"] = ({ firstEventId }, after, limit) =>
    firstEventId <= world.pruned ? null : world.rows.filter(({ eventId }) => eventId > after).slice(0, limit);
  const queries: ParkingQueries = {
    journal: () => structuredClone(world.saved),
    waitingOf: () => 0,
    save(_, state, journal) {
      Object.assign(world.run, state, { journalUpTo: journal.upTo });
      // As JSON, like the database.
      world.saved = JSON.parse(JSON.stringify(journal));
    },
    forget: () => expect.unreachable(),
  };
  const parking = createParking(
    () => world.run,
    queries,
    { append, ofRun },
    { markWaiting: () => expect.unreachable() },
  );
  return { isDead, append, ofRun, parking };
}

/** What happens to a call. It is the same wherever the run was interrupted before it. */
const fateOf = ({ answers, waits }: Script, at: string): Script["waits"][number] => {
  const all = answers.flatMap(({ calls }, step) => calls.map(({ id }) => `${step + 1}/${id}`));
  return waits[all.indexOf(at) % waits.length] ?? "no";
};

const resultOf = (at: string, input: string) => ({ output: `${at} ${input}`, isError: false });

/**
 * Runs until the end, until the run waits, or until `lives` events are in the log and the process dies. What is in
 * progress then is never reported; a tool whose start is in the log may have acted (`acts`) or not.
 */
async function attempt(world: World, lives: number, acts: boolean): Promise<LoopOutcome | null> {
  const { script, rows, run } = world;
  const { isDead, append, ofRun, parking } = open(world, lives);
  const journal = readJournal({ ofRun }, run, parking.saved(run)) ?? expect.unreachable();
  if (rows.length === 0) append("agt_a", [{ type: "run.started", runId: run.runId }]);
  else if (journal.shown) append("agt_a", [...journal.lost, { type: "run.restarted", runId: run.runId }]);
  const progress = newProgress(run, journal.continues ? journal.text : "");
  const waits: WaitingCall[] = [];
  const commit = (event: LoopEvent): LoopOutcome | null => {
    const { reported, outcome } = advance(progress, run.runId, [event]);
    append("agt_a", reported);
    if (isDead()) return null;
    Object.assign(run, { steps: progress.steps });
    if (outcome?.kind === "waiting") {
      expect(parking.park(run, waits)?.status).toBe("waiting");
      // Calls after a waiting one wait too, unless they run at the same time.
      if (!script.reads[step - 1]) expect(world.starts.at(-1)).toBe(`${step}/${waits[0]?.call.id}`);
    } else if (outcome) expect(progress.text).toBe(shownBy(world).text);
    return outcome;
  };
  const stepOf = (messages: readonly ModelMessage[]) => messages.filter(({ role }) => role === "assistant").length + 1;
  let step = Math.max(1, journal.steps.length);
  const input = {
    runId: run.runId,
    agentName: "Ada",
    files: [],
    skills: [],
    moreSkills: 0,
    readsSkills: false,
    model: { contextTokens: 8_000, tools: true, prompt: "full" as const },
    conversation: [{ role: "user" as const, text: "hi" }],
    earlier: 0,
    journal: journal.steps,
    journalShown: journal.continues,
  };
  const hosted = {
    ...{
      agentId: "agt_a",
      conversationId: "conv_a",
      models: ["m"],
      tools: [],
      input,
      turnTokens: [10],
      turnMessages: NO_MESSAGES,
    },
    ...{ isTainted: false, mayAsk: true, taint: async () => {}, sink: async () => {} },
  };
  const held = holdRun(hosted, null);
  const parts = {
    async *streamModel(messages: ModelMessage[]): AsyncGenerator<ModelEvent[]> {
      if (isDead()) throw DEAD;
      step = stepOf(messages);
      world.asked.push(structuredClone(messages));
      const answer = script.answers[step - 1] ?? { pieces: [], calls: [] };
      for (const text of answer.pieces) yield [{ type: "text", text }];
      // Servers restart their call ids with each answer.
      yield answer.calls.map((call, at) => ({ type: "tool_call", call: { ...call, id: `call_${at}` } }));
    },
    async callTool(call: ToolCall) {
      const at = `${step}/${call.id}`;
      const goAhead = takeGoAhead(held, call);
      // The host makes a call only once its start is in the log; a call that may go ahead has a second start.
      if (world.starts.filter((one) => one === at).length < (goAhead === undefined ? 1 : 2)) throw DEAD;
      if (goAhead === undefined && fateOf(script, at) !== "no") {
        if (isDead()) throw DEAD;
        waits.push({ call, input: {}, basis: null, waitsFor: { kind: "approval", id: at } });
        return "waits" as const;
      }
      expect(goAhead).toBe(fateOf(script, at) === "no" ? undefined : at);
      if (!isDead() || acts) world.acted.push(at);
      if (isDead()) throw DEAD;
      return resultOf(at, call.input);
    },
    mayRunTogether: async () => script.reads[step - 1] ?? false,
    onFault() {},
    signal: new AbortController().signal,
  };
  for await (const event of runAgent(input, parts)) {
    const outcome = commit(event);
    if (outcome) return outcome;
    if (isDead() && event.type !== "tool.started") return null;
  }
  return null;
}

/** Decides on everything that the run waits for, twice: late and repeated decisions change nothing. */
function decideAll(world: World): void {
  const { script, run } = world;
  const { parking } = open(world, Number.POSITIVE_INFINITY);
  if (script.prunes) world.pruned = world.rows.length;
  const open_ = world.saved?.steps.at(-1)?.calls.filter(({ waitsFor }) => waitsFor !== undefined) ?? [];
  expect(open_.length).toBeGreaterThan(0);
  for (const { waitsFor, input } of script.inOrder ? open_ : open_.toReversed()) {
    expect(run).toMatchObject({ status: "waiting", waitingKind: "approval" });
    const at = waitsFor?.id ?? "";
    const decision = fateOf(script, at) === "go ahead" ? "go ahead" : resultOf(at, input);
    expect(parking.decide(run.runId, at, decision)).not.toBeNull();
    expect(parking.decide(run.runId, at, decision)).toBeNull();
  }
  expect(run).toMatchObject({ status: "running", waitingKind: null, waitingId: null });
  const turns = world.rows.map(({ type }) => type).filter((type) => type === "run.waiting" || type === "run.resumed");
  expect(turns.slice(-2)).toEqual(["run.waiting", "run.resumed"]);
}

/** Runs with these crashes, and then until the end. */
async function runWith(world: World, crashes: { lives: number; acts: boolean }[]): Promise<LoopOutcome> {
  const left = [...crashes];
  for (;;) {
    const { lives, acts } = left.shift() ?? { lives: Number.POSITIVE_INFINITY, acts: true };
    const outcome = await attempt(world, lives, acts);
    if (outcome && outcome.kind !== "waiting") return outcome;
    if (world.run.status === "waiting") decideAll(world);
  }
}

interface Shown {
  started: string[];
  text: string;
  outcomes: Map<string, string>;
}

/** What the log says about a run; a call that was allowed to go ahead counts as started once. */
function shownBy({ rows }: World): Shown {
  const started: string[] = [];
  const outcomes = new Map<string, string>();
  let text = "";
  for (const { type, data } of rows) {
    const { delta, step, toolCallId, output } = JSON.parse(data);
    if (type === "run.restarted") text = "";
    if (type === "message.delta") text += delta;
    const at = `${step}/${toolCallId}`;
    if (type === "tool.started" && !started.includes(at)) started.push(at);
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
const inputs = fc.array(input, { minLength: 1, maxLength: 12 });
const pieces = fc.array(fc.oneof(fc.constantFrom("a", "ab", "aa", " "), fc.string({ minLength: 1 })), { maxLength: 3 });
const fate = fc.oneof(
  { weight: 8, arbitrary: fc.constant("no" as const) },
  fc.constantFrom("go ahead" as const, "result" as const),
);
const script = fc
  .record({
    steps: fc.array(fc.record({ pieces, inputs }), { maxLength: MAX_STEPS + 1 }),
    last: pieces,
    reads: fc.array(fc.boolean(), { minLength: MAX_STEPS, maxLength: MAX_STEPS }),
    waits: fc.array(fate, { minLength: 1, maxLength: 12 }),
    inOrder: fc.boolean(),
    prunes: fc.boolean(),
  })
  .map(({ steps, last, ...others }): Script => {
    const taken = new Set<string>();
    const answers = steps.map(({ pieces, inputs }, at) => {
      // No two calls are the same: that would be a loop. And each has an id of its own.
      const calls = inputs.map((input, place) => {
        const id = taken.has(`call_${place}`) ? `call_${place}_${at + 1}` : `call_${place}`;
        return { id, name: `act_${at}_call_${place}`, input };
      });
      for (const { id } of calls) taken.add(id);
      return { pieces, calls };
    });
    return { answers: [...answers, { pieces: last, calls: [] }], ...others };
  });
const crashes = fc.array(fc.record({ lives: fc.nat({ max: 100 }), acts: fc.boolean() }), { maxLength: 6 });

test("wherever and however often a run is interrupted or waits, it continues with what was missing and nothing else", async () => {
  await fc.assert(
    fc.asyncProperty(script, crashes, async (script, crashes) => {
      const whole = newWorld(script);
      const outcome = await runWith(whole, []);
      const cut = newWorld(script);
      expect(await runWith(cut, crashes)).toEqual(outcome);

      const [expected, shown] = [shownBy(whole), shownBy(cut)];
      expect(shown.text).toBe(expected.text);
      // Each call starts in its step and in order, so the steps are those of an uninterrupted run.
      expect(shown.started).toEqual(expected.started);
      // No call acts twice or without permission, and only one whose outcome is unknown may not have acted.
      expect(new Set(cut.acted).size).toBe(cut.acted.length);
      const unknown = new Set(shown.started.filter((at) => shown.outcomes.get(at) === UNKNOWN_OUTCOME));
      // Whatever has begun is in the log with what became of it.
      expect(shown.started.filter((at) => !shown.outcomes.has(at))).toEqual([]);
      expect(cut.acted.filter((at) => !whole.acted.includes(at))).toEqual([]);
      expect(whole.acted.filter((at) => !cut.acted.includes(at) && !unknown.has(at))).toEqual([]);
      expect(whole.acted.toSorted()).toEqual(
        expected.started.filter((at) => fateOf(script, at) !== "result").toSorted(),
      );
      for (const [at, output] of shown.outcomes) {
        if (!unknown.has(at)) expect(output).toBe(expected.outcomes.get(at) ?? "");
      }

      // The last request to the model is the same, except for unknown outcomes.
      let step = 0;
      const wanted = whole.asked.at(-1)?.map((message) => {
        if (message.role === "assistant") step++;
        const isUnknown = message.role === "tool" && unknown.has(`${step}/${message.toolCallId}`);
        return isUnknown ? { ...message, content: UNKNOWN_OUTCOME, isError: true as const } : message;
      });
      expect(cut.asked.at(-1)).toEqual(wanted ?? []);
    }),
    { numRuns: 200 },
  );
});
