import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { createLedger } from "../../src/ledger/ledger.ts";
import { createRevenue, sumBalances } from "../../src/ledger/totals.ts";
import { type Ground, openGround } from "../support/route-harness.ts";
import { startTestServer } from "../support/test-server.ts";

let ground: Ground;
beforeAll(() => {
  ground = openGround();
});
afterAll(() => ground[Symbol.asyncDispose]());

test("revenue is the sum of its postings, whenever it was read before, and balances are those of all customers", () => {
  const { store, clock } = ground;
  const ledger = createLedger(store, clock);
  const accountId = ground.account().accountId;
  const other = ground.account().accountId;
  for (const id of [accountId, other]) ledger.open(id, 1_000_000n, "");
  const summed = (name: string) =>
    BigInt(
      store.sqlite
        .query<{ sum: number | null }, [string]>("SELECT sum(amount) AS sum FROM postings WHERE ledger_account GLOB ?")
        .get(name)?.sum ?? 0,
    );
  let known = createRevenue(store.db);
  const usage = { instanceId: "inst_1", hour: 1 };
  const against = [
    { ledgerAccount: `receivable:${accountId}`, amount: -2n },
    { ledgerAccount: "clearing:base", amount: 5n },
  ];
  const posts = [
    () => ledger.post({ type: "usage", accountId, amount: -7n, against: "revenue", usage }),
    () => ledger.post({ type: "usage", accountId: other, amount: -11n, against: "revenue", usage }),
    () => ledger.post({ type: "credit", accountId, amount: 13n, against: "grants" }),
    () => ledger.post({ type: "top_up", accountId, amount: 5n, against: "clearing:polygon" }),
    () => ledger.post({ type: "reversal", accountId, amount: -3n, against }),
    () => ledger.post({ type: "credit", accountId, amount: 1n, against: "somewhere new" }),
  ];
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 7 }), { maxLength: 12 }), (steps) =>
      store.transaction(() => {
        for (const step of steps) {
          posts[step]?.();
          if (step === 6) known = createRevenue(store.db);
          else if (step === 7) expect(known()).toBe(summed("revenue"));
        }
        expect([known(), createRevenue(store.db)()]).toEqual([summed("revenue"), summed("revenue")]);
        expect(sumBalances(store.db)).toBe(summed("customer:*"));
      }),
    ),
    { numRuns: 300 },
  );
});

test("an empty ledger has none", async () => {
  await using empty = openGround();
  const revenue = createRevenue(empty.store.db);
  expect([revenue(), revenue(), sumBalances(empty.store.db)]).toEqual([0n, 0n, 0n]);
});

test("/metrics shows balances, revenue, invoices, claims, payments and each node by its host only", async () => {
  const node = "http://127.0.0.1:1";
  const server = await startTestServer({
    ROOST_NETWORKS: "base",
    ROOST_BASE_RPC_URL: `${node}/key-in-the-path`,
    ROOST_MINIMUM_LAUNCH_BALANCE: "0.10",
  });
  const person = await server.signUp();
  const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "one" })).body;
  expect((await person.ask("POST", "/v1/billing/top-up")).status).toBe(402);
  const { ledger } = server.foundation;
  const usage = { instanceId, hour: 1 };
  ledger.post({ type: "usage", accountId: person.accountId, amount: -250_000n, against: "revenue", usage });
  const text: string = (await server.ask("GET", "/metrics")).body;
  // The instance runs meanwhile: on a busy machine long enough to add a little.
  expect(text).toMatch(/^# TYPE roost_revenue_usdc_total counter\nroost_revenue_usdc_total 0\.25\d*$/m);
  expect(text).toMatch(/^roost_balances_usdc 9\.7\d*$/m);
  expect(text).toContain("\nroost_metered_accounts 1\n");
  expect(text).toContain("\nroost_invoices_open 1\n");
  for (const status of ["pending", "credited", "refused", "expired"]) {
    expect(text).toContain(`\nroost_claims{status="${status}"} 0\n`);
  }
  expect(text).toContain('\nroost_payments{status="final"} 0\n');
  expect(text).toContain(`\nroost_rpc_up{network="base",node="${node}"} 0\n`);
  expect(text).toMatch(/\nroost_rpc_calls_total\{network="base",node="http:\/\/127\.0\.0\.1:1"\} [1-9]/);
  expect(text).toMatch(/\nroost_rpc_failures_total\{network="base",node="http:\/\/127\.0\.0\.1:1"\} [1-9]/);
  expect(text).not.toContain("key-in-the-path");
  await server.stop();
});
