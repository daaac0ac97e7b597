import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createMail } from "../../src/mail/mail.ts";
import { createOutbox } from "../../src/mail/outbox.ts";
import { signInMail } from "../../src/mail/sign-in-mail.ts";
import { openStore, type Store } from "../../src/storage/store.ts";

const HOUR = 60 * 60 * 1000;
let folder: string;
let store: Store;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "roost-outbox-"));
  store = openStore(folder);
});
afterEach(() => {
  store.close();
  rmSync(folder, { recursive: true });
});

function openOutbox() {
  const clock = { time: 1_000 * HOUR, now: () => clock.time, monotonicNs: () => 0n };
  return { clock, outbox: createOutbox(store, clock) };
}

test("without SMTP a mail is kept in the outbox, newest first", async () => {
  const { clock, outbox } = openOutbox();
  const mail = createMail({ smtpUrl: null, from: null }, outbox);
  await mail.send({ to: "ada@example.org", subject: "First", text: "1", code: "12345678" });
  clock.time += 1;
  await mail.send({ to: "ada@example.org", subject: "Second", text: "2" });
  expect(outbox.list()).toEqual([
    { to: "ada@example.org", subject: "Second", text: "2", code: null, createdAt: clock.time },
    { to: "ada@example.org", subject: "First", text: "1", code: "12345678", createdAt: clock.time - 1 },
  ]);
  expect(await mail.check()).toMatchObject({ ok: true, detail: expect.stringContaining("roost outbox") });
});

test("mail older than 24 hours is deleted", () => {
  const { clock, outbox } = openOutbox();
  const message = { to: "ada@example.org", subject: "s", text: "t" };
  outbox.append(message);
  clock.time += 24 * HOUR;
  outbox.append(message);
  expect(outbox.list().length).toBe(2);
  clock.time += 1;
  outbox.append(message);
  expect(outbox.list().length).toBe(2);
  clock.time += 25 * HOUR;
  outbox.prune();
  expect(outbox.list()).toEqual([]);
});

test("the sign-in mail shows the code in one piece, where to use it and for how long", () => {
  const { subject, text } = signInMail({ code: "01234567", publicUrl: "https://roost.example", expiresInSeconds: 600 });
  expect(subject).toBe("Your Roost sign-in code: 01234567");
  expect(text).toMatch(/^ *01234567$/m);
  expect(text).toContain("https://roost.example");
  expect(text).toContain("10 minutes");
});
