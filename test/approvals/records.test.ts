import { afterAll, beforeAll, expect, test } from "bun:test";
import { approvalQueries } from "../../src/approvals/queries.ts";
import { createApprovalRules } from "../../src/approvals/rules.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { plansOf } from "../support/query-plans.ts";
import { type Asking, type Outside, outsideTool, startAsking } from "./asking.ts";

let it: Asking;
let mail: Outside;
beforeAll(async () => {
  mail = outsideTool();
  it = await startAsking([mail.tool]);
});
afterAll(() => it.stop());

async function waiting(key: string) {
  it.calls(`mail ${key}`, ["mail", { key }]);
  return await it.asked(await it.queue(`mail ${key}`));
}

test("decisions, and calls that change something outside, are in the audit log and the metrics", async () => {
  const { approvalId, inputHash, runId } = await waiting("a");
  await it.decide(approvalId, { decision: "approve", inputHash });
  await it.until("run.completed", runId);
  const rows = it.server.foundation.audit.read(0, 1_000);
  const detailOf = (action: string) => {
    const row = rows.findLast((one) => one.action === action);
    return { ...row, detail: JSON.parse(row?.detail ?? "null") };
  };
  expect(detailOf("approval.decide")).toMatchObject({
    ...{ actor: it.person.accountId, subject: approvalId },
    detail: { decision: "approved", tool: "mail", agentId: it.agent },
  });
  expect(detailOf("tool.call")).toMatchObject({ subject: it.agent, detail: { tool: "mail", runId, approvalId } });
  const { body } = await it.server.ask("GET", "/metrics");
  expect(body).toContain('roost_tool_calls_total{tool="mail",outcome="asked"} 1');
  expect(body).toContain('roost_tool_calls_total{tool="mail",outcome="done"} 1');
  expect(body).toContain("roost_approvals_open 0");
});

test("a list is by status and instance, in pages, and its cursor is of that list only", async () => {
  const first = await waiting("b");
  await it.decide(first.approvalId, { decision: "deny" });
  await it.begin();
  const second = await waiting("c");
  await it.begin();
  const third = await waiting("d");
  const list = async (query: string) => (await it.person.ask("GET", `/v1/approvals?${query}`)).body;
  const idsOf = (page: { data: { approvalId: string }[] }) => page.data.map(({ approvalId }) => approvalId);
  const open = await list("status=open&limit=1");
  expect([idsOf(open), open.hasMore]).toEqual([[third.approvalId], true]);
  const rest = await list(`status=open&after=${open.nextCursor}`);
  expect([idsOf(rest), rest.hasMore]).toEqual([[second.approvalId], false]);
  expect(idsOf(await list(`status=denied&instanceId=${it.instance}`))).toEqual([first.approvalId]);
  expect((await it.person.ask("GET", `/v1/approvals?after=${open.nextCursor}`)).status).toBe(400);
  expect((await it.person.ask("GET", "/v1/approvals?status=maybe")).status).toBe(400);
});

test("what was decided for a run that may still go on with it is kept, however much was decided since", async () => {
  await it.begin();
  const { approvalId, runId } = await waiting("e");
  const { store } = it.server.foundation;
  const queries = approvalQueries(store.db);
  const { accountId } = it.person;
  const prune = () => store.transaction(() => queries.prune(accountId, 0));
  store.transaction(() =>
    queries.close(approvalId, { status: "approved", answers: null, note: null, decidedBy: null, decidedAt: 1 }),
  );
  prune();
  expect(queries.find(approvalId)?.status).toBe("approved");
  await it.person.ask("POST", it.at(`/runs/${runId}/cancel`));
  prune();
  expect(queries.find(approvalId)).toBeUndefined();
});

test("an instance has up to 1,000 rules: nothing more is remembered until one is removed, and others' count apart", async () => {
  const { store } = it.server.foundation;
  const rules = createApprovalRules(store.db, systemClock);
  const whose = { instanceId: it.instance, agentId: it.agent };
  const targetOf = (at: number) => ({ host: `host-${at}.test`, method: null });
  const add = (at: number, of = whose) => {
    store.transaction(() => rules.add(of, "mail", targetOf(at)));
    return rules.cover(of.agentId, "mail", targetOf(at));
  };
  store.transaction(() => {
    for (let at = 0; at < 999; at++) rules.add(whose, "mail", targetOf(at));
  });
  expect([add(999), add(1_000)]).toEqual([true, false]);
  const kept = rules.page(it.instance, null, 2_000);
  expect(kept).toHaveLength(1_000);
  const { instanceId } = (await it.person.ask("POST", "/v1/instances", { name: "other" })).body;
  const { agentId } = (await it.person.ask("POST", `/v1/instances/${instanceId}/agents`, { name: "Bo" })).body;
  expect(add(1_000, { instanceId, agentId })).toBe(true);
  store.transaction(() => rules.remove(it.instance, kept[0]?.ruleId ?? ""));
  expect([add(1_000), add(1_001)]).toEqual([true, false]);
});

test("no query of approvals reads what it does not need", () => {
  const { store } = it.server.foundation;
  const plans = plansOf(store, () => {
    const queries = approvalQueries(store.db);
    queries.seen("acct", "appr");
    queries.page("acct", { status: "open", instanceId: null }, null, 10);
    queries.openOf("run");
    queries.due(1, 10);
    queries.find("appr");
    queries.countOpenOf("acct", 10);
    const rules = createApprovalRules(store.db, systemClock);
    rules.cover("agt", "mail", { host: null, method: null });
    rules.page("inst", null, 10);
  });
  expect(plans.filter((plan) => plan.startsWith("SCAN") || plan.includes("TEMP B-TREE"))).toEqual([]);
});
