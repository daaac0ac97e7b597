import { afterAll, beforeEach, expect } from "bun:test";
import type { Page } from "playwright-core";
import { faultsOf } from "../support/axe.ts";
import { browserTest } from "../support/browser.ts";
import type { Person } from "../support/test-server.ts";
import {
  focus,
  lookAgain,
  openAs,
  SIZES,
  signUpWithAgent,
  startWithModel,
  tooWide,
  withConsole,
  withConsoleAs,
} from "./with-console.ts";

let person: Person;
let agentPath: string;

const { model, server, stop } = await startWithModel();
afterAll(stop);
beforeEach(async () => {
  ({ person, agentPath } = await signUpWithAgent(server));
});

const withPage = (use: (page: Page) => Promise<void>) => withConsoleAs(server, person, use);
const begin = async (title: string): Promise<string> =>
  (await person.ask("POST", `${agentPath}/conversations`, { title })).body.conversationId;
const listed = async () => (await person.ask("GET", `${agentPath}/conversations`)).body.data;
const named = (page: Page, name: string) => page.locator("#conversation-name", { hasText: name });
const fold = (page: Page) => page.locator("#conversations > summary");
const rows = (page: Page) => page.locator("#conversations li");
const row = (page: Page, title: string) => rows(page).filter({ hasText: title });

async function write(page: Page, text: string): Promise<void> {
  await page.fill("#chat-input", text);
  await page.keyboard.press("Enter");
}
async function follow(page: Page, title: string): Promise<void> {
  await fold(page).click();
  await row(page, title).getByRole("link").click();
  await named(page, title).waitFor();
}

browserTest("a new conversation gets its first words as its name, and its address brings it back", async () => {
  await withConsole(
    () => server.url,
    async (page, browser) => {
      await openAs(page, server.url, person.token);
      await write(page, "Of the default one");
      await page.getByText("Hello, I am the mock model.").waitFor();
      await page.getByRole("button", { name: "New conversation" }).click();
      await named(page, "Untitled conversation").waitFor();
      await page.locator("#chat-ideas").waitFor();
      await page.waitForFunction(() => document.activeElement?.id === "chat-input");
      // As long as nothing is said in it, it is the new one.
      await page.getByRole("button", { name: "New conversation" }).click();
      await page.waitForFunction(() => document.activeElement?.id === "chat-input");
      expect((await listed()).length).toBe(2);
      await page.keyboard.type(
        "Where <b>shall</b> we   walk on Sunday, if the weather is fine, and what do we take along?",
      );
      await page.keyboard.press("Enter");
      const title = "Where <b>shall</b> we walk on Sunday, if the weather is…";
      await named(page, title).waitFor();
      expect((await listed())[0].title).toBe(title);

      const address = page.url();
      const second = await browser.newPage();
      for (const tab of [page, second]) {
        await tab.goto(address);
        await tab.reload();
        await named(tab, title).waitFor();
        await tab.locator(".turn.user .said").waitFor();
        expect(await tab.locator(".turn.user .said").allTextContents()).toEqual([expect.stringContaining("Sunday")]);
      }
      await follow(page, "Default conversation");
      await page.getByText("Of the default one").waitFor();
      await page.goBack();
      await named(page, title).waitFor();
      // From what is told about the agent, the way leads back into the same conversation.
      await page.locator("#to-agent").click();
      await page.locator("#to-conversation").click();
      await named(page, title).waitFor();
    },
  );
});

browserTest("a name that a conversation got elsewhere is kept when the first message is sent here", async () => {
  await withPage(async (page) => {
    await page.getByRole("button", { name: "New conversation" }).click();
    await named(page, "Untitled conversation").waitFor();
    const [{ conversationId }] = await listed();
    await person.ask("PATCH", `${agentPath}/conversations/${conversationId}`, { title: "Letters" });
    await write(page, "Dear Maren");
    await named(page, "Letters").waitFor();
    expect((await listed())[0].title).toBe("Letters");
  });
});

browserTest("a new conversation is begun where the open one was written in, or deleted, elsewhere", async () => {
  await withPage(async (page) => {
    for (const change of [
      (conversationId: string) => person.ask("POST", `${agentPath}/messages`, { message: "Hello", conversationId }),
      (conversationId: string) => person.ask("DELETE", `${agentPath}/conversations/${conversationId}`),
    ]) {
      await page.getByRole("button", { name: "New conversation" }).click();
      await named(page, "Untitled conversation").waitFor();
      await page.locator("#chat-ideas").waitFor();
      const address = page.url();
      await change((await listed())[0].conversationId);
      await page.getByRole("button", { name: "New conversation" }).click();
      await page.waitForURL((url) => url.href !== address);
      await named(page, "Untitled conversation").waitFor();
    }
  });
});

browserTest("what is said or sent in one conversation does not appear in another", async () => {
  await begin("Letters");
  await withPage(async (page) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    model.script({ kind: "text", tokens: ["Once upon ", "a time."], after: promise });
    const before = model.requests.length;
    await write(page, "Tell me a story");
    await page.locator("#chat-cancel").waitFor();
    await model.arrived(before + 1);
    await follow(page, "Letters");
    expect(await page.locator("#chat-cancel").isVisible()).toBe(false);
    resolve();
    await write(page, "Dear Maren");
    await page.locator(".turn.agent .said", { hasText: "Hello, I am the mock model." }).waitFor();
    expect(await page.locator(".turn .said").allTextContents()).toEqual(["Dear Maren", "Hello, I am the mock model."]);

    // A message that was written before its conversation was read arrives there, wherever the page is by then.
    const { promise: mayRead, resolve: read } = Promise.withResolvers<void>();
    await page.route(/\/messages\?order=desc&limit=50$/, async (route) => {
      await mayRead;
      await route.continue();
    });
    await follow(page, "Default conversation");
    await write(page, "And another");
    await follow(page, "Letters");
    await page.locator(".turn.user .said", { hasText: "Dear Maren" }).waitFor();
    read();
    const sent = async (): Promise<string[]> =>
      (await person.ask("GET", `${agentPath}/messages`)).body.data.map(({ message }: { message: string }) => message);
    await page.waitForResponse((answer) => answer.request().method() === "POST" && answer.url().endsWith("/messages"));
    expect(await sent()).toContain("And another");
    expect(await page.locator(".turn.user .said").allTextContents()).toEqual(["Dear Maren"]);
  });
});

browserTest("conversations are listed a page at a time, with who began them and which one is open", async () => {
  for (let count = 0; count < 25; count++) await begin(`Talk ${count}`);
  await withPage(async (page) => {
    await focus(fold(page));
    await page.keyboard.press("Enter");
    await rows(page).nth(19).waitFor();
    expect(await rows(page).count()).toBe(20);
    await page.getByRole("button", { name: "More" }).filter({ visible: true }).click();
    await rows(page).nth(25).waitFor();
    expect(await rows(page).count()).toBe(26);
    expect(await page.locator("#conversations [aria-current=true]").allTextContents()).toEqual([
      "Default conversation",
    ]);
    for (const size of SIZES) {
      for (const colorScheme of ["light", "dark"] as const) {
        await page.setViewportSize(size);
        await page.emulateMedia({ colorScheme });
        expect([size.width, colorScheme, await tooWide(page), await faultsOf(page)]).toEqual([
          size.width,
          colorScheme,
          false,
          [],
        ]);
      }
    }
    await row(page, "Talk 24").getByRole("link").focus();
    await page.keyboard.press("Escape");
    await rows(page).first().waitFor({ state: "hidden" });
    expect(await fold(page).evaluate((it) => it === document.activeElement)).toBe(true);
  });
});

browserTest("a conversation is forked with all that was said, and deleted after a question", async () => {
  const conversationId = await begin("Letters");
  await person.ask("POST", `${agentPath}/messages`, { message: "Dear Maren", conversationId });
  await withPage(async (page) => {
    await follow(page, "Letters");
    await fold(page).click();
    await page.getByRole("button", { name: "Fork Letters" }).click();
    await named(page, "Fork of Letters").waitFor();
    await page.getByText("Dear Maren").waitFor();
    await write(page, "Differently");
    await page.locator(".turn.agent").nth(1).getByText("Hello, I am the mock model.").waitFor();
    await fold(page).click();
    // The default one stays: it can be cleared.
    expect(await page.getByRole("button", { name: "Delete Default conversation" }).count()).toBe(0);
    await page.getByRole("button", { name: "Delete Fork of Letters" }).click();
    expect((await listed()).length).toBe(3);
    await page.getByRole("button", { name: "Really delete fork of letters?" }).click();
    await named(page, "Default conversation").waitFor();
    expect((await listed()).map(({ title }: { title: string }) => title)).toEqual(["Letters", null]);
  });
});

browserTest("a conversation is renamed in its row, and keeps its name if nothing is saved", async () => {
  await begin("Letters");
  await withPage(async (page) => {
    await follow(page, "Letters");
    await focus(fold(page));
    await page.keyboard.press("Enter");
    const rename = page.getByRole("button", { name: "Rename Letters" });
    await focus(rename);
    await page.keyboard.press("Enter");
    await page.keyboard.type("Nothing");
    await page.keyboard.press("Escape");
    expect(await rename.evaluate((it) => it === document.activeElement)).toBe(true);
    expect((await listed())[0].title).toBe("Letters");
    await page.keyboard.press("Enter");
    const field = page.getByLabel("New name of Letters");
    await page.setViewportSize({ width: 390, height: 844 });
    expect([await tooWide(page), await faultsOf(page)]).toEqual([false, []]);
    await field.fill("<b>Letters</b> to Maren");
    await page.keyboard.press("Enter");
    await named(page, "<b>Letters</b> to Maren").waitFor();
    expect((await listed())[0].title).toBe("<b>Letters</b> to Maren");
    // The default one has no row for this.
    expect(await page.getByRole("button", { name: /^Rename/ }).allTextContents()).toEqual(["Rename"]);
  });
});

browserTest("a failed run offers to send its message again, beside its error, also after a reload", async () => {
  await withPage(async (page) => {
    model.script({ kind: "status", status: 400, body: { error: { message: "no such model" } } });
    await write(page, "Are you there?");
    const again = page.getByRole("button", { name: "Try again" });
    const note = page.locator(".turn.agent > small", { hasText: "ask the host's operator" });
    await note.getByRole("button").waitFor();
    await page.reload();
    await note.getByRole("button").waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await again.focus();
    await page.keyboard.press("Enter");
    await page.getByText("Hello, I am the mock model.").waitFor();
    expect(await page.locator(".turn.user .said").allTextContents()).toEqual(["Are you there?", "Are you there?"]);
    // The error stays, to be read; what was sent again is not offered twice.
    expect([await note.isVisible(), await again.count()]).toEqual([true, 0]);
    await person.ask("POST", `${agentPath}/messages`, { message: "From a program" });
    await lookAgain(page);
    await page.getByText("From a program").waitFor();
    await page.locator(".turn.agent").nth(2).getByText("Hello, I am the mock model.").waitFor();
    expect([await note.isVisible(), await again.count()]).toEqual([true, 0]);
    expect(await page.locator("#chat-input").evaluate((box) => box === document.activeElement)).toBe(true);
  });
});

browserTest("why an answer broke off is told after a reload as it was before", async () => {
  await withPage(async (page) => {
    model.script({ kind: "text", tokens: ["Once ", "upon"], ending: "cut" });
    await write(page, "Tell me a story");
    const note = page.locator(".turn.agent > small", { hasText: "The host's log has the cause under run_" });
    await note.getByRole("button", { name: "Try again" }).waitFor();
    const before = await note.textContent();
    await page.reload();
    await page.getByText("Once upon").waitFor();
    await note.getByRole("button", { name: "Try again" }).waitFor();
    expect(await note.textContent()).toBe(before);
  });
});
