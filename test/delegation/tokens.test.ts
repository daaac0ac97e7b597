import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Agents, startAgents } from "./agents.ts";

const MOST = 60_000;
/** Fewer than a call reserves. */
const USAGE = { prompt_tokens: 4_000, completion_tokens: 900 };

let it: Agents;
beforeAll(async () => {
  const settings = { ROOST_DELEGATED_TOKENS: String(MOST), ROOST_ANSWER_TOKENS: "1000" };
  it = await startAgents([], {}, { settings, usage: USAGE });
});
afterAll(() => it.stop());

const delegates = (prefix: string): [string, object] => [
  "delegate",
  { tasks: [0, 1, 2, 3].map((at) => ({ title: `${prefix}${at}`, message: `${prefix}${at}` })) },
];
interface Caused {
  tokens: number;
  code: string | null;
}
const caused = () =>
  it.server.foundation.store.sqlite
    .query<Caused, []>(
      `SELECT prompt_tokens + completion_tokens AS tokens, error_code AS code FROM delegations JOIN runs USING (run_id)`,
    )
    .all();

test("all that one message asks copies and agents for takes no more tokens than it may, however many work at once", async () => {
  const [ada, bob] = [await it.agent("Ada"), await it.agent("Bob")];
  // Bob's copies belong to the same message.
  it.when(
    "ask",
    [["message_agent", { agent: bob, message: "share" }]],
    [delegates("one ")],
    [delegates("two ")],
    "End.",
  );
  it.when("share", [delegates("b")], "Shared.");
  const { status, body } = await it.send(ada, "ask");
  expect([status, body.message]).toEqual([200, "End."]);
  const runs = caused();
  const used = runs.reduce((sum, { tokens }) => sum + tokens, 0);
  expect(runs).toHaveLength(13);
  expect(used).toBeLessThanOrEqual(MOST);
  // What was refused did not fit.
  expect(used).toBeGreaterThan(MOST / 2);
  expect(new Set(runs.map(({ code }) => code))).toEqual(new Set([null, "budget_exceeded"]));
  expect(it.results("ask").at(-1)).toContain(`of ${MOST} tokens`);
});

test("the next message has the whole of it again", async () => {
  const ada = await it.agent("Ada again");
  it.when("again", [delegates("later ")], "End.");
  await it.send(ada, "again");
  expect(it.results("again")[0]).toContain("Said: later 3");
});
