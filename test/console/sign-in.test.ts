import { afterAll, beforeAll, beforeEach, expect } from "bun:test";
import type { Page } from "playwright-core";
import { SMTPServer } from "smtp-server";
import { browserTest } from "../support/browser.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { withConsole } from "./with-console.ts";

let server: TestServer;
let email: string;
let people = 0;

beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());
beforeEach(() => {
  email = `newcomer${++people}@example.com`;
});

const withPage = (use: (page: Page) => Promise<void>) =>
  withConsole(
    () => server.url,
    async (page) => {
      await page.goto(server.url);
      await page.locator("#signed-out").waitFor();
      await use(page);
    },
  );
const invite = () => server.foundation.invites.create({ uses: 1, credit: 0n, lifeMs: 3_600_000 }).code;
const codeFor = (who: string) => server.foundation.outbox.list().find(({ to }) => to === who)?.code ?? "";
const isFocused = (page: Page, id: string) => page.locator(id).evaluate((field) => field === document.activeElement);

/** The field shows its error, has the focus, and announces the error to a screen reader. */
async function expectFault(page: Page, field: string, words: RegExp): Promise<void> {
  const fault = page.locator(`${field}-error`);
  await fault.waitFor();
  expect(await fault.textContent()).toMatch(words);
  expect(await page.locator(field).isVisible()).toBe(true);
  expect(await isFocused(page, field)).toBe(true);
  expect(await page.getAttribute(field, "aria-invalid")).toBe("true");
  expect(await page.getAttribute(field, "aria-describedby")).toBe(`${field.slice(1)}-error`);
}

browserTest("each error is explained in plain words next to its field", async () => {
  await withPage(async (page) => {
    for (const wrong of ["", "ada", "ada@"]) {
      await page.fill("#email", wrong);
      await page.keyboard.press("Enter");
      await expectFault(page, "#email", /not an e-mail address.*ada@example\.com/);
    }
    await page.fill("#email", email);
    await page.keyboard.press("Enter");
    await expectFault(page, "#email", new RegExp(`There is no account for ${email} here.*invite code`));
    expect(await page.locator("#invite-code").isVisible()).toBe(true);

    await page.fill("#invite-code", "not-a-code");
    await page.click("#newcomer summary");
    await page.click("#ask-code button");
    await expectFault(page, "#invite-code", /invite code is not valid/);
    expect(await page.locator("#email-error").isVisible()).toBe(false);
  });
});

browserTest("a new user signs up with an invite, and a wrong code is reported next to the code", async () => {
  await withPage(async (page) => {
    await page.fill("#email", email);
    await page.click("#newcomer summary");
    await page.fill("#invite-code", invite());
    await page.fill("#your-name", "Ada <b>Lovelace</b>");
    await page.click("#ask-code button");
    await page.locator("#enter-code").waitFor();
    const code = codeFor(email);
    await page.fill("#code", "123");
    await page.keyboard.press("Enter");
    await expectFault(page, "#code", /eight digits/);
    await page.fill("#code", code === "00000000" ? "00000001" : "00000000");
    await page.keyboard.press("Enter");
    await expectFault(page, "#code", /wrong or expired/);
    await page.fill("#code", ` ${code.slice(0, 4)} ${code.slice(4)} `);
    await page.keyboard.press("Enter");
    await page.locator("#signed-in").waitFor();
    expect(await page.locator("#account-name").textContent()).toBe("Ada <b>Lovelace</b>");
  });
});

browserTest("without mail, nobody is told to wait for one", async () => {
  await withPage(async (page) => {
    await page.getByText("This host sends no mail: the code is shown on its terminal.").waitFor();
    await page.fill("#email", email);
    await page.click("#newcomer summary");
    await page.fill("#invite-code", invite());
    await page.click("#ask-code button");
    await page.getByText("roost outbox").waitFor();
    expect(await page.getByText("on its way").isVisible()).toBe(false);
    // Requested again at once: the host says when that will be possible.
    await page.click("#other-address");
    await page.click("#ask-code button");
    const alert = page.locator("#sign-in-alert");
    await alert.waitFor();
    expect(await alert.textContent()).toMatch(/^Too many triesTry again in \d+ seconds\.$/);
  });
});

browserTest("with mail, it is said to be on its way", async () => {
  const smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS"],
    onData: (stream, _session, done) => void stream.resume().on("end", done),
  });
  const port = await new Promise<number>((resolve) => {
    const server = smtp.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port));
  });
  const mailing = await startTestServer({
    ROOST_SMTP_URL: `smtp://127.0.0.1:${port}`,
    ROOST_MAIL_FROM: "roost@example.com",
  });
  try {
    await withConsole(
      () => mailing.url,
      async (page) => {
        await page.goto(mailing.url);
        await page.getByText("a code sent to your e-mail address").waitFor();
        await page.fill("#email", email);
        await page.click("#newcomer summary");
        await page.fill(
          "#invite-code",
          mailing.foundation.invites.create({ uses: 1, credit: 0n, lifeMs: 3_600_000 }).code,
        );
        await page.click("#ask-code button");
        await page.getByText(`A code is on its way to ${email}`).waitFor();
      },
    );
  } finally {
    await mailing.stop();
    await new Promise<void>((resolve) => smtp.close(() => resolve()));
  }
});
