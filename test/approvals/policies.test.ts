import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { z } from "zod";
import type { Tool } from "../../src/tools/tool.ts";
import { type Asking, type Outside, outsideTool, startAsking, strangersTool } from "./asking.ts";

let it: Asking;
let mail: Outside;
let requests: string[];
const input = z.object({ url: z.string(), method: z.string().default("GET") });
const request: Tool<typeof input> = {
  name: "http_request",
  description: "",
  input,
  deadlineMs: 1_000,
  changes: "outside",
  changesOf: ({ method }) => (method === "GET" ? "nothing" : "outside"),
  untrustedOutput: false,
  async run({ url, method }) {
    requests.push(`${method} ${url}`);
    return "ok";
  },
};
beforeAll(async () => {
  mail = outsideTool();
  it = await startAsking([mail.tool, request, strangersTool()]);
});
afterAll(() => it.stop());
beforeEach(() => {
  mail.acted.length = 0;
  requests = [];
  return it.begin();
});

const say = (tools: object) => it.person.ask("PATCH", it.at(""), { tools });
/** What becomes of a run with these calls. */
async function outcomeOf(...calls: [string, object][]): Promise<string> {
  it.calls("do it", ...calls);
  const runId = await it.queue("do it");
  const end = ["run.waiting", "run.completed"];
  await using stream = await it.events(0);
  const frames = await stream.until(({ event, data }) => data.runId === runId && end.includes(event));
  return frames.at(-1)?.event === "run.waiting" ? "asks" : "done";
}
const post = (url: string, method = "POST"): [string, object] => ["http_request", { url, method }];

describe("what the owner says about a tool", () => {
  test("is shown with the tool, and taken back with null", async () => {
    const toolOf = async (name: string) =>
      (await it.person.ask("GET", it.at("/tools"))).body.data.find((one: { name: string }) => one.name === name);
    expect(await toolOf("mail")).toMatchObject({
      ...{ changes: "outside", policy: "ask", defaultPolicy: "ask", source: "built-in", untrustedOutput: false },
    });
    expect((await say({ mail: "always", fetch: "deny" })).body.tools).toEqual({ mail: "always", fetch: "deny" });
    expect(await toolOf("mail")).toMatchObject({ policy: "always", defaultPolicy: "ask" });
    expect((await say({ mail: null })).body.tools).toEqual({ fetch: "deny" });
    expect(await toolOf("mail")).toMatchObject({ policy: "ask" });
    const made = await it.person.ask("POST", `/v1/instances/${it.instance}/agents`, {
      ...{ name: "Bob", tools: { mail: "allow", weather__today: "ask" } },
    });
    expect([made.status, made.body.tools]).toEqual([201, { mail: "allow", weather__today: "ask" }]);
  });

  test.each([
    { mial: "ask" },
    { mail: "maybe" },
    { mail: true },
    JSON.parse('{"__proto__":"always"}'),
    { constructor: "always" },
    ["mail"],
    "always",
    Object.fromEntries(Array.from({ length: 201 }, (_, at) => [`s__t${at}`, "ask"])),
  ])("is refused where it makes no sense: %#", async (tools) => {
    expect((await say(tools)).status).toBe(400);
  });

  test("deny: it is not offered, and refused to a model that calls it nevertheless, also when it was approved before", async () => {
    await say({ mail: "ask" });
    it.calls("do it", ["mail", { key: "a" }]);
    const runId = await it.queue("do it");
    const { approvalId, inputHash } = await it.asked(runId);
    await say({ mail: "deny" });
    await it.decide(approvalId, { decision: "approve", inputHash });
    await it.until("run.completed", runId);
    expect([mail.acted, it.results("do it")]).toEqual([[], [expect.stringContaining("denied")]]);
    expect(await outcomeOf(["mail", { key: "b" }])).toBe("done");
    expect(mail.acted).toEqual([]);
    const offered = it.mock.requests.at(-1)?.body.tools.map((one: { function: { name: string } }) => one.function.name);
    expect(offered).toEqual(["http_request", "fetch"]);
  });

  test("nothing: a request is judged by its method", async () => {
    expect(await outcomeOf(post("https://a.example/", "GET"))).toBe("done");
    expect(await outcomeOf(post("https://a.example/"))).toBe("asks");
    expect(requests).toEqual(["GET https://a.example/"]);
  });

  test("ask: also what changes nothing", async () => {
    await say({ http_request: "ask" });
    expect(await outcomeOf(post("https://a.example/", "GET"))).toBe("asks");
  });

  test("allow: without asking, but not in a tainted run", async () => {
    await say({ mail: "allow" });
    expect(await outcomeOf(["mail", { key: "a" }])).toBe("done");
    expect(mail.acted).toEqual(["a"]);
    expect(await outcomeOf(["fetch", {}], ["mail", { key: "b" }])).toBe("asks");
    expect(mail.acted).toEqual(["a"]);
  });

  test("always: also in a tainted run", async () => {
    await say({ mail: "always" });
    expect(await outcomeOf(["fetch", {}], ["mail", { key: "a" }])).toBe("done");
    expect(mail.acted).toEqual(["a"]);
  });
});

describe("an approval that is remembered", () => {
  async function remember(...calls: [string, object][]): Promise<void> {
    it.calls("do it", ...calls);
    const runId = await it.queue("do it");
    const { approvalId, inputHash } = await it.asked(runId);
    const decision = { decision: "approve", inputHash, remember: true };
    expect((await it.decide(approvalId, decision)).status).toBe(200);
    await it.until("run.completed", runId);
  }
  const rules = async () => (await it.person.ask("GET", `/v1/instances/${it.instance}/approval-rules`)).body.data;

  test("covers the same host, port and method, and nothing else", async () => {
    await remember(post("https://a.example/one"));
    expect(await outcomeOf(post("https://a.example/two"))).toBe("done");
    for (const other of [
      post("https://b.example/one"),
      post("https://a.example:8443/one"),
      post("http://a.example/one"),
      post("https://a.example/one", "DELETE"),
      post("https://a.example.evil.example/one"),
    ]) {
      await it.cancel((await it.person.ask("GET", it.at("/runs?limit=1"))).body.data[0].runId);
      expect([other, await outcomeOf(other)]).toEqual([other, "asks"]);
    }
    expect(requests).toEqual(["POST https://a.example/one", "POST https://a.example/two"]);
  });

  test("covers one agent and one tool, until the rule is deleted", async () => {
    await remember(["mail", { key: "a" }]);
    expect(await outcomeOf(["mail", { key: "b" }])).toBe("done");
    const [{ ruleId, ...rule }] = (await rules()).slice(-1);
    expect(rule).toEqual({ agentId: it.agent, tool: "mail", host: null, method: null, createdAt: expect.any(String) });
    const stranger = await it.server.signUp();
    const at = `/v1/instances/${it.instance}/approval-rules/${ruleId}`;
    expect((await stranger.ask("DELETE", at)).status).toBe(404);
    expect((await it.person.ask("DELETE", at)).body).toEqual({ ruleId, deleted: true });
    expect((await it.person.ask("DELETE", at)).status).toBe(404);
    expect(await outcomeOf(["mail", { key: "c" }])).toBe("asks");
    await it.begin();
    expect(await outcomeOf(["mail", { key: "d" }])).toBe("asks");
  });

  test("does not hold in a tainted run, and none is made there", async () => {
    await remember(["mail", { key: "a" }]);
    expect(await outcomeOf(["fetch", {}], ["mail", { key: "b" }])).toBe("asks");
    await it.begin();
    const before = (await rules()).length;
    await remember(["fetch", {}], ["mail", { key: "c" }]);
    expect((await rules()).length).toBe(before);
    expect(mail.acted).toEqual(["a", "c"]);
  });

  test("goes with its agent", async () => {
    await remember(["mail", { key: "a" }]);
    await it.person.ask("DELETE", it.at(""));
    await it.server.app.settled();
    expect((await rules()).filter((one: { agentId: string }) => one.agentId === it.agent)).toEqual([]);
  });
});
