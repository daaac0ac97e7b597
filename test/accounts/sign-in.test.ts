import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { SMTPServer } from "smtp-server";
import { parseMoney } from "../../src/lib/money.ts";
import { DAY, HOUR, handClock, MINUTE, SECOND } from "../lib/hand-clock.ts";
import { type Answer, startTestServer, type TestServer } from "../support/test-server.ts";

const clock = handClock();
let server: TestServer;
let people = 0;

beforeAll(async () => {
  // Each test has its own address, so that the limits of one do not affect another.
  server = await startTestServer({ ROOST_TRUST_PROXY: "true" }, { clock });
});
afterAll(() => server.stop());

const newEmail = () => `p${++people}@example.com`;
const newInvite = (uses = 1, credit = "0.00", lifeMs = DAY) =>
  server.foundation.invites.create({ uses, credit: parseMoney(credit) ?? 0n, lifeMs });
const from = (address: string) => ({ "X-Forwarded-For": address });
const send = (email: string, inviteCode?: unknown, address = `10.0.0.${++people}`) =>
  server.ask("POST", "/v1/auth/send-code", { body: { email, inviteCode }, headers: from(address) });
const verify = (email: string, code: unknown, name?: unknown) =>
  server.ask("POST", "/v1/auth/verify-code", { body: { email, code, name } });
const mailed = (email: string) => server.foundation.outbox.list().find(({ to }) => to === email)?.code ?? "";
const wrong = (code: string) => String((Number(code) + 1) % 1e8).padStart(8, "0");
const said = ({ status, body }: Answer) => [status, body.error?.code];

/** A new account to which a code was just sent; a minute has passed, so that the next one may be requested. */
async function known(): Promise<string> {
  const email = newEmail();
  await send(email, newInvite().code);
  expect((await verify(email, mailed(email))).status).toBe(200);
  clock.advance(MINUTE);
  return email;
}

describe("send-code", () => {
  test("mails eight digits to somebody with an invite, and says how long they are valid", async () => {
    const email = newEmail();
    const { status, body, headers } = await send(email, newInvite().code);
    expect([status, body]).toEqual([200, { sent: true, expiresInSeconds: 600 }]);
    expect(headers.get("cache-control")).toBe("no-store");
    expect(mailed(email)).toMatch(/^\d{8}$/);
  });

  test("asks a stranger for an invite: 403 invite_required, and sends no mail", async () => {
    const used = newInvite();
    const first = newEmail();
    await send(first, used.code);
    await verify(first, mailed(first));
    const expired = newInvite(1, "0.00", MINUTE);
    const revoked = newInvite();
    server.foundation.invites.revoke(revoked.invite.inviteId);
    clock.advance(MINUTE);
    for (const code of [undefined, null, "", "roost-nonsense", used.code, expired.code, revoked.code]) {
      const email = newEmail();
      expect(said(await send(email, code))).toEqual([403, "invite_required"]);
      expect(mailed(email)).toBe("");
    }
  });

  test("needs no invite from somebody with an account, but refuses a bad one", async () => {
    const email = await known();
    expect(said(await send(email, "roost-nonsense"))).toEqual([403, "invite_required"]);
    expect((await send(email)).status).toBe(200);
  });

  test.each([
    [undefined],
    [null],
    [7],
    [""],
    ["x"],
    ["@example.com"],
    ["a@"],
    ["a b@example.com"],
    ["a@b@c.de"],
    ["a@exa mple.com"],
    [`${"a".repeat(65)}@example.com`],
    ["a\u0000@example.com"],
    ["a@example.com\r\nBcc: x@y.z"],
    ["<a@example.com>"],
    ["a@ex..com"],
    ["\ud800@example.com"],
    [["a@example.com"]],
  ])("refuses the e-mail %p", async (email) => {
    const { status, body } = await send(email as string, newInvite().code);
    expect([status, body.error.message]).toEqual([400, "email: expected a valid e-mail address"]);
  });

  test("allows one code a minute, five an hour and ten a day for each e-mail", async () => {
    const email = await known();
    clock.advance(DAY);
    const times: number[] = [];
    const started = clock.now();
    while (times.length < 10) {
      const answer = await send(email);
      if (answer.status === 200) times.push(clock.now() - started);
      else {
        expect(said(answer)).toEqual([429, "rate_limited"]);
        const wait = Number(answer.headers.get("retry-after")) * SECOND;
        expect(wait).toBeGreaterThan(0);
        // One second earlier it is still refused.
        clock.advance(wait - SECOND - 1);
        expect((await send(email)).status).toBe(429);
        clock.advance(SECOND + 1);
      }
    }
    expect(times.slice(0, 5)).toEqual([0, 1, 2, 3, 4].map((minute) => minute * MINUTE));
    expect(times[5]).toBe(HOUR);
    const eleventh = await send(email);
    expect(said(eleventh)).toEqual([429, "rate_limited"]);
    clock.advance(HOUR);
    expect((await send(email)).status).toBe(429);
    clock.advance(started + DAY - clock.now());
    expect((await send(email)).status).toBe(200);
  });

  test("sends twenty an hour for one address, whoever they are for, checked before the body", async () => {
    const address = "192.0.2.77";
    for (let sent = 0; sent < 20; sent++) expect((await send(newEmail(), newInvite().code, address)).status).toBe(200);
    expect(said(await send(newEmail(), newInvite().code, address))).toEqual([429, "rate_limited"]);
    expect((await send("no e-mail", undefined, address)).status).toBe(429);
    expect((await send(newEmail(), newInvite().code, "192.0.2.78")).status).toBe(200);
    clock.advance(HOUR);
    expect((await send(newEmail(), newInvite().code, address)).status).toBe(200);
  });

  test("counts in the database: a restart resets no limit", async () => {
    const email = await known();
    const address = "192.0.2.99";
    for (let sent = 0; sent < 20; sent++) await send(newEmail(), newInvite().code, address);
    await send(email);
    await server.restart();
    expect((await send(email)).status).toBe(429);
    expect((await send(newEmail(), newInvite().code, address)).status).toBe(429);
  });

  test("sends one code if two are requested at once", async () => {
    const email = await known();
    const answers = await Promise.all([send(email), send(email), send(email)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 429, 429]);
  });
});

describe("verify-code", () => {
  test("exchanges the code for a token of 24 hours, and gives a stranger an account with the invite's credit", async () => {
    const email = newEmail();
    await send(email, newInvite(1, "2.50").code);
    const { status, body } = await verify(email, mailed(email), "  Ada \u{1F600} ");
    const expiresAt = new Date(Math.floor((clock.now() + DAY) / 1000) * 1000).toISOString();
    expect([status, body]).toEqual([
      200,
      {
        token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
        tokenType: "Bearer",
        expiresAt,
        account: {
          accountId: expect.stringMatching(/^acct_[0-9a-f]{32}$/),
          email,
          name: "Ada \u{1F600}",
          createdAt: new Date(clock.now()).toISOString(),
          balance: "2.500000",
          currency: "USDC",
          limits: { monthlyLimit: null, spentThisMonth: "0.000000", tokensPerDay: null, tokensPerMonth: null },
          modelLimits: { tokensPerDay: null, tokensPerMonth: null, costPerDay: null, costPerMonth: null },
        },
      },
    ]);
    const me = await server.ask("GET", "/v1/auth/me", { token: body.token });
    expect(me.body).toEqual(body.account);
  });

  test("names an account after its e-mail if no name is given, and never renames one", async () => {
    const email = `grace.hopper@example.com`;
    await send(email, newInvite().code);
    const first = await verify(email, mailed(email));
    expect(first.body.account.name).toBe("grace.hopper");
    clock.advance(MINUTE);
    await send(email);
    const second = await verify(email, mailed(email), "Somebody Else");
    expect(second.body.account).toEqual(first.body.account);
  });

  test("recognises an e-mail however it is written", async () => {
    const email = await known();
    await send(`  ${email.toUpperCase()} `);
    const { status, body } = await verify(` ${email.replace("p", "P")}`, mailed(email));
    expect([status, body.account.email]).toEqual([200, email]);
  });

  test.each([
    ["1234567"],
    ["123456789"],
    ["1234567a"],
    [""],
    [" 12345678"],
    ["12345678\n"],
    ["１２３４５６７８"],
    [12345678],
    [null],
    [undefined],
  ])("accepts only eight digits, not %p: 400, and no try is used up", async (code) => {
    const { status, body } = await verify("a@example.com", code);
    expect([status, body.error.message]).toEqual([400, "code: expected 8 digits"]);
  });

  test("gives the same answer for every code that does not work: wrong, used, replaced, expired, unknown, tried too often", async () => {
    const email = await known();
    await send(email);
    const superseded = mailed(email);
    clock.advance(MINUTE);
    await send(email);
    const good = mailed(email);
    const refused = [await verify(email, wrong(good)), await verify("nobody@example.com", good)];
    if (superseded !== good) refused.push(await verify(email, superseded));
    expect((await verify(email, good)).status).toBe(200);
    refused.push(await verify(email, good));
    clock.advance(MINUTE);
    await send(email);
    clock.advance(10 * MINUTE);
    refused.push(await verify(email, mailed(email)));
    const texts = new Set(refused.map(({ body }) => body.error.message));
    for (const answer of refused) {
      expect(said(answer)).toEqual([401, "unauthorized"]);
      expect(answer.headers.get("www-authenticate")).toStartWith("Bearer");
    }
    expect(texts.size).toBe(1);
  });

  test("accepts a code until it is ten minutes old", async () => {
    const email = await known();
    await send(email);
    clock.advance(10 * MINUTE - 1);
    expect((await verify(email, mailed(email))).status).toBe(200);
  });

  test("accepts the right code at the fifth try, but not at the sixth, also after a restart", async () => {
    const [fifth, sixth] = [await known(), await known()];
    await send(fifth);
    for (let tries = 0; tries < 4; tries++) await verify(fifth, wrong(mailed(fifth)));
    expect((await verify(fifth, mailed(fifth))).status).toBe(200);
    await send(sixth);
    for (let tries = 0; tries < 5; tries++) {
      expect(said(await verify(sixth, wrong(mailed(sixth))))).toEqual([401, "unauthorized"]);
    }
    await server.restart();
    expect(said(await verify(sixth, mailed(sixth)))).toEqual([401, "unauthorized"]);
    clock.advance(MINUTE);
    await send(sixth);
    expect((await verify(sixth, mailed(sixth))).status).toBe(200);
  });

  test("accepts a code once, also if it comes twice at once", async () => {
    const email = await known();
    await send(email);
    const code = mailed(email);
    const answers = await Promise.all([verify(email, code), verify(email, code), verify(email, code)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401]);
  });

  test("refuses a suspended account: 403, also with the right code", async () => {
    const email = await known();
    const { accounts } = server.foundation;
    const accountId = accounts.findByEmail(email)?.accountId ?? "";
    await send(email);
    accounts.setSuspended(accountId, true);
    expect(said(await verify(email, mailed(email)))).toEqual([403, "forbidden"]);
    accounts.setSuspended(accountId, false);
    expect((await verify(email, mailed(email))).status).toBe(200);
  });
});

describe("an invite", () => {
  test("is used up by the account that it creates, not by the code that it sends; two at once create one account", async () => {
    const { code, invite } = newInvite(1, "1.00");
    const [one, two] = [newEmail(), newEmail()];
    expect([(await send(one, code)).status, (await send(two, code)).status]).toEqual([200, 200]);
    const answers = await Promise.all([verify(one, mailed(one)), verify(two, mailed(two))]);
    expect(answers.map(said).sort()).toEqual([
      [200, undefined],
      [403, "invite_required"],
    ]);
    const [left] = server.foundation.invites.list(null, 1);
    expect([left?.inviteId, left?.usesLeft]).toEqual([invite.inviteId, 0]);
    expect([one, two].filter((email) => server.foundation.accounts.findByEmail(email))).toHaveLength(1);
  });

  test("with several uses creates as many accounts, each with its credit", async () => {
    const { code } = newInvite(2, "1.25");
    for (const status of [200, 200]) {
      const email = newEmail();
      await send(email, code);
      const answer = await verify(email, mailed(email));
      expect([answer.status, answer.body.account.balance]).toEqual([status, "1.250000"]);
    }
    expect((await send(newEmail(), code)).status).toBe(403);
  });

  test("is not used up by somebody who has an account already", async () => {
    const email = await known();
    const { code } = newInvite();
    await send(email, code);
    await verify(email, mailed(email));
    expect((await send(newEmail(), code)).status).toBe(200);
  });

  test("that expires or is revoked after the code was sent creates no account", async () => {
    const [short, revoked] = [newInvite(1, "0.00", MINUTE), newInvite()];
    const [one, two] = [newEmail(), newEmail()];
    await send(one, short.code);
    await send(two, revoked.code);
    clock.advance(MINUTE);
    server.foundation.invites.revoke(revoked.invite.inviteId);
    expect(said(await verify(one, mailed(one)))).toEqual([403, "invite_required"]);
    expect(said(await verify(two, mailed(two)))).toEqual([403, "invite_required"]);
    expect(server.foundation.accounts.findByEmail(one)).toBeUndefined();
  });

  test("is stored only as a hash", async () => {
    const { code } = newInvite();
    const rows = server.foundation.store.sqlite.query("SELECT * FROM invites").all();
    expect(JSON.stringify(rows)).not.toContain(code);
  });
});

describe("a sign-in link", () => {
  const redeem = (link: unknown) => server.ask("POST", "/v1/auth/redeem-link", { body: { link } });

  test("signs in once, and creates an account with its credit if there is none", async () => {
    const email = newEmail();
    const link = server.foundation.links.create(email, 3_000_000n);
    const { status, body } = await redeem(link);
    expect([status, body.account.email, body.account.balance]).toEqual([200, email, "3.000000"]);
    const again = await redeem(link);
    expect(said(again)).toEqual([401, "unauthorized"]);
    expect(again.headers.get("www-authenticate")).toStartWith("Bearer");
    const next = await redeem(server.foundation.links.create(email, 3_000_000n));
    expect(next.body.account).toEqual(body.account);
  });

  test("is valid for an hour", async () => {
    const [good, late] = [newEmail(), newEmail()].map((email) => server.foundation.links.create(email, 0n));
    clock.advance(HOUR - 1);
    expect((await redeem(good)).status).toBe(200);
    clock.advance(1);
    expect((await redeem(late)).status).toBe(401);
  });

  test("is kept for a day after its end, used or not, and removed in slices", async () => {
    const { links, store } = server.foundation;
    const count = () => Number(store.sqlite.query("SELECT count(*) FROM sign_in_links").values().flat()[0]);
    await redeem(links.create(newEmail(), 0n));
    links.create(newEmail(), 0n);
    clock.advance(HOUR + DAY);
    while (links.prune(1));
    expect(count()).toBe(2);
    clock.advance(1);
    let slices = 1;
    while (links.prune(1)) slices++;
    expect([count(), slices]).toEqual([0, 3]);
  });

  test("signs in once if it comes twice at once", async () => {
    const link = server.foundation.links.create(newEmail(), 0n);
    const answers = await Promise.all([redeem(link), redeem(link)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401]);
  });

  test("does not sign in to a suspended account", async () => {
    const email = await known();
    const { accounts, links } = server.foundation;
    accounts.setSuspended(accounts.findByEmail(email)?.accountId ?? "", true);
    expect(said(await redeem(links.create(email, 0n)))).toEqual([403, "forbidden"]);
  });

  test.each([[undefined], [7], [""], ["x".repeat(101)]])("cannot be %p", async (link) => {
    const { status, body } = await redeem(link);
    expect([status, body.error.message]).toEqual([400, "link: expected the token of a sign-in link"]);
  });
});

test("with an SMTP server the code comes by mail and is not stored; a refused mail is reported", async () => {
  const mails: string[] = [];
  const smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS"],
    onRcptTo: (address, _session, done) =>
      done(address.address.startsWith("refused") ? new Error("no such mailbox") : null),
    onData(stream, _session, done) {
      let text = "";
      stream.on("data", (bytes: Buffer) => (text += bytes));
      stream.on("end", () => {
        mails.push(text);
        done();
      });
    },
  });
  await new Promise<void>((resolve) => smtp.listen(0, "127.0.0.1", () => resolve()));
  const { port } = smtp.server.address() as { port: number };
  const server = await startTestServer({
    ROOST_SMTP_URL: `smtp://127.0.0.1:${port}`,
    ROOST_MAIL_FROM: "roost@example.com",
  });
  try {
    const { code: inviteCode } = server.foundation.invites.create({ uses: 2, credit: 0n, lifeMs: DAY });
    const email = "by-mail@example.com";
    expect((await server.ask("POST", "/v1/auth/send-code", { body: { email, inviteCode } })).status).toBe(200);
    const code = /^\s+(\d{8})\s*$/m.exec(mails[0] ?? "")?.[1];
    expect(server.foundation.outbox.list()).toEqual([]);
    const { status } = await server.ask("POST", "/v1/auth/verify-code", { body: { email, code } });
    expect(status).toBe(200);
    const refused = { email: "refused@example.com", inviteCode };
    const answer = await server.ask("POST", "/v1/auth/send-code", { body: refused });
    expect(said(answer)).toEqual([503, "internal_error"]);
    expect(answer.headers.get("retry-after")).toBe("60");
    expect(answer.body.error.message).not.toContain("mailbox");
  } finally {
    await server.stop();
    await new Promise<void>((resolve) => smtp.close(() => resolve()));
  }
});
