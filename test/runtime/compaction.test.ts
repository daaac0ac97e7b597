import { afterEach, expect, jest, test } from "bun:test";
import { compact } from "../../src/runtime/compaction.ts";
import type { RunInput } from "../../src/runtime/protocol.ts";

afterEach(() => void jest.useRealTimers());

const MINUTE = 60_000;

/** A run whose two parts of older messages are to be summarised first. */
const run: RunInput = {
  ...{ runId: "run_a", agentName: "Ada", files: [], skills: [], moreSkills: 0, readsSkills: false, earlier: 0 },
  model: { contextTokens: 32_768, tools: false, prompt: "full" },
  conversation: [{ role: "user", text: "And now?" }],
  journal: [],
  compaction: {
    ...{ parts: ["Person: one", "Person: two"], messages: 2, isTainted: false, maxTokens: 500, still: [0], earlier: 0 },
    tokensBefore: 10_000,
    tokensOfRest: 10,
  },
};

test("a summary has two minutes for all of its parts; then the run goes on without it, and says so", async () => {
  jest.useFakeTimers();
  let calls = 0;
  /** Answers the first part after a minute and a half, and the second one never. */
  async function* streamModel(_: unknown, signal: AbortSignal) {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    if (++calls === 1) setTimeout(resolve, 1.5 * MINUTE);
    await promise;
    yield [{ type: "text" as const, text: "The person said one." }];
  }
  const events: string[] = [];
  let ended: RunInput | undefined;
  const done = (async () => {
    const work = compact(run, { streamModel, signal: new AbortController().signal, onFault() {} });
    let next = await work.next();
    for (; !next.done; next = await work.next()) {
      events.push("reason" in next.value ? next.value.reason : next.value.type);
    }
    ended = next.value;
  })();
  const pass = async (ms: number) => {
    jest.advanceTimersByTime(ms);
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  };
  await pass(0);
  await pass(1.5 * MINUTE);
  expect([calls, ended]).toEqual([2, undefined]);
  await pass(0.5 * MINUTE - 1_000);
  expect(ended).toBeUndefined();
  await pass(1_000);
  await done;
  expect(events).toEqual(["step", "step", "the model took longer than 2 minutes for the summary"]);
  const { compaction: _, ...rest } = run;
  expect(ended).toEqual(rest);
});

test("a summary that fails unexpectedly says that the cause is in the host's log, which gets it", async () => {
  const faults: unknown[] = [];
  const broken = new Error("secret internals");
  const parts = { signal: new AbortController().signal, onFault: (error: unknown) => faults.push(error) };
  const streamModel = () => {
    throw broken;
  };
  const work = compact(run, { ...parts, streamModel });
  const events = [];
  for (let next = await work.next(); !next.done; next = await work.next()) events.push(next.value);
  expect(events.at(-1)).toEqual({
    type: "compaction.failed",
    reason: "the summary failed unexpectedly; the cause is in the host's log",
  });
  expect(faults).toEqual([broken]);
});
