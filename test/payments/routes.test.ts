import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { findImbalance } from "../../src/ledger/imbalance.ts";
import { createLedger, type Ledger } from "../../src/ledger/ledger.ts";
import { AppError } from "../../src/lib/app-error.ts";
import { newId } from "../../src/lib/id.ts";
import type { Caller } from "../../src/limits/caller.ts";
import type { Wanted } from "../../src/payments/invoices.ts";
import type { Payment } from "../../src/payments/payment.ts";
import { billingRoutes } from "../../src/payments/routes.ts";
import { DAY, HOUR, handClock, MINUTE, SECOND } from "../lib/hand-clock.ts";
import { type Ground, openGround, type RouteServer, serve } from "../support/route-harness.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";
import { startPaying, topUp } from "./paying.ts";

/** A Saturday's last hour, UTC. */
const START = Date.UTC(2026, 10, 21, 23, 0);
const clock = handClock(START);
let server: TestServer;
let owner: Person;
beforeAll(async () => {
  server = await startTestServer({ ROOST_NETWORKS: "polygon,base" }, { clock });
  owner = await server.signUp();
});
afterAll(() => server.stop());

const create = async (person: Person, name = "one"): Promise<string> =>
  (await person.ask("POST", "/v1/instances", { name })).body.instanceId;
/** Reads the meters of the person's account, as the timer does. */
const settle = (person: Person) => person.ask("PATCH", "/v1/auth/me", { monthlyLimit: null });
const micros = (money: string): bigint => BigInt(money.replace(".", ""));

describe("GET /v1/billing", () => {
  test("shows the balance, what things cost, and the networks in their order", async () => {
    const idle = await server.signUp();
    expect(await idle.ask("GET", "/v1/billing")).toMatchObject({
      status: 200,
      body: {
        balance: "10.000000",
        owed: "0.000000",
        currency: "USDC",
        pricePerHour: "0.030000",
        minimumLaunchBalance: "0.500000",
        minimumTopUp: "1.000000",
        runningInstances: 0,
        estimatedEmptyAt: null,
        networks: ["polygon", "base"],
      },
    });
  });

  test("the balance is live, and emptyAt is when the running instances have used it up", async () => {
    const person = await server.signUp(undefined, "0.60");
    await create(person);
    await create(person, "two");
    const emptyAt = clock.now() + 10 * HOUR;
    clock.advance(20 * MINUTE);
    const { body } = await person.ask("GET", "/v1/billing");
    expect(body).toMatchObject({ balance: "0.580000", runningInstances: 2 });
    expect(Math.abs(Date.parse(body.estimatedEmptyAt) - emptyAt)).toBeLessThan(SECOND);
  });
});

describe("GET /v1/billing/usage", () => {
  test("shows days newest first, live, and also a deleted instance's", async () => {
    const person = await server.signUp();
    const first = await create(person);
    const start = clock.now();
    const untilMidnight = DAY - (start % DAY);
    clock.advance(untilMidnight - 1);
    await settle(person);
    clock.advance(1 + 2 * SECOND);
    await settle(person);
    clock.advance(10 * SECOND);
    await settle(person);
    clock.advance(90 * MINUTE + 500);
    const second = await create(person, "two");
    const [today, yesterday] = [clock.now(), start].map((ms) => new Date(ms).toISOString().slice(0, 10));
    const list = async (query = "") => (await person.ask("GET", `/v1/billing/usage${query}`)).body.data;
    const all = await list();
    expect(all.map(({ day, instanceId }: Record<string, string>) => [day, instanceId])).toEqual([
      [today, second],
      [today, first],
      [yesterday, first],
    ]);
    expect(all[0]).toEqual({ instanceId: second, day: today, seconds: 0, cost: "0.000000", currency: "USDC" });
    expect(all[1].seconds).toBe(5410);
    // It may include a fraction of a micro-USDC left over from the day before.
    expect(["0.045087", "0.045088"]).toContain(all[1].cost);
    expect(all[2]).toMatchObject({ seconds: Math.floor(untilMidnight / 1000) + 2 });
    const { accrued } = (await person.ask("GET", `/v1/instances/${first}`)).body.billing;
    const cost = (rows: { cost: string }[]) => rows.reduce((sum, row) => sum + micros(row.cost), 0n);
    expect(cost(all)).toBe(micros(accrued));

    await person.ask("DELETE", `/v1/instances/${first}`);
    expect(await list(`?instanceId=${first}`)).toEqual([all[1], all[2]]);
    expect(await list(`?instanceId=${first}&from=${yesterday}&to=${yesterday}`)).toEqual([all[2]]);
    expect(await list("?to=2026-01-01")).toEqual([]);
    expect(await list("?from=2099-01-01")).toEqual([]);

    const paged = await person.ask("GET", `/v1/billing/usage?limit=2&instanceId=${first}`);
    expect(paged.body).toMatchObject({ data: [all[1], all[2]], hasMore: false, nextCursor: null });
    const page = await person.ask("GET", "/v1/billing/usage?limit=2");
    expect(page.body).toMatchObject({ data: [all[0], all[1]], hasMore: true });
    const next = await person.ask("GET", `/v1/billing/usage?limit=2&after=${page.body.nextCursor}`);
    expect(next.body).toEqual({ data: [all[2]], hasMore: false, nextCursor: null });
    const elsewhere = await person.ask("GET", `/v1/billing/usage?to=2026-12-31&after=${page.body.nextCursor}`);
    expect(elsewhere.status).toBe(400);
  });

  test("refuses invalid days, and spans that end before they begin", async () => {
    for (const query of [
      "from=2026-02-29",
      "from=2026-13-01",
      "to=2026-04-31",
      "to=yesterday",
      "from=",
      "from=2026-1-1",
      "from=2026-11-21T00:00:00Z",
      "from=2026-01-02&to=2026-01-01",
      "limit=0",
      "after=nonsense",
    ]) {
      const { status, body } = await owner.ask("GET", `/v1/billing/usage?${query}`);
      expect([query, status, body.error.code]).toEqual([query, 400, "invalid_request"]);
      expect(body.error.message).toMatch(/^(from|to|limit|after): expected /);
    }
    for (const query of [
      "from=2024-02-29&to=2024-02-29",
      "from=2000-01-01&to=2099-12-31",
      "from=0001-01-01&to=9999-12-31",
      "from=0001-01-01",
      "to=0000-01-01",
    ]) {
      expect((await owner.ask("GET", `/v1/billing/usage?${query}`)).body).toMatchObject({ hasMore: false });
    }
  });

  test("another account's instance is 404, and so is an unknown one", async () => {
    const stranger = await server.signUp();
    const foreign = await create(stranger);
    for (const id of [foreign, newId("inst"), "inst_1", "nonsense", ""]) {
      const { status, body } = await owner.ask("GET", `/v1/billing/usage?instanceId=${id}&from=nonsense`);
      expect([status, body.error.message]).toEqual([404, "instance not found"]);
    }
    expect((await stranger.ask("GET", `/v1/billing/usage?instanceId=${foreign}`)).status).toBe(200);
  });
});

describe("GET /v1/billing/transactions", () => {
  test("sums an hour's usage into one line, at its last posting", async () => {
    const person = await server.signUp();
    clock.advance(HOUR - (clock.now() % HOUR));
    const instanceId = await create(person);
    const list = async () => (await person.ask("GET", "/v1/billing/transactions")).body.data;
    const [credit] = await list();
    expect(credit).toMatchObject({
      transactionId: expect.stringMatching(/^txn_/),
      type: "credit",
      amount: "10.000000",
      balanceAfter: "10.000000",
      instanceId: null,
      txHash: null,
      network: null,
    });
    clock.advance(20 * MINUTE);
    await settle(person);
    const [early] = await list();
    expect(early).toMatchObject({ type: "usage", amount: "-0.010000", balanceAfter: "9.990000", instanceId });
    clock.advance(20 * MINUTE);
    await settle(person);
    const late = await list();
    expect(late).toHaveLength(2);
    expect(late[0]).toMatchObject({ type: "usage", amount: "-0.020000", balanceAfter: "9.980000", instanceId });
    expect(late[0].transactionId).not.toBe(early.transactionId);
    expect(Date.parse(late[0].createdAt)).toBe(clock.now());
    clock.advance(30 * MINUTE);
    await person.ask("POST", `/v1/instances/${instanceId}/stop`);
    clock.advance(MINUTE);
    await person.ask("POST", `/v1/instances/${instanceId}/start`);
    clock.advance(20 * MINUTE);
    await settle(person);
    const hours = await list();
    expect(hours.map(({ amount }: { amount: string }) => amount)).toEqual(["-0.010000", "-0.035000", "10.000000"]);
    expect(hours.map(({ balanceAfter }: { balanceAfter: string }) => balanceAfter)).toEqual([
      "9.955000",
      "9.965000",
      "10.000000",
    ]);
  });

  test("a cursor of another account, or an invented one, is refused", async () => {
    const { body } = await owner.ask("GET", "/v1/billing/transactions?limit=1");
    expect(body).toMatchObject({ hasMore: false, nextCursor: null });
    const { accountId } = owner;
    server.foundation.ledger.post({ type: "credit", accountId, amount: 1n, against: "grants" });
    const { nextCursor } = (await owner.ask("GET", "/v1/billing/transactions?limit=1")).body;
    expect((await owner.ask("GET", `/v1/billing/transactions?after=${nextCursor}`)).body.data).toHaveLength(1);
    const other = await server.signUp();
    expect((await other.ask("GET", `/v1/billing/transactions?after=${nextCursor}`)).status).toBe(400);
    const forged = Buffer.from(`${"m".repeat(12)}nonsense`).toString("base64url");
    expect((await owner.ask("GET", `/v1/billing/transactions?after=${forged}`)).status).toBe(400);
  });
});

describe("POST /v1/billing/top-up", () => {
  let ground: Ground;
  let ledger: Ledger;
  let server: RouteServer;
  let caller: Caller;
  /** The outcome of the next request's payment. */
  let outcome: Payment | null = null;
  let quoted: Wanted | undefined;
  let presented = 0;

  beforeAll(() => {
    ground = openGround();
    ledger = createLedger(ground.store, ground.clock);
    caller = ground.account();
    ledger.open(caller.accountId, 2_500_000n, "");
    const routes = billingRoutes({
      meter: {
        balanceOf: (accountId) => ledger.accountBalance(accountId).balance,
        owedBy: () => 0n,
        runningInstances: () => 0,
        emptyAt: () => null,
      },
      pricePerHour: 30_000n,
      minimumLaunchBalance: 500_000n,
      minimumTopUp: 1_000_000n,
      networks: ["base", "polygon"],
      async takePayment(_accountId, request) {
        if (request.headers.get("x-payment") === null) return null;
        presented++;
        return outcome;
      },
      async quote(_accountId, wanted) {
        quoted = wanted;
        const { reason, retryAfterSeconds } = wanted;
        return new AppError("payment_required", reason, {
          body: { x402: { invoiceId: "inv_1" } },
          ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
        });
      },
    });
    server = serve(routes, ground);
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await ground[Symbol.asyncDispose]();
  });

  const ask = (body?: unknown, headers: Record<string, string> = {}) =>
    server.send(caller, "POST", "/v1/billing/top-up", body, headers);
  const paying = { "X-PAYMENT": "{}" };

  test("without a payment it is 402 with a quote for what was asked", async () => {
    expect(await ask()).toMatchObject({ status: 402, body: { x402: { invoiceId: "inv_1" } } });
    expect(quoted).toMatchObject({ amount: undefined, network: undefined });
    expect(await ask({ amount: "25.5", network: "polygon" })).toMatchObject({ status: 402 });
    expect(quoted).toMatchObject({ amount: 25_500_000n, network: "polygon" });
  });

  test("an invalid amount, or a network that this host does not use, is refused", async () => {
    for (const body of [
      { amount: "0" },
      { amount: "0.000000" },
      { amount: "-1" },
      { amount: 5 },
      { amount: "1.0000001" },
      { amount: "1000000.000001" },
      { amount: null },
      { network: "ethereum" },
      { network: "" },
      { network: 1 },
    ]) {
      const { status, body: answer } = await ask(body);
      expect([body, status]).toEqual([body, 400]);
      expect(answer.error.message).toMatch(/^(amount|network): expected /);
    }
    expect((await ask({ amount: "1000000.00" })).status).toBe(402);
  });

  test("with an accepted payment it is 201, once for a repeated key", async () => {
    const amount = 1_003_217n;
    const headers = { "Payment-Response": "settled" };
    outcome = { kind: "credited", transactionId: "txn_1", amount, headers };
    const keyed = { ...paying, "Idempotency-Key": "once" };
    const answer = await ask({}, keyed);
    expect(answer).toMatchObject({
      status: 201,
      body: { transactionId: "txn_1", amount: "1.003217", balance: "2.500000", currency: "USDC" },
    });
    expect(answer.headers.get("payment-response")).toBe("settled");
    const before = presented;
    outcome = { kind: "known" };
    const again = await ask({}, keyed);
    expect(again).toMatchObject({ status: 201, body: answer.body });
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(presented).toBe(before);
  });

  test("a payment that was credited before is 402, and says so", async () => {
    outcome = { kind: "known" };
    const { status, body } = await ask({}, paying);
    expect([status, body.error.code]).toEqual([402, "payment_required"]);
    expect(body.error.message).toContain("already credited");
  });

  test("a refused payment is 402 with its reason, its wait and the invoice it was meant for", async () => {
    outcome = { kind: "refused", reason: "too few confirmations", retryAfterSeconds: 4, invoiceId: "inv_7" };
    const { status, body, headers } = await ask({ amount: "3" }, paying);
    expect([status, body.error.message, headers.get("retry-after")]).toEqual([402, "too few confirmations", "4"]);
    expect(quoted).toMatchObject({ invoiceId: "inv_7", amount: 3_000_000n });
  });

  test("a payment is credited even if the rest of the request is wrong", async () => {
    const before = presented;
    expect((await ask({ amount: "0" }, paying)).status).toBe(400);
    expect(presented).toBe(before + 1);
  });
});

test("what was paid on the chain is topped up once, and is in the statement with its transfer", async () => {
  await using paying = await startPaying({ network: "polygon", confirmations: 1 });
  const person = await paying.someone("2.00");
  const asked = await topUp(person, { amount: "3", network: "polygon" });
  expect(asked).toMatchObject({ status: 402, body: { x402: { network: "polygon", currency: "USDC" } } });
  const { amount, invoiceId } = asked.body.x402;
  expect(amount).toMatch(/^3\.00\d{4}$/);
  const txHash = await paying.pay(amount);
  const paid = await topUp(person, {}, txHash, "polygon");
  const balance = `5${amount.slice(1)}`;
  expect(paid).toMatchObject({ status: 201, body: { amount, balance, currency: "USDC" } });
  const again = await topUp(person, {}, txHash, "polygon");
  expect([again.status, again.body.x402.invoiceId === invoiceId]).toEqual([402, false]);
  expect(again.body.error.message).toContain("already credited");
  const { data } = (await person.ask("GET", "/v1/billing/transactions")).body;
  expect(data).toHaveLength(2);
  const { transactionId } = paid.body;
  expect(data[0]).toMatchObject({ transactionId, type: "top_up", amount, balanceAfter: balance, txHash });
  expect(data[0]).toMatchObject({ network: "polygon", instanceId: null });
  expect((await person.ask("GET", "/v1/billing")).body).toMatchObject({ balance, networks: ["polygon"] });
  expect(findImbalance(paying.server.foundation.store)).toBeNull();
});

test("a balance that lasts for ages has no emptyAt", async () => {
  const settings = { ROOST_PRICE_PER_HOUR: "0.000001", ROOST_MINIMUM_LAUNCH_BALANCE: "0" };
  const host = await startTestServer(settings);
  const person = await host.signUp(undefined, "900000000.00");
  await create(person);
  const { status, body } = await person.ask("GET", "/v1/billing");
  expect([status, body.runningInstances, body.estimatedEmptyAt]).toEqual([200, 1, null]);
  await host.stop();
});

describe("access", () => {
  const ROUTES = [
    ["GET", "/v1/billing"],
    ["GET", "/v1/billing/usage"],
    ["GET", "/v1/billing/transactions"],
    ["POST", "/v1/billing/top-up"],
  ] as const;

  test("is denied without a credential, and to a key limited to one instance", async () => {
    const instanceId = await create(owner);
    const { key } = (await owner.ask("POST", "/v1/auth/keys", { instanceId })).body;
    for (const [method, path] of ROUTES) {
      expect((await server.ask(method, path)).status).toBe(401);
      const limited = await server.ask(method, path, { key });
      expect([limited.status, limited.body.error.code]).toEqual([403, "forbidden"]);
    }
  });

  test("for a key that only reads shows the books but tops up nothing", async () => {
    const { key } = (await owner.ask("POST", "/v1/auth/keys", { scopes: ["read"] })).body;
    const statuses = [];
    for (const [method, path] of ROUTES) statuses.push((await server.ask(method, path, { key })).status);
    expect(statuses).toEqual([200, 200, 200, 403]);
  });
});

test("the API's document offers X-PAYMENT where a payment may be required, and nowhere else", async () => {
  const { paths } = (await server.ask("GET", "/openapi.json")).body;
  const offers = Object.entries(paths as Record<string, Record<string, { parameters?: unknown[] }>>).flatMap(
    ([path, operations]) =>
      Object.entries(operations)
        .filter(([, { parameters }]) => JSON.stringify(parameters ?? []).includes("#/components/parameters/payment"))
        .map(([method]) => `${method} ${path}`),
  );
  expect(offers.sort()).toEqual([
    "post /v1/billing/top-up",
    "post /v1/instances",
    "post /v1/instances/{instanceId}/start",
  ]);
});
