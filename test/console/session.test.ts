import { afterAll, beforeAll, beforeEach, expect } from "bun:test";
import type { Page } from "playwright-core";
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
  email = `session${++people}@example.com`;
});

const withPage = (use: (page: Page) => Promise<void>) => withConsole(() => server.url, use);
const linkFor = (who: string) => `${server.url}/#link=${server.foundation.links.create(who, 0n)}`;
const tokenOf = (page: Page) => page.evaluate(() => sessionStorage.getItem("roost.token") ?? "");
const statusOf = async (token: string) => (await server.ask("GET", "/v1/auth/me", { token })).status;
const shownEmail = (page: Page) => page.locator("#account-email").textContent();

/** Signs in, and then opens a link for somebody else in the same tab. */
async function openForeignLink(page: Page, link = linkFor(`intruder.${email}`)): Promise<string> {
  await page.goto(linkFor(email));
  await page.locator("#signed-in").waitFor();
  const token = await tokenOf(page);
  await page.goto(link);
  await page.locator("#replace-session").waitFor();
  return token;
}

browserTest("a link for another account asks the signed-in user, and changes nothing before the answer", async () => {
  await withPage(async (page) => {
    const redeemed: string[] = [];
    page.on("request", (request) => request.url().includes("redeem-link") && redeemed.push(request.url()));
    const token = await openForeignLink(page);
    expect(redeemed).toHaveLength(1);
    expect(await page.locator("#current-email").textContent()).toBe(email);
    expect([await page.locator("#signed-in").isVisible(), await page.locator("#signed-out").isVisible()]).toEqual([
      false,
      false,
    ]);
    expect([page.url(), await tokenOf(page)]).toEqual([`${server.url}/`, token]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBe(0);
  });
});

browserTest("who reloads the page of a suspended account reads that, and can sign in with another", async () => {
  await withPage(async (page) => {
    await page.goto(linkFor(email));
    await page.locator("#signed-in").waitFor();
    const { accounts } = server.foundation;
    const { accountId } = (await server.ask("GET", "/v1/auth/me", { token: await tokenOf(page) })).body;
    accounts.setSuspended(accountId, true);
    await page.reload();
    await page.locator("#ask-code").waitFor();
    expect(await page.locator("#notice").textContent()).toBe("This account is suspended; ask the host's operator.");
    expect(await tokenOf(page)).toBe("");
  });
});

browserTest("a page whose server fails while it loads says so in the server's words", async () => {
  await withPage(async (page) => {
    await page.goto(linkFor(email));
    await page.locator("#signed-in").waitFor();
    const error = { code: "internal_error", message: "something failed on this host", requestId: "req_1", status: 503 };
    await page.route("**/v1/host", (route) => route.fulfill({ status: 503, json: { error } }));
    await page.reload();
    await page
      .getByText("Something failed on this host. The host's log has the details under request req_1.")
      .waitFor();
  });
});

browserTest("staying signed in is one key press, keeps the session and leaves the link unused", async () => {
  await withPage(async (page) => {
    const link = linkFor(`intruder.${email}`);
    const token = await openForeignLink(page, link);
    await page.keyboard.press("Enter");
    await page.locator("#signed-in").waitFor();
    expect([await shownEmail(page), await tokenOf(page), page.url()]).toEqual([email, token, `${server.url}/`]);
    expect(await page.locator("#replace-session").isVisible()).toBe(false);
    expect(await statusOf(token)).toBe(200);
    await page.reload();
    await page.locator("#signed-in").waitFor();
    expect(await shownEmail(page)).toBe(email);
    const body = { link: link.split("#link=")[1] };
    expect((await server.ask("POST", "/v1/auth/redeem-link", { body })).status).toBe(200);
  });
});

browserTest("using the link is the next key press, and signs out the previous session", async () => {
  await withPage(async (page) => {
    const token = await openForeignLink(page);
    const revokedTokens = page.waitForResponse((answer) => answer.url().endsWith("/v1/auth/sign-out"));
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.locator("#signed-in").waitFor();
    expect(await shownEmail(page)).toBe(`intruder.${email}`);
    expect((await revokedTokens).status()).toBe(200);
    expect([await statusOf(token), await statusOf(await tokenOf(page))]).toEqual([401, 200]);
  });
});

browserTest("while a link is being used, staying signed in is no longer offered", async () => {
  await withPage(async (page) => {
    await openForeignLink(page);
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    await page.route("**/v1/auth/redeem-link", async (route) => {
      asked.resolve();
      await answer.promise;
      await route.continue();
    });
    await page.click("#use-link");
    await asked.promise;
    expect(await page.locator("#keep-session").isDisabled()).toBe(true);
    answer.resolve();
    await page.locator("#signed-in").waitFor();
    expect(await shownEmail(page)).toBe(`intruder.${email}`);
  });
});

browserTest("a used link says so next to the question, and the session is kept", async () => {
  await withPage(async (page) => {
    const link = linkFor(`intruder.${email}`);
    await server.ask("POST", "/v1/auth/redeem-link", { body: { link: link.split("#link=")[1] } });
    const token = await openForeignLink(page, link);
    await page.click("#use-link");
    await page.locator("#replace-session [role=alert]").waitFor();
    expect(await page.locator("#replace-session [role=alert]").textContent()).toContain("used or has expired");
    await page.click("#keep-session");
    await page.locator("#signed-in").waitFor();
    expect([await shownEmail(page), await statusOf(token)]).toEqual([email, 200]);
  });
});

browserTest("a link asks nothing if the session has expired", async () => {
  await withPage(async (page) => {
    await page.goto(linkFor(email));
    await page.locator("#signed-in").waitFor();
    await server.ask("POST", "/v1/auth/revoke-tokens", { token: await tokenOf(page) });
    await page.goto(linkFor(`next.${email}`));
    await page.locator("#account-email", { hasText: `next.${email}` }).waitFor({ state: "attached" });
  });
});

browserTest("signing out ends the token on the server", async () => {
  await withPage(async (page) => {
    await page.goto(linkFor(email));
    await page.locator("#signed-in").waitFor();
    const token = await tokenOf(page);
    expect(await statusOf(token)).toBe(200);
    await page.click("#to-account");
    await page.click("#sign-out");
    await page.getByText("You are signed out.", { exact: true }).waitFor();
    expect(await statusOf(token)).toBe(401);
  });
});

browserTest(
  "signing out without the host's answer ends the session here, and says that the host was not told",
  async () => {
    await withPage(async (page) => {
      await page.goto(linkFor(email));
      await page.locator("#signed-in").waitFor();
      const token = await tokenOf(page);
      await page.route("**/v1/auth/sign-out", (route) => route.abort());
      await page.click("#to-account");
      await page.click("#sign-out");
      await page.getByText("The server could not be reached").waitFor();
      expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
      expect(await page.locator("#signed-out").isVisible()).toBe(true);
      expect(await statusOf(token)).toBe(200);
    });
  },
);
