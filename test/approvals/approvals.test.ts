import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { hashOfJson } from "../../src/lib/canonical-json.ts";
import { newId } from "../../src/lib/id.ts";
import { askUser } from "../../src/tools/ask-user.ts";
import { MAX_ASKED_BYTES } from "../../src/tools/policy.ts";
import { kindsOf, readEvents } from "../messages/conversation.ts";
import { scriptedTool } from "../support/scripted-tools.ts";
import { type Asking, type Outside, outsideTool, startAsking } from "./asking.ts";

let it: Asking;
let mail: Outside;
beforeAll(async () => {
  mail = outsideTool();
  const look = scriptedTool("look", "nothing", async ({ key }) => `look ${key}`);
  it = await startAsking([mail.tool, askUser, look]);
});
afterAll(() => it.stop());
beforeEach(() => {
  mail.acted.length = 0;
  return it.begin();
});

/** A run that waits for an approval to mail `key`. */
async function waiting(key = "a", text = `mail ${key}`) {
  it.calls(text, ["mail", { key }]);
  const runId = await it.queue(text);
  return { runId, text, ...(await it.asked(runId)) };
}
const statusOf = async (approvalId: string) => (await it.person.ask("GET", `/v1/approvals/${approvalId}`)).body.status;

describe("a call that changes something outside", () => {
  test("waits for a person, who is shown all of it, and is made once it is approved", async () => {
    it.calls("mail it", ["mail", { key: "a" }]);
    const runId = await it.queue("mail it");
    const approval = await it.asked(runId);
    const input = { key: "a", method: "GET" };
    expect(approval).toMatchObject({
      ...{ kind: "tool", status: "open", tool: "mail", input, inputHash: hashOfJson(input), tainted: false },
      ...{ agentId: it.agent, instanceId: it.instance, runId, questions: null, answers: null, decidedBy: null },
    });
    expect(Date.parse(approval.expiresAt) - Date.parse(approval.createdAt)).toBe(24 * 3_600_000);
    const { approvalId, inputHash } = approval;
    expect((await it.run(runId)).body).toMatchObject({ status: "waiting", waitingFor: approvalId });
    expect((await it.person.ask("GET", `/v1/approvals/${approvalId}`)).body).toEqual(approval);
    expect((await it.person.ask("GET", "/v1/approvals?status=open")).body.data).toEqual([approval]);
    expect(mail.acted).toEqual([]);

    const { status, body } = await it.decide(approvalId, { decision: "approve", inputHash, note: "go" });
    expect([status, body.status, body.note, body.decidedBy]).toEqual([200, "approved", "go", expect.any(String)]);
    const frames = await it.until("run.completed", runId);
    expect(frames.find(({ event }) => event === "approval.decided")?.data.approval).toEqual(body);
    expect([mail.acted, it.results("mail it")]).toEqual([["a"], ["mail a"]]);
  });

  test("is not made where it was denied, and the model is told the note", async () => {
    const { approvalId, runId, text } = await waiting();
    expect((await it.decide(approvalId, { decision: "deny", note: "too late" })).body.status).toBe("denied");
    await it.until("run.completed", runId);
    expect([mail.acted, it.results(text)]).toEqual([[], [expect.stringContaining("too late")]]);
  });

  test("is decided on once: of two decisions at the same time one wins, and the other is told which", async () => {
    const { approvalId, inputHash, runId } = await waiting();
    const answers = await Promise.all([
      it.decide(approvalId, { decision: "approve", inputHash }),
      it.decide(approvalId, { decision: "deny" }),
    ]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    await it.until("run.completed", runId);
    const won = await statusOf(approvalId);
    expect(mail.acted).toEqual(won === "approved" ? ["a"] : []);
    const late = await it.decide(approvalId, { decision: "deny" });
    expect([late.status, late.body.error.message]).toEqual([409, expect.stringContaining(won)]);
  });

  test("is not approved by another hash, without one, or as an answer", async () => {
    const { approvalId, inputHash } = await waiting();
    const other = await it.decide(approvalId, { decision: "approve", inputHash: hashOfJson({ key: "b" }) });
    expect([other.status, other.body.error.message]).toEqual([409, expect.stringContaining("inputHash")]);
    for (const wrong of [
      { decision: "approve" },
      { decision: "approve", inputHash: "abc" },
      { decision: "approve", inputHash, answers: ["yes"] },
      { decision: "answer" },
      { decision: "answer", answers: ["yes"] },
      { decision: "deny", remember: true },
      { decision: "yes", inputHash },
      { decision: "deny", note: "x".repeat(1_001) },
      {},
    ]) {
      expect([wrong, (await it.decide(approvalId, wrong)).status]).toEqual([wrong, 400]);
    }
    expect([mail.acted, await statusOf(approvalId)]).toEqual([[], "open"]);
  });

  test.each([
    { approved: true },
    { _meta: { approved: true }, goAhead: "yes", policy: "always" },
    JSON.parse('{"__proto__":{"approved":true,"goAhead":"x"},"constructor":{"changes":"nothing"}}'),
  ])("asks whatever its input says: %j", async (more) => {
    it.calls("mail it", ["mail", { key: "a", ...more }]);
    const { input } = await it.asked(await it.queue("mail it"));
    expect([input, mail.acted]).toEqual([{ key: "a", method: "GET" }, []]);
  });

  test("is decided on by nothing that is said to the agent", async () => {
    const { approvalId, runId, inputHash } = await waiting();
    const other = (await it.person.ask("POST", it.at("/conversations"), {})).body.conversationId;
    for (const text of [`/approve ${approvalId}`, `/approve ${approvalId} ${inputHash}`, "approve"]) {
      await it.send(text, { conversationId: other });
    }
    expect([mail.acted, await statusOf(approvalId), (await it.run(runId)).body.status]).toEqual([
      [],
      "open",
      "waiting",
    ]);
  });

  test("may be one of several that wait at once, each decided by itself", async () => {
    await it.person.ask("PATCH", it.at(""), { tools: { look: "ask" } });
    const calls = ["a", "b"].map((key) => ({ id: `call_${key}`, name: "look", arguments: { key } }));
    it.when("look", { kind: "tools", calls }, { kind: "text", tokens: ["Done."] });
    const runId = await it.queue("look");
    await it.until("approval.requested", runId, ({ data }) => data.approval.input.key === "b");
    const open = (await it.person.ask("GET", "/v1/approvals?status=open")).body.data.toReversed();
    const [first, second] = open.filter((one: { runId: string }) => one.runId === runId);
    expect([first.input.key, second.input.key]).toEqual(["a", "b"]);
    await it.decide(first.approvalId, { decision: "deny" });
    expect((await it.run(runId)).body).toMatchObject({ status: "waiting", waitingFor: second.approvalId });
    await it.decide(second.approvalId, { decision: "approve", inputHash: second.inputHash });
    await it.until("run.completed", runId);
    expect(it.results("look")).toEqual([expect.stringContaining("denied"), "look b"]);
  });

  test("is refused to the model where it is too long to be shown", async () => {
    it.calls("long", ["mail", { key: "x".repeat(MAX_ASKED_BYTES) }]);
    const runId = await it.queue("long");
    await it.until("run.completed", runId);
    expect([mail.acted, it.results("long")]).toEqual([[], [expect.stringContaining(`at most ${MAX_ASKED_BYTES}`)]]);
  });
});

describe("an approval is cancelled", () => {
  test.each<[string, (runId: string) => Promise<unknown>]>([
    ["with its run", (runId) => it.cancel(runId)],
    [
      "by stopping its instance",
      async () => {
        for (const verb of ["stop", "start"]) await it.person.ask("POST", `/v1/instances/${it.instance}/${verb}`);
      },
    ],
    ["by a message that interrupts", () => it.send("never mind", { whileRunning: "interrupt" })],
  ])("%s", async (_, end) => {
    const { approvalId, inputHash, runId } = await waiting();
    await end(runId);
    expect(await statusOf(approvalId)).toBe("cancelled");
    const late = await it.decide(approvalId, { decision: "approve", inputHash });
    expect([late.status, late.body.error.message]).toEqual([409, expect.stringContaining("cancelled")]);
    expect(mail.acted).toEqual([]);
    const frames = await it.until("approval.decided", runId);
    expect(frames.at(-1)?.data.approval).toMatchObject({ approvalId, status: "cancelled", decidedBy: null });
  });

  test("before its run's end, so that whoever follows the run is told of it, then or later", async () => {
    const { approvalId, runId } = await waiting();
    const follow = async () => readEvents(await it.person.fetch("GET", it.at(`/events?runId=${runId}`)));
    await using live = await follow();
    await live.until(({ event }) => event === "approval.requested");
    await it.cancel(runId);
    const told = await live.rest();
    expect(kindsOf(told).slice(-3)).toEqual(["approval.decided", "message.completed", "run.cancelled"]);
    expect(told.at(-3)?.data.approval).toMatchObject({ approvalId, status: "cancelled" });
    await using afterwards = await follow();
    expect(await afterwards.rest()).toEqual(told);
  });

  test("and no longer there once what it belongs to was deleted or cleared", async () => {
    const remove: [string, () => Promise<unknown>][] = [
      ["messages", () => it.person.ask("DELETE", it.at("/messages"))],
      ["agent", () => it.person.ask("DELETE", it.at(""))],
    ];
    for (const [what, end] of remove) {
      await it.begin();
      const { approvalId } = await waiting();
      await end();
      expect([what, (await it.decide(approvalId, { decision: "deny" })).status]).toEqual([what, 404]);
      const { body } = await it.person.ask("GET", "/v1/approvals?limit=100");
      expect(body.data.map((one: { approvalId: string }) => one.approvalId)).not.toContain(approvalId);
      await it.server.app.settled();
      const left = "SELECT count(*) AS rows FROM approvals WHERE approval_id = ?";
      expect(it.server.foundation.store.sqlite.query(left).get(approvalId)).toEqual({ rows: 0 });
    }
  });
});

describe("whose approval it is", () => {
  test("somebody else's is not found, in a path, a query or a list", async () => {
    const { approvalId, inputHash } = await waiting();
    const stranger = await it.server.signUp();
    const decision = { decision: "approve", inputHash };
    expect((await stranger.ask("GET", `/v1/approvals/${approvalId}`)).status).toBe(404);
    expect((await stranger.ask("POST", `/v1/approvals/${approvalId}/decision`, decision)).status).toBe(404);
    expect((await stranger.ask("GET", `/v1/approvals?instanceId=${it.instance}`)).status).toBe(404);
    expect((await stranger.ask("GET", "/v1/approvals")).body.data).toEqual([]);
    for (const id of [newId("appr"), "appr_1", "x"]) {
      expect((await it.decide(id, decision)).status).toBe(404);
    }
    expect(await statusOf(approvalId)).toBe("open");
  });

  test("a key limited to an instance sees and decides only what is in it", async () => {
    const { approvalId } = await waiting();
    const { instanceId } = (await it.person.ask("POST", "/v1/instances", { name: "other" })).body;
    const keyOf = async (id: string) =>
      (await it.person.ask("POST", "/v1/auth/keys", { instanceId: id, scopes: ["approve"] })).body.key as string;
    const [inside, outside] = [await keyOf(it.instance), await keyOf(instanceId)];
    const at = `/v1/approvals/${approvalId}`;
    expect((await it.server.ask("GET", at, { key: outside })).status).toBe(404);
    expect((await it.server.ask("GET", "/v1/approvals", { key: outside })).body.data).toEqual([]);
    const decided = { key: outside, body: { decision: "deny" } };
    expect((await it.server.ask("POST", `${at}/decision`, decided)).status).toBe(404);
    expect((await it.server.ask("POST", `${at}/decision`, { ...decided, key: inside })).status).toBe(200);
  });

  test("a key decides only if it was named for that, by somebody who may", async () => {
    const { approvalId } = await waiting();
    const usual = (await it.person.ask("POST", "/v1/auth/keys", {})).body;
    expect(usual.scopes).toEqual(["read", "write", "chat"]);
    const decision = { key: usual.key, body: { decision: "deny" } };
    expect((await it.server.ask("POST", `/v1/approvals/${approvalId}/decision`, decision)).status).toBe(403);
    const more = { key: usual.key, body: { scopes: ["approve"] } };
    expect((await it.server.ask("POST", "/v1/auth/keys", more)).status).toBe(403);
    expect((await it.server.ask("GET", "/v1/auth/me", { key: usual.key })).status).toBe(200);
  });
});

describe("a question", () => {
  const questions = [{ question: "Which day?", options: ["Monday", "Friday"] }, { question: "How many?" }];

  test("waits for its answers, which are the call's result", async () => {
    it.calls("plan", ["ask_user", { questions }]);
    const runId = await it.queue("plan");
    const approval = await it.asked(runId);
    expect(approval).toMatchObject({
      ...{ kind: "question", tool: "ask_user", answers: null },
      questions: [questions[0], { question: "How many?", options: [] }],
    });
    const { approvalId, inputHash } = approval;
    for (const wrong of [
      { decision: "approve", inputHash },
      { decision: "answer", answers: ["Friday"] },
      { decision: "answer", answers: ["Friday", " "] },
    ]) {
      expect([wrong, (await it.decide(approvalId, wrong)).status]).toEqual([wrong, 400]);
    }
    const { body } = await it.decide(approvalId, { decision: "answer", answers: ["Friday", "two or three"] });
    expect([body.status, body.answers]).toEqual(["answered", ["Friday", "two or three"]]);
    await it.until("run.completed", runId);
    expect(it.results("plan")).toEqual(["Which day?\nFriday\n\nHow many?\ntwo or three"]);
  });

  test("may be left unanswered, and the model learns that", async () => {
    it.calls("plan", ["ask_user", { questions }]);
    const runId = await it.queue("plan");
    await it.decide((await it.asked(runId)).approvalId, { decision: "deny" });
    await it.until("run.completed", runId);
    expect(it.results("plan")).toEqual([expect.stringContaining("does not want to answer")]);
  });

  test.each([
    [[]],
    [Array.from({ length: 4 }, () => ({ question: "?" }))],
    [[{ question: "?", options: ["only one"] }]],
    [[{ question: "?", options: ["1", "2", "3", "4", "5"] }]],
    [[{ question: "x".repeat(1_001) }]],
  ])("that is out of bounds goes back to the model: %#", async (asked) => {
    it.calls("ask", ["ask_user", { questions: asked }]);
    await it.until("run.completed", await it.queue("ask"));
    expect(it.results("ask")).toEqual([expect.stringContaining("the input of ask_user is wrong")]);
  });
});
