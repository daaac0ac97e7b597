import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { SMTPServer } from "smtp-server";
import { createSignIn } from "../../src/accounts/sign-in.ts";
import { createMail } from "../../src/mail/mail.ts";
import { DAY, HOUR, handClock, MINUTE } from "../lib/hand-clock.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const clock = handClock();
/** Every mail that reached the server, whether it was accepted or not. */
const mails: { to: string; text: string }[] = [];
let refuses = false;
/** Whether it takes a mail and never says so. */
let hangs = false;
let url: string;
let smtp: SMTPServer;
let server: TestServer;
let people = 0;

beforeAll(async () => {
  smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS"],
    onData(stream, { envelope }, done) {
      let text = "";
      stream.on("data", (bytes: Buffer) => (text += bytes));
      stream.on("end", () => {
        mails.push({ to: envelope.rcptTo[0]?.address ?? "", text });
        if (!hangs) done(refuses ? new Error("no such mailbox") : null);
      });
    },
  });
  await new Promise<void>((resolve) => smtp.listen(0, "127.0.0.1", () => resolve()));
  const { port } = smtp.server.address() as { port: number };
  url = `smtp://127.0.0.1:${port}`;
  server = await startTestServer(
    {
      ROOST_TRUST_PROXY: "true",
      ROOST_SMTP_URL: url,
      ROOST_MAIL_FROM: "roost@example.com",
    },
    { clock },
  );
});
afterAll(async () => {
  await server.stop();
  await new Promise<void>((resolve) => smtp.close(() => resolve()));
});
beforeEach(() => {
  refuses = false;
  hangs = false;
  mails.length = 0;
  clock.advance(DAY);
});

const newEmail = () => `r${++people}@example.com`;
const newInvite = (uses = 1) => server.foundation.invites.create({ uses, credit: 0n, lifeMs: DAY }).code;
const newAddress = () => `203.0.${++people >> 8}.${people & 0xff}`;
const send = (email: string, inviteCode?: string, address = newAddress()) =>
  server.ask("POST", "/v1/auth/send-code", {
    body: { email, inviteCode },
    headers: { "X-Forwarded-For": address },
  });
const verify = async (email: string, code: string | undefined) =>
  (await server.ask("POST", "/v1/auth/verify-code", { body: { email, code } })).status;
const codeIn = (text: string | undefined) => /^\s+(\d{8})\s*$/m.exec(text ?? "")?.[1];

test("refused mail is counted: one invite causes no more than its thirteen mails a day", async () => {
  refuses = true;
  const invite = newInvite();
  const statuses: number[] = [];
  for (let sent = 0; sent < 60; sent++) statuses.push((await send(newEmail(), invite)).status);
  expect(statuses).toEqual([...Array(13).fill(503), ...Array(47).fill(429)]);
  expect(mails).toHaveLength(13);
});

test("refused mail is counted for its address, twenty an hour", async () => {
  refuses = true;
  const address = newAddress();
  for (let sent = 0; sent < 25; sent++) await send(newEmail(), newInvite(), address);
  expect(mails).toHaveLength(20);
});

test("if a mail could not be sent, the next try is allowed after a minute, within the limits of every e-mail", async () => {
  const email = newEmail();
  const invite = newInvite();
  refuses = true;
  const failed = await send(email, invite);
  expect([failed.status, failed.headers.get("retry-after")]).toEqual([503, "60"]);
  expect(failed.body.error.message).toBe("the code could not be mailed; try again in a minute");
  expect((await send(email, invite)).status).toBe(429);
  refuses = false;
  clock.advance(MINUTE);
  expect((await send(email, invite)).status).toBe(200);
  expect(await verify(email, codeIn(mails.at(-1)?.text))).toBe(200);
  refuses = true;
  const statuses: number[] = [];
  for (let sent = 0; sent < 4; sent++) {
    clock.advance(MINUTE);
    statuses.push((await send(email)).status);
  }
  expect(statuses).toEqual([503, 503, 503, 429]);
  clock.advance(HOUR);
  expect((await send(email)).status).toBe(503);
});

test("a code whose mail was refused does not work, and the one before it still does", async () => {
  const email = newEmail();
  const invite = newInvite();
  await send(email, invite);
  clock.advance(MINUTE);
  refuses = true;
  await send(email, invite);
  const [before, refused] = mails.map(({ text }) => codeIn(text));
  expect([before, refused]).toEqual([expect.stringMatching(/^\d{8}$/), expect.stringMatching(/^\d{8}$/)]);
  if (refused !== before) expect(await verify(email, refused)).toBe(401);
  expect(await verify(email, before)).toBe(200);
});

test("a code works whose mail arrives although the server did not say so in time", async () => {
  hangs = true;
  const { outbox, ...parts } = server.foundation;
  const mail = createMail({ smtpUrl: url, from: "roost@example.com" }, outbox, { total: 500 });
  const signIn = createSignIn({
    ...parts,
    pepper: Buffer.alloc(32),
    sendCode: (to, code) => mail.send({ to, code, subject: "A code", text: `\n ${code}\n` }),
  });
  let email: string;
  do {
    email = newEmail();
    const sent = signIn.sendCode({ email, inviteCode: newInvite(), address: newAddress() });
    await expect(sent).rejects.toThrow("has not said in time that it takes the code");
    // On a busy machine the deadline may pass before the server has the mail.
  } while (mails.length === 0);
  const code = codeIn(mails[0]?.text) ?? "";
  expect(signIn.verifyCode({ email, code, name: null, address: newAddress() })).toMatchObject({ email });
});
