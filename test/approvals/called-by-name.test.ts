import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { hashOfJson } from "../../src/lib/canonical-json.ts";
import { MANY_TOOLS } from "../support/many-tools.ts";
import { scriptedTool } from "../support/scripted-tools.ts";
import { type Asking, type Outside, outsideTool, startAsking, strangersTool } from "./asking.ts";

let it: Asking;
let post: Outside;
let other: Outside;
beforeAll(async () => {
  // Beside Roost's own, more tools than a twentieth of the model's context holds.
  [post, other] = [outsideTool("letters__post"), outsideTool("letters__burn")];
  const many = MANY_TOOLS.map(([name, description]) =>
    scriptedTool(name, "nothing", async () => name, { description }),
  );
  const moreTools = [...many, { ...post.tool, description: "Posts a letter." }, other.tool, strangersTool()];
  it = await startAsking(undefined, { moreTools });
});
afterAll(() => it.stop());
beforeEach(async () => {
  post.acted.length = 0;
  other.acted.length = 0;
  await it.begin();
});

const INPUT = { key: "a", method: "GET" };
const byName = (name: string, input: unknown): [string, object] => ["call_tool", { name, input }];
const say = (tools: object) => it.person.ask("PATCH", it.at(""), { tools });
const END = ["run.waiting", "run.completed"];
/** What becomes of a run with these calls, and what its model was told. */
async function outcomeOf(...calls: [string, object][]) {
  it.calls("do it", ...calls);
  const runId = await it.queue("do it");
  await using stream = await it.events(0);
  const frames = await stream.until(({ event, data }) => data.runId === runId && END.includes(event));
  return { runId, frames, waits: frames.at(-1)?.event === "run.waiting", told: it.results("do it") };
}

test("a tool that was not offered is found, asked for by its own name, and executed as it was shown, once, after a restart", async () => {
  it.calls("post it", ["search_tools", { query: "post a letter" }], byName("letters__post", { key: "a" }));
  const runId = await it.queue("post it");
  const approval = await it.asked(runId);
  expect(approval).toMatchObject({ tool: "letters__post", input: INPUT, inputHash: hashOfJson(INPUT), tainted: false });
  const { tools } = it.mock.requests.at(-1)?.body ?? {};
  const offered: string[] = tools.map((tool: { function: { name: string } }) => tool.function.name);
  expect(offered).toContainValues([
    ...["list_files", "read_file", "write_file", "edit_file", "read_skill", "web_fetch", "ask_user"],
    ...["search_tools", "call_tool"],
  ]);
  expect(offered).not.toContain("letters__post");
  expect(it.results("post it")[0]).toContain("letters__post: Posts a letter.\ninput: {");

  await it.server.restart();
  expect(post.acted).toEqual([]);
  const { approvalId, inputHash } = approval;
  const wrong = await it.decide(approvalId, { decision: "approve", inputHash: hashOfJson({ key: "a" }) });
  expect(wrong.status).toBe(409);
  expect((await it.decide(approvalId, { decision: "approve", inputHash })).status).toBe(200);
  const frames = await it.until("run.completed", runId);
  expect(post.acted).toEqual(["a"]);
  // Events name the tool; its model sees the call as it made it, of a tool that it was offered.
  const named = frames.filter(({ event }) => /^tool\.|^run\.waiting/.test(event)).map(({ data }) => data);
  expect(new Set(named.map(({ name, calls }) => name ?? calls[0].name))).toEqual(
    new Set(["search_tools", "letters__post"]),
  );
  expect(named.find(({ name }) => name === "letters__post")?.input).toEqual({ key: "a" });
  const history = it.mock.requests.at(-1)?.body.messages;
  const calls = history.flatMap((one: { tool_calls?: object[] }) => one.tool_calls ?? []);
  expect(calls[1].function).toEqual({
    name: "call_tool",
    arguments: JSON.stringify({ name: "letters__post", input: { key: "a" } }),
  });
  expect(it.results("post it")[1]).toBe("letters__post a");
});

test("policies are those of the tool that is called, not those of call_tool", async () => {
  await say({ call_tool: "always", letters__post: "ask" });
  expect(await outcomeOf(byName("letters__post", { key: "a" }))).toMatchObject({ waits: true });
  await it.begin();
  await say({ letters__post: "deny" });
  const denied = await outcomeOf(byName("letters__post", { key: "a" }));
  expect([denied.waits, denied.told]).toEqual([false, [expect.stringContaining("has denied letters__post")]]);
  expect(post.acted).toEqual([]);
  await say({ letters__post: "allow" });
  expect((await outcomeOf(byName("letters__post", { key: "b" }))).told).toEqual(["letters__post b"]);
});

test("a call by name taints its run, and asks in a tainted one", async () => {
  await say({ letters__post: "allow" });
  const { waits, told, runId } = await outcomeOf(byName("fetch", {}), byName("letters__post", { key: "a" }));
  expect([waits, told[0]]).toEqual([true, expect.stringContaining("<untrusted-")]);
  expect((await it.asked(runId)).tainted).toBe(true);
  expect(post.acted).toEqual([]);
});

test("what is remembered of one tool holds for no other that is called by name", async () => {
  const { runId } = await outcomeOf(byName("letters__post", { key: "a" }));
  const { approvalId, inputHash } = await it.asked(runId);
  await it.decide(approvalId, { decision: "approve", inputHash, remember: true });
  await it.until("run.completed", runId);
  const { body } = await it.person.ask("GET", `/v1/instances/${it.instance}/approval-rules`);
  expect(body.data).toMatchObject([{ tool: "letters__post" }]);
  expect(await outcomeOf(byName("letters__post", { key: "b" }))).toMatchObject({ waits: false });
  expect(await outcomeOf(byName("letters__burn", { key: "b" }))).toMatchObject({ waits: true });
  expect([post.acted, other.acted]).toEqual([["a", "b"], []]);
});

test.each<[string, object, string]>([
  ["itself", { name: "call_tool", input: { name: "letters__post", input: { key: "a" } } }, "cannot call itself"],
  ["a tool that the agent lacks", { name: "letters__eat", input: {} }, 'there is no tool "letters__eat"'],
  ["a name of every object", { name: "__proto__", input: {} }, 'there is no tool "__proto__"'],
  ["no tool", { input: { key: "a" } }, "the input of call_tool is wrong: name"],
  [
    "an input that does not fit",
    { name: "letters__post", input: { key: 5 } },
    "the input of letters__post is wrong: key",
  ],
  ["an input that is none", { name: "letters__post", input: null }, "the input of letters__post is wrong"],
])("call_tool with %s goes back to the model as an error", async (_, input, message) => {
  const { waits, told } = await outcomeOf(["call_tool", input]);
  expect([waits, told, post.acted]).toEqual([false, [expect.stringContaining(message)], []]);
});

test("an input that is sent as text is read as the JSON in it", async () => {
  const { waits, runId } = await outcomeOf(byName("letters__post", '{"key":"a","approved":true}'));
  expect([waits, (await it.asked(runId)).input]).toEqual([true, INPUT]);
});

test("reading tools that are called by name run at the same time", async () => {
  const calls = ["weather__alerts", "maps__geocode"].map((name, at) => ({
    ...{ id: `call_${at}`, name: "call_tool", arguments: { name, input: {} } },
  }));
  it.when("look", { kind: "tools", calls }, { kind: "text", tokens: ["Done."] });
  const runId = await it.queue("look");
  const frames = await it.until("run.completed", runId);
  const kinds = frames.filter(({ event }) => event.startsWith("tool.")).map(({ event }) => event);
  expect(kinds).toEqual(["tool.started", "tool.started", "tool.completed", "tool.completed"]);
});
