import { describe, expect, test } from "bun:test";
import { hashOfJson } from "../../src/lib/canonical-json.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { MAX_JSON_DEPTH } from "../../src/lib/json-depth.ts";
import { askUser } from "../../src/tools/ask-user.ts";
import { type CallContext, callTool, MAX_WAITING_CALLS } from "../../src/tools/policy.ts";
import type { PolicyPorts } from "../../src/tools/ports.ts";
import type { Policy } from "../../src/tools/tool.ts";
import { createToolbox } from "../../src/tools/toolbox.ts";
import { policyPorts } from "../support/policy-ports.ts";
import { scriptedTool } from "../support/scripted-tools.ts";

let acted = 0;
const act = async () => `done ${++acted}`;
const toolbox = createToolbox([
  { ...scriptedTool("act", "outside", act), defaultPolicy: "ask" },
  scriptedTool("steer", "workspace", act, { steers: () => true }),
  scriptedTool("note", "workspace", act),
  scriptedTool("read", "nothing", act),
  askUser,
]);
const CONTEXT: CallContext = {
  ...{ instanceId: "inst_a", agentId: "agt_a", conversationId: "conv_a", runId: "run_a" },
  ...{ isTainted: false, mayAsk: true, waiting: 0, clock: systemClock, signal: new AbortController().signal },
};
const INPUT = { key: "a", method: "GET" };

/** `made`, `asks`, or why it is refused. */
async function outcomeOf(
  name: string,
  context: Partial<CallContext> = {},
  ports: Partial<PolicyPorts> = {},
  input = '{"key":"a"}',
): Promise<string> {
  const before = acted;
  const reply = await callTool(toolbox, { name, input }, { ...CONTEXT, ...context }, policyPorts(ports));
  if ("waitsFor" in reply) return acted === before ? "asks" : expect.unreachable();
  expect(acted > before).toBe(!reply.isError);
  return reply.isError ? reply.output : "made";
}

/** What each policy means for a call that changes something outside, steers, writes, reads; in a clean and a tainted run. */
test.each<[Policy, string[], string[]]>([
  ["deny", ["denied", "denied", "denied", "denied"], ["denied", "denied", "denied", "denied"]],
  ["ask", ["asks", "asks", "asks", "asks"], ["asks", "asks", "asks", "asks"]],
  ["allow", ["made", "made", "made", "made"], ["asks", "asks", "made", "made"]],
  ["always", ["made", "made", "made", "made"], ["made", "made", "made", "made"]],
])("%s", async (policy, clean, tainted) => {
  for (const [isTainted, expected] of [
    [false, clean],
    [true, tainted],
  ] as const) {
    const got: string[] = [];
    for (const name of ["act", "steer", "note", "read"]) {
      const outcome = await outcomeOf(name, { isTainted }, { policyOf: () => policy });
      got.push(outcome.includes("has denied") ? "denied" : outcome);
    }
    expect([isTainted, got]).toEqual([isTainted, [...expected]]);
  }
});

test("without the owner's word, only what changes something outside asks", async () => {
  expect(await outcomeOf("act")).toBe("asks");
  for (const name of ["steer", "note", "read"]) expect([name, await outcomeOf(name)]).toEqual([name, "made"]);
});

test("what is nested without end goes back to the model, and nobody is asked", async () => {
  for (const depth of [MAX_JSON_DEPTH, 1_000, 100_000]) {
    const input = `{"key":${"[".repeat(depth)}${"]".repeat(depth)}}`;
    expect(await outcomeOf("act", {}, {}, input)).toBe(
      `the input of act is nested more than ${MAX_JSON_DEPTH} levels deep`,
    );
  }
});

describe("a call that may go ahead", () => {
  const goAhead = "appr_1";
  test("is made if exactly this was approved", async () => {
    const approved = (id: string) => (id === goAhead ? { inputHash: hashOfJson(INPUT), basis: null } : null);
    expect(await outcomeOf("act", { goAhead }, { approved })).toBe("made");
    expect(await outcomeOf("act", { goAhead, isTainted: true }, { approved })).toBe("made");
  });

  test("is refused if something else was, and asks if nothing was", async () => {
    const other = { approved: () => ({ inputHash: hashOfJson({ ...INPUT, key: "b" }), basis: null }) };
    expect(await outcomeOf("act", { goAhead }, other)).toContain("is not the one that was approved");
    expect(await outcomeOf("act", { goAhead })).toBe("asks");
  });
});

test("a rule covers a call where the policy asks, but not in a tainted run", async () => {
  const rule = { isRemembered: () => true };
  expect(await outcomeOf("act", {}, rule)).toBe("made");
  expect(await outcomeOf("act", { isTainted: true }, rule)).toBe("asks");
});

describe("where nobody can decide, the model is told so, and nothing is done:", () => {
  test.each<[string, Partial<CallContext>, Partial<PolicyPorts>, string]>([
    ["there is no person", { mayAsk: false }, {}, "nobody can be asked"],
    ["the run waits for enough already", { waiting: MAX_WAITING_CALLS }, {}, `${MAX_WAITING_CALLS} calls`],
    ["the person has enough to decide", {}, { hasRoomToAsk: () => false }, "too much waits"],
  ])("%s", async (_, context, ports, why) => {
    expect(await outcomeOf("act", context, ports)).toContain(why);
    const questions = '{"questions":[{"question":"?"}]}';
    expect(await outcomeOf("ask_user", context, ports, questions)).toContain(why);
  });

  test("the input is no text that can be shown", async () => {
    expect(await outcomeOf("act", {}, {}, '{"key":"\\ud800"}')).toContain("not valid Unicode");
    expect(await outcomeOf("ask_user", {}, {}, '{"questions":[{"question":"\\ud800"}]}')).toContain("valid Unicode");
  });
});

test("what changes something outside is noted before it is done, and not done if that fails", async () => {
  const policyOf = () => "always" as const;
  const noted: unknown[] = [];
  const noteChange = async (...call: unknown[]) => void noted.push([...call.slice(1), acted]);
  const before = acted;
  await outcomeOf("act", { goAhead: "appr_1" }, { policyOf, noteChange });
  await outcomeOf("note", {}, { policyOf, noteChange });
  expect(noted).toEqual([["act", "appr_1", before]]);
  const failing = { policyOf, noteChange: () => Promise.reject(new Error("no log")) };
  expect(await outcomeOf("act", {}, failing)).toBe("no log");
});

test("every call is counted once, by what came of it", async () => {
  const counted: string[] = [];
  const ports = { count: (tool: string, outcome: string) => void counted.push(`${tool} ${outcome}`) };
  await outcomeOf("read", {}, ports);
  await outcomeOf("act", {}, ports);
  await outcomeOf("act", {}, { ...ports, policyOf: () => "deny" });
  await outcomeOf("act", {}, ports, "{");
  await outcomeOf("nothing", {}, ports);
  expect(counted).toEqual(["read done", "act asked", "act refused", "act invalid", "unknown invalid"]);
});
