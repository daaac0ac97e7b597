import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { AddressInfo } from "node:net";
import { SMTPServer } from "smtp-server";
import { parseMoney } from "../../src/lib/money.ts";
import { DAY, type HandClock, HOUR, handClock, MINUTE, SECOND } from "../lib/hand-clock.ts";
import { type EventStream, type Frame, readEvents } from "../messages/conversation.ts";
import { type Answer, startTestServer, type TestServer } from "../support/test-server.ts";
import { checkBooks } from "./metered.ts";

/** A cent per second: ten dollars last 1,000 seconds. */
const PRICE = { ROOST_PRICE_PER_HOUR: "36.00" };
/** The middle of a month, of a day and of an hour. */
const NOON = Date.UTC(2026, 10, 15, 12, 30);

const EMAIL = "payer@example.com";

let clock: HandClock;
let server: TestServer;
let key: string;
let accountId: string;

async function begin(settings: Record<string, string> = PRICE, credit = "10.00"): Promise<void> {
  clock = handClock(NOON);
  server = await startTestServer(settings, { clock });
  const link = server.foundation.links.create(EMAIL, parseMoney(credit) ?? 0n);
  const { token, account } = (await server.ask("POST", "/v1/auth/redeem-link", { body: { link } })).body;
  ({ accountId } = account);
  // A key, because tokens end within a day.
  ({ key } = (await server.ask("POST", "/v1/auth/keys", { token, body: {} })).body);
}
afterEach(async () => {
  checkBooks(server.foundation);
  await server.stop();
});

const ask = (method: string, path: string, body?: unknown): Promise<Answer> =>
  server.ask(method, path, { key, ...(body === undefined ? {} : { body }) });
const me = async () => (await ask("GET", "/v1/auth/me")).body;
const launch = async (): Promise<string> => (await ask("POST", "/v1/instances", { name: "one" })).body.instanceId;
const instance = async (instanceId: string) => (await ask("GET", `/v1/instances/${instanceId}`)).body;
const addAgent = async (instanceId: string): Promise<string> =>
  (await ask("POST", `/v1/instances/${instanceId}/agents`, { name: "Ada" })).body.agentId;
async function follow(instanceId: string, agentId: string): Promise<EventStream> {
  const url = new URL(`/v1/instances/${instanceId}/agents/${agentId}/events?after=0`, server.url);
  return readEvents(await fetch(url, { headers: { "X-API-Key": key } }));
}
/** Lets time pass as in a running server. */
async function pass(ms: number): Promise<void> {
  clock.advance(ms);
  await server.app.meterTimer.tick();
}
const own = ({ event, data: { id: _id, type: _type, agentId: _agent, createdAt: _at, ...rest } }: Frame) => ({
  event,
  ...rest,
});

describe("on a host with a price of a cent per second", () => {
  beforeEach(() => begin());

  test("a running instance costs its time, at every moment: in instance, balance and month", async () => {
    const [first, second] = [await launch(), await launch()];
    clock.advance(2_345);
    const billing = { pricePerHour: "36.000000", accrued: "0.023450", currency: "USDC" };
    expect([(await instance(first)).billing, (await instance(second)).billing]).toEqual([billing, billing]);
    const shown = { balance: "9.953100", limits: { monthlyLimit: null, spentThisMonth: "0.046900" } };
    expect(await me()).toMatchObject(shown);
    await pass(0);
    expect(await me()).toMatchObject(shown);
    const { body } = await ask("GET", "/v1/billing");
    expect(body).toMatchObject({ balance: "9.953100", runningInstances: 2 });
    expect(Math.round((Date.parse(body.estimatedEmptyAt) - clock.now()) / 100)).toBe(4977);
  });

  test("a stop pauses the bill, a start continues it, and a deletion settles it", async () => {
    const instanceId = await launch();
    clock.advance(10 * SECOND);
    const stopped = await ask("POST", `/v1/instances/${instanceId}/stop`);
    expect(stopped.body.billing.accrued).toBe("0.100000");
    await pass(HOUR);
    await ask("POST", `/v1/instances/${instanceId}/stop`);
    await ask("POST", `/v1/instances/${instanceId}/start`);
    clock.advance(5 * SECOND);
    await ask("POST", `/v1/instances/${instanceId}/start`);
    expect((await instance(instanceId)).billing.accrued).toBe("0.150000");
    clock.advance(5 * SECOND);
    expect((await ask("DELETE", `/v1/instances/${instanceId}`)).status).toBe(200);
    await pass(HOUR);
    expect(await me()).toMatchObject({ balance: "9.800000", limits: { spentThisMonth: "0.200000" } });
    const { data } = (await ask("GET", "/v1/billing/transactions")).body;
    const usage = data.filter(({ type }: { type: string }) => type === "usage");
    expect(usage.map(({ amount }: { amount: string }) => amount)).toEqual(["-0.100000", "-0.100000"]);
  });

  test("at the end of the balance everything stops, with its event, and starting again needs a payment", async () => {
    const [first, second] = [await launch(), await launch()];
    const agentId = await addAgent(second);
    await using stream = await follow(second, agentId);
    await pass(499 * SECOND);
    expect((await instance(first)).status).toBe("running");
    await pass(SECOND + 1);
    let accrued = 0n;
    for (const instanceId of [first, second]) {
      const record = await instance(instanceId);
      expect(record).toMatchObject({ status: "stopped", statusReason: "insufficient_balance" });
      expect(record.stoppedAt).toBe(new Date(clock.now()).toISOString());
      accrued += parseMoney(record.billing.accrued) ?? 0n;
    }
    expect(accrued).toBe(10_000_000n);
    const frames = await stream.until(({ event }) => event === "instance.status");
    expect(frames.at(-1)?.data.status).toBe("stopped");
    expect((await me()).balance).toBe("0.000000");
    expect((await ask("POST", `/v1/instances/${first}/start`)).status).toBe(402);
    const path = `/v1/instances/${second}/agents/${agentId}/messages`;
    expect((await ask("POST", path, { message: "Hello" })).body.error.code).toBe("instance_not_ready");
    await pass(DAY);
    expect((await me()).balance).toBe("0.000000");
  });

  test("reaching the monthly limit stops instances, and forbids creating and starting until it is raised", async () => {
    const instanceId = await launch();
    await ask("PATCH", "/v1/auth/me", { monthlyLimit: "2.00" });
    await pass(199 * SECOND);
    expect((await instance(instanceId)).status).toBe("running");
    await pass(2 * SECOND);
    expect(await instance(instanceId)).toMatchObject({ status: "stopped", statusReason: "monthly_limit" });
    expect((await me()).limits).toMatchObject({ monthlyLimit: "2.000000", spentThisMonth: "2.000000" });
    for (const path of ["/v1/instances", `/v1/instances/${instanceId}/start`]) {
      const { status, body } = await ask("POST", path, { name: "two" });
      expect([status, body.error.code]).toEqual([403, "forbidden"]);
      expect(body.error.message).toContain("monthly limit of 2.000000 USDC");
    }
    await ask("PATCH", "/v1/auth/me", { monthlyLimit: "2.01" });
    expect((await ask("POST", `/v1/instances/${instanceId}/start`)).body.status).toBe("running");
    await pass(SECOND);
    expect((await instance(instanceId)).statusReason).toBe("monthly_limit");
    await ask("PATCH", "/v1/auth/me", { monthlyLimit: null });
    expect((await ask("POST", `/v1/instances/${instanceId}/start`)).status).toBe(200);
  });

  test("a limit set below this month's usage stops instances in the request that sets it", async () => {
    const instanceId = await launch();
    const agentId = await addAgent(instanceId);
    await using stream = await follow(instanceId, agentId);
    clock.advance(5 * SECOND);
    const { body } = await ask("PATCH", "/v1/auth/me", { monthlyLimit: "0.05" });
    expect(body.limits).toMatchObject({ monthlyLimit: "0.050000", spentThisMonth: "0.050000" });
    expect(await instance(instanceId)).toMatchObject({ status: "stopped", statusReason: "monthly_limit" });
    await stream.until(({ event, data }) => event === "instance.status" && data.status === "stopped");
  });

  test("a restart bills no downtime, and loses nothing that an orderly stop could settle", async () => {
    const instanceId = await launch();
    clock.advance(7 * SECOND);
    await server.restart();
    clock.advance(3 * SECOND);
    expect((await instance(instanceId)).billing.accrued).toBe("0.100000");
    expect((await me()).balance).toBe("9.900000");
  });

  test("a suspended account's instances are stopped at the next settling", async () => {
    const instanceId = await launch();
    const { accounts, store } = server.foundation;
    accounts.setSuspended(accountId, true);
    expect((await ask("GET", "/v1/auth/me")).status).toBe(403);
    await pass(10 * SECOND);
    const row = () => store.sqlite.query("SELECT status, status_reason FROM instances").get();
    expect(row()).toEqual({ status: "stopped", status_reason: "suspended" });
    await pass(HOUR);
    accounts.setSuspended(accountId, false);
    expect((await instance(instanceId)).billing.accrued).toBe("0.100000");
    expect((await ask("POST", `/v1/instances/${instanceId}/start`)).status).toBe(200);
  });

  test("a credit by another process keeps instances running that would have stopped", async () => {
    const instanceId = await launch();
    await pass(990 * SECOND);
    clock.advance(5 * SECOND);
    const note = "by the operator";
    const { ledger } = server.foundation;
    ledger.post({ type: "credit", accountId, amount: 10_000_000n, against: "grants", note });
    await pass(10 * SECOND);
    expect((await instance(instanceId)).status).toBe("running");
    expect((await me()).balance).toBe("9.950000");
  });
});

describe("before instances stop", () => {
  test("every agent is warned 24 hours, 1 hour and 5 minutes ahead, once each", async () => {
    await begin({ ROOST_PRICE_PER_HOUR: "1.00" }, "30.00");
    const instanceId = await launch();
    const agents = [await addAgent(instanceId), await addAgent(instanceId)];
    for (let passed = 0; passed < 29 * HOUR; passed += HOUR / 2) await pass(HOUR / 2);
    for (let passed = 0; passed < HOUR; passed += MINUTE) await pass(MINUTE);
    for (const agentId of agents) {
      await using stream = await follow(instanceId, agentId);
      const frames = await stream.until(({ event }) => event === "instance.status");
      const told = (hours: number) => ({
        event: "instance.runway",
        reason: "insufficient_balance",
        secondsLeft: hours * 3_600,
        stopsAt: new Date(NOON + 30 * HOUR).toISOString(),
      });
      expect(frames.map(own)).toEqual([
        told(24),
        told(1),
        told(1 / 12),
        { event: "instance.status", status: "stopped" },
      ]);
    }
  });

  test("a restart in between repeats no warning", async () => {
    await begin(PRICE, "10.00");
    const instanceId = await launch();
    const agentId = await addAgent(instanceId);
    await pass(10 * SECOND);
    await server.restart();
    await pass(10 * SECOND);
    await pass(980 * SECOND);
    await using stream = await follow(instanceId, agentId);
    const frames = await stream.until(({ event }) => event === "instance.status");
    expect(frames.map(({ data }) => data.secondsLeft ?? data.status)).toEqual([990, "stopped"]);
  });

  test("the account's owner gets a mail if SMTP is set, and a failing mail server does no harm", async () => {
    const mails: { to: string[]; text: string }[] = [];
    let arrived = Promise.withResolvers<void>();
    let refuses = false;
    const smtp = new SMTPServer({
      authOptional: true,
      disabledCommands: ["STARTTLS"],
      disableReverseLookup: true,
      onData(stream, { envelope }, done) {
        const chunks: Buffer[] = [];
        stream.on("data", (chunk: Buffer) => chunks.push(chunk));
        stream.on("end", () => {
          const text = Buffer.concat(chunks).toString();
          mails.push({ to: envelope.rcptTo.map(({ address }) => address), text });
          done(refuses ? new Error("no") : null);
          arrived.resolve();
        });
      },
    });
    await new Promise<void>((resolve) => smtp.listen(0, "127.0.0.1", resolve));
    try {
      const { port } = smtp.server.address() as AddressInfo;
      await begin({
        ...PRICE,
        ROOST_SMTP_URL: `smtp://127.0.0.1:${port}`,
        ROOST_MAIL_FROM: "roost@example.org",
        ROOST_PUBLIC_URL: "https://roost.example.org",
      });
      const instanceId = await launch();
      await pass(SECOND);
      await arrived.promise;
      arrived = Promise.withResolvers();
      expect(mails).toHaveLength(1);
      expect(mails[0]?.to).toEqual([EMAIL]);
      expect(mails[0]?.text).toContain("Subject: Roost: your running instance stops in 17 minutes");
      expect(mails[0]?.text).toContain("2026-11-15 12:46 UTC");
      expect(mails[0]?.text).toContain("POST https://roost.example.org/v1/billing/top-up");
      // Stopping and starting repeats the event, but not the mail.
      await ask("POST", `/v1/instances/${instanceId}/stop`);
      await ask("POST", `/v1/instances/${instanceId}/start`);
      await pass(SECOND);
      refuses = true;
      await pass(700 * SECOND);
      await arrived.promise;
      expect(mails).toHaveLength(2);
      expect(mails[1]?.text).toContain("stops in 5 minutes");
      expect((await instance(instanceId)).status).toBe("running");
    } finally {
      await new Promise<void>((resolve) => smtp.close(() => resolve()));
    }
  });
});
