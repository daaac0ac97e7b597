import { afterEach, expect, test } from "bun:test";
import type { AddressInfo } from "node:net";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import { createMail } from "../../src/mail/mail.ts";
import type { MailError, MailMessage } from "../../src/mail/message.ts";

const FROM = "Roost <roost@example.org>";
const PASSWORD = "p@ss:w/rd%";
const MAIL = { to: "ada@example.org", subject: "Your code: 12345678", text: "Grüße,\n.\n12345678\n", code: "12345678" };
const QUICK = { connect: 2000, greeting: 2000, socket: 2000, total: 60 };
const NO_OUTBOX = {
  append: () => {
    throw new Error("the outbox is not for mail that SMTP takes");
  },
};

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

interface Received {
  from: string;
  to: string[];
  raw: string;
  secure: boolean;
}

async function startSmtp(options: SMTPServerOptions = {}): Promise<{ port: number; received: Received[] }> {
  const received: Received[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disableReverseLookup: true,
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        const { mailFrom, rcptTo } = session.envelope;
        const from = mailFrom === false ? "" : mailFrom.address;
        received.push({
          from,
          to: rcptTo.map(({ address }) => address),
          raw: Buffer.concat(chunks).toString(),
          secure: session.secure,
        });
        done();
      });
    },
    ...options,
  });
  server.on("error", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return { port: (server.server.address() as AddressInfo).port, received };
}

/** A server that sends `lines`, one after each command, and then nothing more. */
function startStalling(...lines: string[]): { port: number; isAsked: () => boolean; left: Promise<void> } {
  const { promise: left, resolve } = Promise.withResolvers<void>();
  let isAsked = false;
  const server = Bun.listen<{ said: number }>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        isAsked = true;
        socket.data = { said: 0 };
        say(socket);
      },
      data: (socket) => say(socket),
      close: () => resolve(),
    },
  });
  const say = (socket: Bun.Socket<{ said: number }>) => {
    const line = lines[socket.data.said++];
    if (line !== undefined) socket.write(`${line}\r\n`);
  };
  closing.push(async () => server.stop(true));
  return { port: server.port, isAsked: () => isAsked, left };
}

const mailTo = (url: string) => createMail({ smtpUrl: url, from: FROM }, NO_OUTBOX);
const failed = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "sent",
    (error: Error) => {
      // What a log would show, causes included, contains neither the code nor the password.
      expect(Bun.inspect(error)).not.toContain(MAIL.code);
      expect(Bun.inspect(error)).not.toContain(PASSWORD);
      return error.message;
    },
  );

test("a mail arrives complete, from the configured sender", async () => {
  const { port, received } = await startSmtp({ hideSTARTTLS: true });
  await mailTo(`smtp://127.0.0.1:${port}`).send(MAIL);
  const [mail] = received;
  expect(mail).toMatchObject({ from: "roost@example.org", to: ["ada@example.org"], secure: false });
  expect(mail?.raw).toContain("Subject: Your code: 12345678");
  expect(mail?.raw).toContain("To: ada@example.org");
  expect(mail?.raw).toContain("12345678");
});

test("TLS is used if the server offers it, and a loopback server may use a self-signed certificate", async () => {
  const starttls = await startSmtp();
  await mailTo(`smtp://localhost:${starttls.port}`).send(MAIL);
  expect(starttls.received[0]?.secure).toBe(true);
  const smtps = await startSmtp({ secure: true });
  await mailTo(`smtps://127.0.0.1:${smtps.port}`).send(MAIL);
  expect(smtps.received[0]?.secure).toBe(true);
});

test("user and password come percent-decoded from the URL", async () => {
  const logins: unknown[] = [];
  const { port, received } = await startSmtp({
    authOptional: false,
    onAuth({ username, password }, _session, done) {
      logins.push([username, password]);
      done(null, { user: username });
    },
  });
  const mail = mailTo(`smtp://${encodeURIComponent("ro@st")}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}`);
  await mail.send(MAIL);
  expect(received.length).toBe(1);
  expect(await mail.check()).toMatchObject({ ok: true });
  expect(logins).toEqual([
    ["ro@st", PASSWORD],
    ["ro@st", PASSWORD],
  ]);
});

test("a rejected password is reported as such, by send and by check", async () => {
  const { port } = await startSmtp({
    onAuth: (auth, _session, done) => done(new Error(`no ${auth.password}`)),
  });
  const mail = mailTo(`smtp://roost:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}`);
  expect(await failed(mail.send(MAIL))).toContain("does not accept the user or password of ROOST_SMTP_URL");
  const { ok, detail } = await mail.check();
  expect(ok).toBe(false);
  expect(detail).toContain(`127.0.0.1:${port}`);
  expect(detail).not.toContain(PASSWORD);
});

test("a password is never sent to another host unencrypted, nor to one with an untrusted certificate", async () => {
  for (const options of [{}, { disabledCommands: ["STARTTLS"] }]) {
    const logins: string[] = [];
    const { port } = await startSmtp({
      ...options,
      allowInsecureAuth: true,
      onAuth({ username = "" }, _session, done) {
        logins.push(username);
        done(null, { user: username });
      },
    });
    // 0.0.0.0 leads to this machine without being a loopback address.
    const message = await failed(mailTo(`smtp://roost:secret@0.0.0.0:${port}`).send(MAIL));
    expect(message).toContain("offers no trusted TLS");
    expect(logins).toEqual([]);
  }
});

test("a rejected recipient fails the mail, without the code that the server repeats", async () => {
  const { port, received } = await startSmtp({
    onRcptTo: (_address, _session, done) => done(new Error("no such user here")),
  });
  const message = await failed(mailTo(`smtp://127.0.0.1:${port}`).send(MAIL));
  expect(message).toContain("rejects the sender or the recipient: 550 no such user here");
  expect(received).toEqual([]);
  const echo = await startSmtp({
    onData(stream, _session, done) {
      stream.on("data", () => {});
      stream.on("end", () => done(new Error(`spam: ${MAIL.subject}`)));
    },
  });
  expect(await failed(mailTo(`smtp://127.0.0.1:${echo.port}`).send(MAIL))).toContain("spam: Your code: …");
});

test("what becomes of a mail is known, unless the server has it and does not say in time whether it takes it", async () => {
  const outcome = (port: number, deadlines = {}) =>
    createMail({ smtpUrl: `smtp://127.0.0.1:${port}`, from: FROM }, NO_OUTBOX, deadlines)
      .send(MAIL)
      .then(
        () => "sent",
        (error: MailError) => error.outcome,
      );
  const refusing = (how: Error) => startSmtp({ onRcptTo: (_address, _session, done) => done(how) });
  expect(await outcome((await refusing(new Error("no such user here"))).port)).toBe("recipient refused");
  const later = Object.assign(new Error("try later"), { responseCode: 450 });
  expect(await outcome((await refusing(later)).port)).toBe("not sent");
  expect(await outcome(startStalling().port, { greeting: 50 })).toBe("not sent");
  let hasMail = false;
  const slow = await startSmtp({
    onData(stream) {
      stream.on("data", () => {});
      stream.on("end", () => (hasMail = true));
    },
  });
  // On a busy machine the deadline may pass before it has the mail.
  do expect(await outcome(slow.port, { total: 500 })).toBe("unknown");
  while (!hasMail);
});

test.each([
  ["at its greeting", []],
  ["after its greeting", ["220 slow"]],
  ["within the mail", ["220 slow", "250 slow", "250 sender", "250 recipient", "354 go on"]],
])("a server that stalls %s is left at the deadline", async (_when, lines) => {
  const { port, isAsked, left } = startStalling(...lines);
  const mail = createMail({ smtpUrl: `smtp://127.0.0.1:${port}`, from: FROM }, NO_OUTBOX, QUICK);
  // On a busy machine the deadline may pass before it connects.
  do expect(await failed(mail.send(MAIL))).toContain("did not answer in time");
  while (!isAsked());
  await left;
});

test("a server with an endless reply is abandoned, long before the deadline", async () => {
  const { promise: left, resolve } = Promise.withResolvers<void>();
  const line = `220-${"x".repeat(1_000)}\r\n`.repeat(100);
  const say = (socket: Bun.Socket) => {
    while (socket.write(line) === line.length);
  };
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { open: say, drain: say, data() {}, close: () => resolve() },
  });
  closing.push(async () => server.stop(true));
  expect(await failed(mailTo(`smtp://127.0.0.1:${server.port}`).send(MAIL))).toContain("did not accept the mail");
  await left;
});

test("mails have sixteen connections at most, and those that wait for a stalled server end at the deadline too", async () => {
  let [connections, ended] = [0, false];
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      // Once a mail has ended, this server may hear of the next connection before it hears of the end of the last.
      open() {
        if (!ended) connections += 1;
      },
      data() {},
    },
  });
  closing.push(async () => server.stop(true));
  const mail = createMail({ smtpUrl: `smtp://127.0.0.1:${server.port}`, from: FROM }, NO_OUTBOX, {
    ...QUICK,
    total: 500,
  });
  const send = async () => {
    const answer = await failed(mail.send(MAIL));
    ended = true;
    return answer;
  };
  const answers = await Promise.all(Array.from({ length: 60 }, send));
  expect(answers.filter((answer) => !answer.includes("did not answer in time"))).toEqual([]);
  expect(connections).toBeLessThanOrEqual(16);
});

test("a code goes out while the server keeps any number of notices waiting", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const { port, received } = await startSmtp({
    onRcptTo: ({ address }, _, done) => void (address === "slow@example.org" ? released.then(() => done()) : done()),
  });
  const mail = createMail({ smtpUrl: `smtp://127.0.0.1:${port}`, from: FROM }, NO_OUTBOX, { total: 60_000 });
  const notices = Array.from({ length: 20 }, () => mail.send({ ...MAIL, to: "slow@example.org", code: null }));
  await mail.send(MAIL);
  expect(received.map(({ to }) => to)).toEqual([["ada@example.org"]]);
  release();
  await Promise.all(notices);
  expect(received).toHaveLength(21);
});

test("check does not wait for a stalled server either", async () => {
  const { port } = startStalling();
  const mail = createMail({ smtpUrl: `smtp://127.0.0.1:${port}`, from: FROM }, NO_OUTBOX, QUICK);
  expect(await mail.check()).toEqual({
    ok: false,
    detail: `the mail server 127.0.0.1:${port} did not answer in time`,
  });
});

test("an unreachable server is named without the URL's password", async () => {
  const { port } = await startSmtp();
  for (const close of closing.splice(0)) await close();
  const message = await failed(mailTo(`smtp://roost:secret@127.0.0.1:${port}`).send(MAIL));
  expect(message).toContain(`the mail server 127.0.0.1:${port} cannot be reached`);
  expect(message).not.toContain("secret");
});

test("no recipient or subject can add a header or another recipient", async () => {
  const { port, received } = await startSmtp();
  const mail = mailTo(`smtp://127.0.0.1:${port}`);
  const bad: Partial<MailMessage>[] = [
    { to: "ada@example.org\r\nBcc: eve@example.org" },
    { to: "ada@example.org, eve@example.org" },
    { to: "Ada <eve@example.org>" },
    { to: "ada" },
    { subject: "Hi\r\nBcc: eve@example.org" },
  ];
  for (const fields of bad) expect(await failed(mail.send({ ...MAIL, ...fields }))).not.toBe("sent");
  expect(received).toEqual([]);
});

test.each(["http://host", "smtp://", "smtp://u:%zz-secret@host", "nonsense-secret"])(
  "a URL that cannot work is refused at once, unrepeated: %s",
  (smtpUrl) => {
    const create = () => createMail({ smtpUrl, from: FROM }, NO_OUTBOX);
    expect(create).toThrow("ROOST_SMTP_URL: expected smtp://");
    expect(create).not.toThrow("secret");
  },
);

test("SMTP without a sender is rejected at once", () => {
  expect(() => createMail({ smtpUrl: "smtp://127.0.0.1", from: null }, NO_OUTBOX)).toThrow("ROOST_MAIL_FROM");
});
