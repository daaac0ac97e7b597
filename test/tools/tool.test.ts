import { expect, test } from "bun:test";
import { z } from "zod";
import { MAX_OUTPUT } from "../../src/tools/long-output.ts";
import { now } from "../../src/tools/now.ts";
import { type AskedCall, type CallContext, callTool as callWith, changeNothing } from "../../src/tools/policy.ts";
import type { Tool, ToolResult, Wait } from "../../src/tools/tool.ts";
import { createToolbox, type Toolbox } from "../../src/tools/toolbox.ts";
import { policyPorts } from "../support/policy-ports.ts";
import { scriptedRequest, scriptedTool } from "../support/scripted-tools.ts";

const NOON = Date.UTC(2026, 10, 21, 12, 0, 0);
const context = (signal = new AbortController().signal): CallContext => ({
  ...{ instanceId: "inst_a", agentId: "agt_a", conversationId: "conv_a", runId: "run_a" },
  ...{ isTainted: false, mayAsk: true, waiting: 0 },
  clock: { now: () => NOON, monotonicNs: () => 0n },
  signal,
});
const input = z.object({ name: z.string(), count: z.int().default(1) });
const echo = (run: Tool<typeof input>["run"], deadlineMs = 60_000): Tool =>
  ({ name: "echo", description: "", input, deadlineMs, changes: "nothing", untrustedOutput: false, run }) as Tool;
const call = async (tool: Tool, text: string, signal?: AbortSignal) =>
  resultOf(await callTool(createToolbox([tool, now]), { name: tool.name, input: text }, context(signal)));
/** What becomes of a call, as far as a model sees it: its result, or what it waits for. */
async function callTool(toolbox: Toolbox, asked: AskedCall, given: CallContext) {
  const reply = await callWith(toolbox, asked, given, policyPorts());
  return "waitsFor" in reply ? { waitsFor: reply.waitsFor } : { output: reply.output, isError: reply.isError };
}
const resultOf = (reply: ToolResult | { waitsFor: Wait }): ToolResult =>
  "waitsFor" in reply ? expect.unreachable() : reply;

test("a tool gets its input as parsed by its schema", async () => {
  const tool = echo(async (given) => JSON.stringify(given));
  expect(await call(tool, '{"name":"a","other":1}')).toEqual({ output: '{"name":"a","count":1}', isError: false });
});

test("the model gets what is wrong with a call, so that it can correct it", async () => {
  const tool = echo(async () => expect.unreachable());
  const said = async (text: string) => (await call(tool, text)).output;
  expect(await said("{")).toBe("the input of echo is not valid JSON");
  expect(await said("")).toContain("name");
  expect(await said('{"name":1}')).toContain("echo is wrong: name:");
  expect(await said("null")).toContain("echo is wrong: input:");
  expect(await callTool(createToolbox([tool, now]), { name: "ech", input: "{}" }, context())).toEqual({
    output: 'there is no tool "ech"; there are: echo, now',
    isError: true,
  });
});

test("a tool that waits says for what, and learns when it may go ahead", async () => {
  const wait = { kind: "approval", id: "appr_1" } as const;
  const tool = echo(async (_, { goAhead }) => (goAhead === wait.id ? "done" : { waitsFor: wait }));
  const ask = (goAhead?: string) =>
    callTool(createToolbox([tool]), { name: "echo", input: '{"name":"a"}' }, { ...context(), goAhead });
  expect(await ask()).toEqual({ waitsFor: wait });
  expect(await ask("appr_0")).toEqual({ waitsFor: wait });
  expect(await ask(wait.id)).toEqual({ output: "done", isError: false });
});

test("the error of a tool that throws, at once or later, goes to the model", async () => {
  const now = echo(() => {
    throw new Error("no disk");
  });
  expect(await call(now, '{"name":"a"}')).toEqual({ output: "no disk", isError: true });
  const later = echo(async () => Promise.reject(new Error("no net")));
  expect(await call(later, '{"name":"a"}')).toEqual({ output: "no net", isError: true });
});

test("a tool ends at its deadline or its run's cancellation, even if it ignores them", async () => {
  const deaf = () => new Promise<string>(() => {});
  expect((await call(echo(deaf, 10), '{"name":"a"}')).output).toBe("echo did not finish within 0.01 seconds");
  const cancel = new AbortController();
  let told: AbortSignal | undefined;
  const cancelled = call(
    echo(async (_, { signal }) => {
      told = signal;
      return await deaf();
    }),
    '{"name":"a"}',
    cancel.signal,
  );
  cancel.abort();
  expect((await cancelled).isError).toBe(true);
  expect(told?.aborted).toBe(true);
});

test("now gives the time of the host's clock in the requested zone", async () => {
  const said = async (text: string) =>
    resultOf(await callTool(createToolbox([now]), { name: "now", input: text }, context()));
  expect((await said("{}")).output).toBe("Saturday, 21 November 2026 at 12:00:00 UTC (2026-11-21T12:00:00.000Z)");
  expect((await said('{"timeZone":"Asia/Kolkata"}')).output).toContain("17:30:00");
  expect(await said('{"timeZone":"Atlantis"}')).toMatchObject({ isError: true });
});

test("a tool is described to models by a JSON Schema that requires no more than it needs", () => {
  const [described] = createToolbox([now]).offerTo(null, 32_768);
  expect(described).toEqual({
    name: "now",
    description: expect.any(String),
    inputSchema: expect.objectContaining({ type: "object", properties: { timeZone: expect.any(Object) } }),
  });
  expect(described?.inputSchema).not.toHaveProperty("required");
});

test("a tool of a run that has already ended is not run", async () => {
  const tool = echo(async () => expect.unreachable());
  expect(await call(tool, '{"name":"a"}', AbortSignal.abort(new Error("cancelled")))).toEqual({
    output: "cancelled",
    isError: true,
  });
});

test("an output that is too long is cut with a mark that says so, at any character; also that of an error", async () => {
  const say = (text: string) =>
    call(
      echo(async () => text),
      '{"name":"a"}',
    );
  const whole = "x".repeat(MAX_OUTPUT);
  expect(await say(whole)).toEqual({ output: whole, isError: false });
  for (const text of [`${whole}y`, "😀".repeat(MAX_OUTPUT), `a${"😀".repeat(MAX_OUTPUT)}`]) {
    const { output } = await say(text);
    expect(output.length).toBeLessThanOrEqual(MAX_OUTPUT);
    expect(output).toEndWith(
      `[… cut here: these are the first of ${text.length} characters; the rest could not be kept: there is no workspace …]`,
    );
    expect(output.isWellFormed()).toBe(true);
  }
  const broken = await call(
    echo(async () => Promise.reject(new Error(`${whole}y`))),
    '{"name":"a"}',
  );
  expect([broken.isError, broken.output.length]).toEqual([true, MAX_OUTPUT]);
  const unknown = resultOf(await callTool(createToolbox([]), { name: `${whole}y`, input: "{}" }, context()));
  expect(unknown.output.length).toBe(MAX_OUTPUT);
});

test("calls may run together if each changes nothing: by its tool, by its input, or because it is refused", () => {
  const run = async () => "";
  const toolbox = createToolbox([scriptedTool("read", "nothing", run), scriptedTool("write", "workspace", run)]);
  const together = (box: typeof toolbox, ...calls: [name: string, input: string][]) =>
    changeNothing(
      box,
      calls.map(([name, input]) => ({ name, input })),
    );
  expect(together(toolbox, ["read", "{}"], ["read", "{}"])).toBe(true);
  expect(together(toolbox, ["read", "{}"], ["write", "{}"])).toBe(false);
  expect(together(toolbox, ["read", "{}"], ["write", '{"key":1}'], ["launch", "{}"], ["write", "{"])).toBe(true);
  const request = createToolbox([scriptedRequest(run)]);
  expect(together(request, ["request", '{"method":"GET"}'], ["request", "{}"])).toBe(true);
  expect(together(request, ["request", '{"method":"GET"}'], ["request", '{"method":"POST"}'])).toBe(false);
});
