import { afterEach, beforeEach, expect, test } from "bun:test";
import { APPROVAL_LIFE_MS } from "../../src/approvals/approvals.ts";
import { type HandClock, handClock } from "../lib/hand-clock.ts";
import { type Asking, type Outside, outsideTool, startAsking } from "./asking.ts";

let it: Asking;
let mail: Outside;
let clock: HandClock;
beforeEach(async () => {
  mail = outsideTool();
  clock = handClock();
  it = await startAsking([mail.tool], { clock });
});
afterEach(() => it.stop());

test("a day without a decision is a denial that the model is told, and nothing can be decided any more", async () => {
  it.calls("mail it", ["mail", { key: "a" }]);
  const runId = await it.queue("mail it");
  const { approvalId, inputHash } = await it.asked(runId);
  const key = (await it.person.ask("POST", "/v1/auth/keys", { scopes: ["approve"] })).body.key as string;
  const decide = () =>
    it.server.ask("POST", `/v1/approvals/${approvalId}/decision`, { key, body: { decision: "approve", inputHash } });
  clock.advance(APPROVAL_LIFE_MS - 1);
  await it.server.app.approvals.expireDue();
  const read = async () => (await it.server.ask("GET", `/v1/approvals/${approvalId}`, { key })).body;
  expect((await read()).status).toBe("open");
  clock.advance(1);
  // Late, though it is not closed yet: that closes it, so that whoever reads it now is told the same.
  const late = await decide();
  expect([late.status, late.body.error.message]).toEqual([409, expect.stringContaining("expired")]);
  // The run goes on by itself: its next model call has the result.
  await it.mock.arrived(2);
  expect(await read()).toMatchObject({ status: "expired", decidedBy: null });
  expect((await decide()).status).toBe(409);
  expect([mail.acted, it.results("mail it")]).toEqual([
    [],
    [expect.stringContaining("Nobody decided within 24 hours")],
  ]);
});

test("an approval that cannot be closed holds up no other, and is closed once it can be", async () => {
  const ids: string[] = [];
  for (const name of ["stuck", "other"]) {
    await it.begin();
    it.calls(name, ["mail", { key: name }]);
    ids.push((await it.asked(await it.queue(name))).approvalId);
  }
  const { sqlite } = it.server.foundation.store;
  const statuses = () =>
    ids.map((id) => sqlite.query("SELECT status FROM approvals WHERE approval_id = ?").values(id)[0]?.[0]);
  sqlite.run(
    `CREATE TRIGGER stuck BEFORE UPDATE ON approvals WHEN OLD.approval_id = '${ids[0]}' BEGIN SELECT raise(ABORT, 'stuck'); END`,
  );
  clock.advance(APPROVAL_LIFE_MS);
  await it.server.app.approvals.expireDue();
  expect(statuses()).toEqual(["open", "expired"]);
  sqlite.run("DROP TRIGGER stuck");
  await it.server.app.approvals.expireDue();
  expect(statuses()).toEqual(["expired", "expired"]);
});
