import { afterAll, beforeAll, expect } from "bun:test";
import { browserTest } from "../support/browser.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { openAs, withConsole } from "./with-console.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

const url = () => server.url;

browserTest("a second tab is signed in, and the session's storage ends with the last tab", async () => {
  const { token, email } = await server.signUp();
  await withConsole(url, async (page, browser) => {
    await openAs(page, server.url, token);
    const second = await browser.newPage();
    await second.goto(server.url);
    await second.locator("#account-email", { hasText: email }).waitFor({ state: "attached" });
    expect(await second.evaluate(() => [localStorage.length, document.cookie])).toEqual([0, ""]);
    await page.close();
    await second.close();
    const third = await browser.newPage();
    await third.goto(server.url);
    await third.locator("#signed-out").waitFor();
  });
});

browserTest("a tab at the sign-in is signed in when another is", async () => {
  const { token, email } = await server.signUp();
  await withConsole(url, async (page, browser) => {
    await page.goto(server.url);
    await page.locator("#signed-out").waitFor();
    const link = server.foundation.links.create(email, 0n);
    const second = await browser.newPage();
    await second.goto(`${server.url}/#link=${link}`);
    await second.locator("#signed-in").waitFor();
    await page.locator("#signed-in").waitFor();
    expect(token).not.toBe("");
  });
});

browserTest("signing out in one tab signs out the others for good", async () => {
  const { token } = await server.signUp();
  await withConsole(url, async (page, browser) => {
    await openAs(page, server.url, token);
    const second = await browser.newPage();
    await second.goto(`${server.url}/#account`);
    await second.click("#sign-out");
    await page.getByText("You are signed out: this session was ended in another tab.").waitFor();
    await second.getByText("You are signed out.", { exact: true }).waitFor();
    for (const tab of [page, second]) {
      expect(await tab.evaluate(() => sessionStorage.length)).toBe(0);
      await tab.reload();
      await tab.locator("#signed-out").waitFor();
    }
    expect((await server.ask("GET", "/v1/auth/me", { token })).status).toBe(401);
  });
});

browserTest(
  "another account in one tab ends the session of the others, and signs nobody in to it unasked",
  async () => {
    const { token } = await server.signUp();
    await withConsole(url, async (page, browser) => {
      await openAs(page, server.url, token);
      const second = await browser.newPage();
      await second.goto(server.url);
      await second.locator("#signed-in").waitFor();
      const link = server.foundation.links.create("another@example.com", 0n);
      await second.goto(`${server.url}/#link=${link}`);
      await second.click("#use-link");
      await second.locator("#account-email", { hasText: "another@example.com" }).waitFor({ state: "attached" });
      await page.getByText("You are signed out: this session was ended in another tab.").waitFor();
      expect(await page.locator("#signed-in").isVisible()).toBe(false);
    });
  },
);
