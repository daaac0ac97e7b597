import { expect, test } from "bun:test";
import type { Outcome } from "../../src/sandbox/child.ts";
import { NotRun, type Sandbox } from "../../src/sandbox/sandbox.ts";
import { createCodeRunner } from "../../src/skills/scripts.ts";
import { MAX_OUTPUT } from "../../src/tools/long-output.ts";
import { type CallContext, callTool } from "../../src/tools/policy.ts";
import { runJavaScript } from "../../src/tools/run-javascript.ts";
import { runScript } from "../../src/tools/run-script.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { createToolbox } from "../../src/tools/toolbox.ts";
import { policyPorts } from "../support/policy-ports.ts";

const context: CallContext = {
  ...{ instanceId: "inst_a", agentId: "agt_a", conversationId: "conv_a", runId: "run_a" },
  ...{ isTainted: false, mayAsk: true, waiting: 0 },
  clock: { now: () => 0, monotonicNs: () => 0n },
  signal: new AbortController().signal,
};

/** The tool with a sandbox whose scripts all end like this. */
function ending(outcome: Partial<Outcome> | Error, level: ReturnType<Sandbox["level"]> = "landlock") {
  const asked: Parameters<Sandbox["run"]>[] = [];
  const run: Sandbox["run"] = async (...words) => {
    asked.push(words);
    if (outcome instanceof Error) throw outcome;
    return { console: "", leftOut: 0, ...outcome } as Outcome;
  };
  const runCode = createCodeRunner({
    skills: { read: () => expect.unreachable() },
    readFile: () => expect.unreachable(),
    run: (job, given: CallContext) => runScript({ run }, job, given),
  });
  const tool = runJavaScript({ level: () => level }, runCode as Parameters<typeof runJavaScript>[1]) as Tool;
  const toolbox = createToolbox([tool]);
  async function call(input: object) {
    const asked = { name: "run_javascript", input: JSON.stringify(input) };
    const reply = await callTool(toolbox, asked, context, policyPorts());
    return "waitsFor" in reply ? expect.unreachable() : { output: reply.output, isError: reply.isError };
  }
  return { asked, toolbox, call, said: async (input: object = { code: "1" }) => (await call(input)) as object };
}

test("the input goes to the script as JSON, and the instance's turn is what it waits for", async () => {
  const { asked, call } = ending({ type: "result", json: "1" });
  await call({ code: "input", input: { a: [1] } });
  await call({ code: "input" });
  await call({ code: "input", input: null });
  expect(asked.map(([job]) => job.input)).toEqual(['{"a":[1]}', null, "null"]);
  expect(asked[0]?.[1].instanceId).toBe("inst_a");
  expect(await call({ input: 1 })).toMatchObject({ isError: true, output: expect.stringContaining("code") });
});

test("the model gets the result, then the console, then how much of that is left out", async () => {
  expect(await ending({ type: "result", json: '{"a":1}' }).said()).toEqual({
    output: 'result: {"a":1}',
    isError: false,
  });
  expect(await ending({ type: "result", json: "1", console: "a\nb", leftOut: 7 }).said()).toEqual({
    output: "result: 1\nconsole:\na\nb\n[… 7 more characters are left out …]",
    isError: false,
  });
  expect(await ending({ type: "result", json: null }).said()).toEqual({
    output: "result: none (return a value, or end with an expression)",
    isError: false,
  });
});

test("an error shows its first places, and the line of the first one", async () => {
  const stack = `    at parse (native)\n${"    at f (script.js:2:3)\n".repeat(20)}`;
  const error = { name: "TypeError", message: "no", stack };
  const { output } = (await ending({ type: "thrown", error, console: "so far" }).said({ code: "a\n  f(f)\nb" })) as {
    output: string;
  };
  expect(output.split("\n")).toEqual([
    "TypeError: no",
    ...Array(8).fill("    at f (script.js:2:3)"),
    "line 2: f(f)",
    "console:",
    "so far",
  ]);
});

test("what a script was stopped for is said with what to do, and what it had written", async () => {
  const said = async (why: string) =>
    (await ending({ type: "killed", why, console: "so far" } as Outcome).said()) as {
      output: string;
      isError: boolean;
    };
  for (const [why, words] of [
    ["deadline", "did not end within 10 seconds"],
    ["memory", "more memory than it may (128 MiB)"],
    ["output", "wrote far too much"],
    ["cancelled", "was stopped"],
    ["crash", "died before it had a result"],
  ] as const) {
    const { output, isError } = await said(why);
    expect(isError).toBe(true);
    expect(output).toContain(words);
    expect(output).toEndWith("\nconsole:\nso far");
  }
  const error = { name: "InternalError", message: "out of memory", stack: "" };
  expect(await ending({ type: "thrown", error }).said()).toMatchObject({
    output: "InternalError: out of memory (a script has 128 MiB)",
  });
  expect(await ending(new NotRun("too many scripts wait already")).said()).toEqual({
    output: "too many scripts wait already",
    isError: true,
  });
});

test("whatever a process sends, the model gets no more than it may", async () => {
  const long = "x".repeat(1_000_000);
  const error = { name: long, message: long, stack: `script.js:1:1 ${long}\n`.repeat(9) };
  const { output } = (await ending({ type: "thrown", error, console: long }).said({
    code: long.slice(0, 200_000),
  })) as { output: string };
  expect(output.length).toBeLessThanOrEqual(MAX_OUTPUT);
});

test("a host without a level does not offer it, and has no such tool", async () => {
  const { toolbox, call } = ending({ type: "result", json: "1" }, "none");
  expect(toolbox.offerTo(null, 32_768)).toEqual([]);
  expect(await call({ code: "1" })).toMatchObject({
    isError: true,
    output: expect.stringContaining('there is no tool "run_javascript"'),
  });
  expect(ending({ type: "result", json: "1" }, null).toolbox.offerTo(null, 32_768)).toHaveLength(1);
});

test("it changes nothing, and its description says what a script may do", () => {
  const { toolbox } = ending({ type: "result", json: "1" });
  expect(toolbox.find("run_javascript")).toMatchObject({
    changes: "nothing",
    untrustedOutput: false,
    deadlineMs: 85_000,
  });
  expect(toolbox.offerTo(null, 32_768)[0]).toMatchObject({
    description: expect.stringContaining("10 seconds and 128 MiB"),
    inputSchema: { required: ["code"] },
  });
});
