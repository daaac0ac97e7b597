import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { createCodeLimits, pruneSignInCodes } from "../../src/accounts/code-limits.ts";
import { DAY, HOUR, handClock, MINUTE, SECOND } from "../lib/hand-clock.ts";
import { plansOf } from "../support/query-plans.ts";
import { type Answer, startTestServer, type TestServer } from "../support/test-server.ts";

const clock = handClock();
let server: TestServer;
let people = 0;

beforeAll(async () => {
  server = await startTestServer({ ROOST_TRUST_PROXY: "true" }, { clock });
});
afterAll(() => server.stop());

const HOME = "198.51.100.1";
const newEmail = () => `c${++people}@example.com`;
const newInvite = (uses = 1) => server.foundation.invites.create({ uses, credit: 0n, lifeMs: DAY }).code;
const from = (address: string) => ({ "X-Forwarded-For": address });
const send = (email: string, address: string, inviteCode?: string) =>
  server.ask("POST", "/v1/auth/send-code", { body: { email, inviteCode }, headers: from(address) });
const verify = (email: string, code: string, address: string) =>
  server.ask("POST", "/v1/auth/verify-code", { body: { email, code }, headers: from(address) });
const mailed = (email: string) => server.foundation.outbox.list().find(({ to }) => to === email)?.code ?? "";
const wrong = (code: string) => String((Number(code) + 1) % 1e8).padStart(8, "0");
const stranger = () => `203.0.${++people >> 8}.${people & 0xff}`;
const statuses = (answers: Answer[]) => answers.map(({ status }) => status);

/** An account that signed in from `address` ten days ago, so that the codes sent then no longer count. */
async function known(address = stranger()): Promise<string> {
  const email = newEmail();
  await send(email, address, newInvite());
  expect((await verify(email, mailed(email), address)).status).toBe(200);
  clock.advance(10 * DAY);
  return email;
}

/** How many codes this address gets for this e-mail now, waiting a minute between them. */
async function sendAll(email: string, address: string | (() => string), most = 12): Promise<number> {
  let sent = 0;
  for (; sent < most; sent++) {
    const { status } = await send(email, typeof address === "string" ? address : address());
    if (status !== 200) break;
    clock.advance(MINUTE);
  }
  return sent;
}

describe("the tries of a code", () => {
  test("are counted apart for the address that asked for it and for all others", async () => {
    const email = await known();
    await send(email, HOME);
    const code = mailed(email);
    for (let tries = 0; tries < 12; tries++) {
      expect((await verify(email, wrong(code), stranger())).status).toBe(401);
    }
    // Strangers have no tries left, not even for the right code; its owner has.
    expect((await verify(email, code, stranger())).status).toBe(401);
    expect((await verify(email, code, HOME)).status).toBe(200);
  });

  test("are five for the address that asked, and five for all others together", async () => {
    const email = await known();
    await send(email, HOME);
    const code = mailed(email);
    for (let tries = 0; tries < 5; tries++) await verify(email, wrong(code), HOME);
    expect((await verify(email, code, HOME)).status).toBe(401);
    for (let tries = 0; tries < 4; tries++) await verify(email, wrong(code), stranger());
    expect((await verify(email, code, stranger())).status).toBe(200);
  });

  test("count an IPv6 address by its /64, and one written as IPv6 as its IPv4", async () => {
    const email = await known();
    await send(email, "2001:db8:1:2::1");
    const code = mailed(email);
    for (let tries = 0; tries < 5; tries++) await verify(email, wrong(code), stranger());
    expect((await verify(email, code, "2001:db8:1:3::1")).status).toBe(401);
    expect((await verify(email, code, "2001:db8:1:2:ffff::9")).status).toBe(200);
    clock.advance(DAY);
    await send(email, "::ffff:192.0.2.44");
    const next = mailed(email);
    for (let tries = 0; tries < 5; tries++) await verify(email, wrong(next), stranger());
    expect((await verify(email, next, "192.0.2.44")).status).toBe(200);
  });
});

describe("an address gets twenty codes an hour", () => {
  test("also if the last bytes of sixty requests arrive at the same moment", async () => {
    const address = "192.0.2.60";
    const emails = Array.from({ length: 60 }, newEmail);
    const held = await Promise.all(emails.map((email) => holdLastByte(email, newInvite(), address)));
    // Each of them passed the limit of its address before its body arrived, when no code had been sent yet.
    expect((await server.ask("GET", "/healthz")).status).toBe(200);
    const answers = await Promise.all(held.map((request) => request.finish()));
    const count = (status: number) => answers.filter((answer) => answer === status).length;
    expect([count(200), count(429)]).toEqual([20, 40]);
    expect(emails.filter((email) => mailed(email) !== "")).toHaveLength(20);
  });

  test("and an IPv6 address counts by its /64", async () => {
    const answers: Answer[] = [];
    for (let host = 1; host <= 21; host++) {
      answers.push(await send(newEmail(), `2001:db8:77:1:${host.toString(16)}::${host}`, newInvite()));
    }
    expect(statuses(answers)).toEqual([...Array(20).fill(200), 429]);
    expect((await send(newEmail(), "2001:db8:77:2::1", newInvite())).status).toBe(200);
  });
});

describe("codes that strangers request in somebody's name", () => {
  test("do not count against an address that has signed in before, nor the other way round", async () => {
    const email = await known(HOME);
    expect(await sendAll(email, stranger)).toBe(5);
    expect((await send(email, stranger())).status).toBe(429);
    // At the same moment, without waiting a minute: it has five an hour of its own.
    expect(await sendAll(email, HOME)).toBe(5);
    expect((await send(email, HOME)).status).toBe(429);
    clock.advance(HOUR);
    expect([await sendAll(email, stranger), await sendAll(email, HOME)]).toEqual([5, 5]);
    clock.advance(HOUR);
    // Ten a day each: twice the limit is the most that one mailbox gets.
    expect(statuses([await send(email, stranger()), await send(email, HOME)])).toEqual([429, 429]);
  });

  test("count together with the account's own codes at an address that has never signed in", async () => {
    const email = newEmail();
    const invite = newInvite(5);
    for (let sent = 0; sent < 5; sent++) {
      expect((await send(email, stranger(), invite)).status).toBe(200);
      clock.advance(MINUTE);
    }
    expect((await send(email, HOME, invite)).status).toBe(429);
  });

  test("do not use up an e-mail's limits for an address that the account has signed in from", async () => {
    const email = newEmail();
    const home = stranger();
    await send(email, home, newInvite());
    expect((await verify(email, mailed(email), home)).status).toBe(200);
    // The code that was sent before this address was known still counts.
    expect((await send(email, home)).headers.get("retry-after")).toBe("60");
    clock.advance(MINUTE);
    expect(await sendAll(email, home)).toBe(4);
    clock.advance(HOUR);
    expect(await sendAll(email, home)).toBe(5);
    clock.advance(HOUR);
    const eleventh = await send(email, home);
    expect([eleventh.status, Number(eleventh.headers.get("retry-after")) > 20 * 3_600]).toEqual([429, true]);
  });

  test("are told apart by the account's last twenty addresses, for ninety days, also after a restart", async () => {
    const homes = Array.from({ length: 21 }, stranger);
    const email = await known(homes[0]);
    for (const home of homes.slice(1)) {
      await send(email, home);
      expect((await verify(email, mailed(email), home)).status).toBe(200);
      clock.advance(2 * DAY);
    }
    await server.restart();
    const { sqlite } = server.foundation.store;
    const { accountId = "" } = server.foundation.accounts.findByEmail(email) ?? {};
    const rows = () =>
      sqlite.query("SELECT address FROM sign_in_addresses WHERE account_id = ?").values(accountId).flat().sort();
    expect(rows()).toEqual(homes.slice(1).sort());
    // The first of them is no longer one of the account's addresses; the last one is.
    expect(await sendAll(email, stranger)).toBe(5);
    expect(statuses([await send(email, homes[0] ?? ""), await send(email, homes[20] ?? "")])).toEqual([429, 200]);
    clock.advance(90 * DAY);
    expect(await sendAll(email, stranger)).toBe(5);
    expect((await send(email, homes[20] ?? "")).status).toBe(429);
  });

  test("are told apart from those of an address that has used a sign-in link", async () => {
    const email = newEmail();
    const link = server.foundation.links.create(email, 0n);
    await server.ask("POST", "/v1/auth/redeem-link", { body: { link }, headers: from(HOME) });
    expect(await sendAll(email, stranger)).toBe(5);
    expect((await send(email, HOME)).status).toBe(200);
  });
});

test("an invite allows ten codes a day and three more for each of its uses, whoever they are for", async () => {
  const invite = newInvite(2);
  const sendOne = () => send(newEmail(), stranger(), invite);
  for (let sent = 0; sent < 16; sent++) expect((await sendOne()).status).toBe(200);
  const refused = await sendOne();
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, String(DAY / SECOND)]);
  expect(refused.body.error.message).toContain("with this invite");
  clock.advance(DAY);
  expect((await send(newEmail(), stranger(), newInvite(2))).status).toBe(200);
});

test("every limit is checked with an index, without reading more than it needs", async () => {
  const email = await known(HOME);
  const { store, accounts } = server.foundation;
  const [invite] = server.foundation.invites.list(null, 1);
  if (!invite) throw new Error("no invite");
  const plans = plansOf(store, () => {
    const limits = createCodeLimits(store.db, clock);
    limits.checkAddress(HOME);
    limits.checkEmail(email, accounts.findByEmail(email)?.accountId ?? "", HOME);
    limits.checkEmail(email, accounts.findByEmail(email)?.accountId ?? "", stranger());
    limits.checkEmail(newEmail(), null, HOME);
    limits.checkInvite(invite);
  });
  expect(plans.length).toBeGreaterThan(5);
  expect(plans.filter((plan) => plan.startsWith("SCAN sign_in_"))).toEqual([]);
});

test("codes that no limit counts any more are removed, one slice at a time", async () => {
  clock.advance(DAY);
  const { store } = server.foundation;
  const count = () => store.sqlite.query("SELECT count(*) FROM sign_in_codes").values().flat()[0];
  for (let sent = 0; sent < 7; sent++) await send(newEmail(), stranger(), newInvite());
  const total = Number(count());
  clock.advance(DAY + 1);
  await send(newEmail(), stranger(), newInvite());
  let slices = 1;
  while (pruneSignInCodes(store, clock, 3)) slices++;
  expect([count(), slices]).toEqual([1, Math.floor(total / 3) + 1]);
});

test("codes that were sent while the clock was ahead put off none, and those sent since are limited as ever", async () => {
  const home = stranger();
  const email = await known(home);
  const invite = server.foundation.invites.create({ uses: 1, credit: 0n, lifeMs: 3 * DAY }).code;
  clock.step(DAY);
  expect(await sendAll(email, home)).toBe(5);
  for (let sent = 0; sent < 13; sent++) expect((await send(newEmail(), stranger(), invite)).status).toBe(200);
  clock.step(-DAY);
  expect(await sendAll(email, home)).toBe(5);
  expect((await send(email, home)).status).toBe(429);
  for (let sent = 0; sent < 13; sent++) expect((await send(newEmail(), stranger(), invite)).status).toBe(200);
  expect((await send(newEmail(), stranger(), invite)).status).toBe(429);
});

interface HeldRequest {
  /** Sends the last byte; resolves with the answer's status. */
  finish(): Promise<number>;
}

/** A request to send-code that lacks the last byte of its body. */
async function holdLastByte(email: string, inviteCode: string, address: string): Promise<HeldRequest> {
  const { hostname, port } = new URL(server.url);
  const body = JSON.stringify({ email, inviteCode });
  const head = [
    "POST /v1/auth/send-code HTTP/1.1",
    `Host: ${hostname}:${port}`,
    `X-Forwarded-For: ${address}`,
    "Content-Type: application/json",
    `Content-Length: ${body.length}`,
    "Connection: close",
  ].join("\r\n");
  const socket = connect(Number(port), hostname);
  const status = new Promise<number>((resolve, reject) => {
    let text = "";
    socket.on("data", (bytes) => (text += bytes));
    socket.on("error", reject);
    socket.on("close", () => resolve(Number(text.split(" ")[1])));
  });
  await new Promise<void>((resolve) => socket.write(`${head}\r\n\r\n${body.slice(0, -1)}`, () => resolve()));
  return {
    finish() {
      socket.write(body.slice(-1));
      return status;
    },
  };
}
