import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { hashOfJson } from "../../src/lib/canonical-json.ts";
import { type Asking, type Outside, outsideTool, startAsking } from "./asking.ts";

let it: Asking;
let mail: Outside;
beforeAll(async () => {
  mail = outsideTool();
  it = await startAsking([mail.tool]);
});
afterAll(() => it.stop());
beforeEach(() => {
  mail.acted.length = 0;
  return it.begin();
});

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
});
