import { afterAll, beforeAll, beforeEach, expect } from "bun:test";
import type { BrowserContext, Page } from "playwright-core";
import { type Anvil, startAnvil } from "../support/anvil.ts";
import { browserTest } from "../support/browser.ts";
import { type MockModelServer, startMockModelServer } from "../support/mock-model-server.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { withConsole } from "./with-console.ts";

const CREDIT = 10_000_000n;

let model: MockModelServer;
let chain: Anvil;
let server: TestServer;
let email: string;
let people = 0;

beforeAll(async () => {
  model = startMockModelServer();
  chain = await startAnvil({ network: "base" });
  server = await startTestServer({
    ROOST_MODEL: "openai:mock",
    ROOST_OPENAI_BASE_URL: model.url,
    ROOST_NETWORKS: "base",
    ROOST_BASE_RPC_URL: chain.url,
    ROOST_BASE_CONFIRMATIONS: "1",
  });
});
afterAll(async () => {
  await server.stop();
  await chain.stop();
  await model.stop();
});
beforeEach(() => {
  email = `console${++people}@example.com`;
});

const withPage = (use: (page: Page, browser: BrowserContext) => Promise<void>) => withConsole(() => server.url, use);

const newLink = () => `${server.url}/#link=${server.foundation.links.create(email, CREDIT)}`;

async function signIn(page: Page): Promise<void> {
  await page.goto(newLink());
  await page.locator("#signed-in").waitFor();
}

const textOf = async (page: Page, id: string) => (await page.locator(`#${id}`).textContent()) ?? "";

browserTest(
  "an agent that could not be created is created at the next try, in the instance that was made for it",
  async () => {
    await withPage(async (page) => {
      await signIn(page);
      await page.route(
        "**/agents",
        (route) => route.fulfill({ status: 409, json: { error: { code: "quota_exceeded" } } }),
        {
          times: 1,
        },
      );
      await page.click("#wake-agent");
      await page.locator("[role=alert]:visible").waitFor();
      await page.click("#wake-agent");
      await page.locator("#agent-name", { hasText: "Ada" }).waitFor();
      const rows = server.foundation.store.sqlite.query(
        "SELECT 1 FROM instances JOIN accounts USING (account_id) WHERE email = ?",
      );
      expect(rows.all(email)).toHaveLength(1);
    });
  },
);

browserTest("a sign-in link shows its account, and is removed from the URL at once", async () => {
  await withPage(async (page) => {
    const seen: string[] = [];
    page.on("request", (request) => {
      if (request.url().includes("/v1/")) seen.push(page.url());
    });
    await signIn(page);
    expect(page.url()).toBe(`${server.url}/`);
    expect(seen.filter((url) => url.includes("link="))).toEqual([]);
    expect(await textOf(page, "account-email")).toBe(email);
    expect(await textOf(page, "balance")).toBe("10.00");
    expect(await textOf(page, "limit")).toBe("none");
    await page.reload();
    await page.locator("#signed-in").waitFor();
  });
});

browserTest("a quote says what to send and where, and the transaction's hash credits it", async () => {
  await withPage(async (page) => {
    await signIn(page);
    await page.click("#to-account");
    await page.locator("#ask-quote button").click();
    await page.locator("#quote").waitFor();
    const amount = BigInt((await textOf(page, "quote-amount")).replace(".", ""));
    const to = (await textOf(page, "quote-recipient")) as `0x${string}`;
    const elsewhere = await chain.transfer({ to: chain.usdc, amount });
    await page.locator("#tx-hash").fill(elsewhere);
    await page.locator("#pay-quote button").click();
    const alert = page.locator("section:has(#quote) > [role=alert]");
    await alert.waitFor();
    expect(await alert.textContent()).toContain("the transfer's recipient is not the one in x402");
    await page.locator("#tx-hash").fill(await chain.transfer({ to, amount }));
    await page.locator("#pay-quote button").click();
    await page.locator("#paid").waitFor();
    expect(await textOf(page, "paid")).toMatch(/^1\.00\d+ USDC received\.$/);
    await page.locator("#balance", { hasText: /^11\.0[01]$/ }).waitFor();
  });
});

browserTest("a used sign-in link says so, with the next step", async () => {
  const link = newLink();
  await server.ask("POST", "/v1/auth/redeem-link", { body: { link: link.split("#link=")[1] } });
  await withPage(async (page) => {
    await page.goto(link);
    const alert = page.locator("#sign-in-alert");
    await alert.waitFor();
    expect(await alert.textContent()).toContain("this link was used or has expired");
    expect(await alert.textContent()).toContain("roost login-link");
    expect(await page.locator("#ask-code").isVisible()).toBe(true);
  });
});

browserTest("a link pasted into the open page's address bar signs in too", async () => {
  await withPage(async (page) => {
    await page.goto(server.url);
    await page.locator("#signed-out").waitFor();
    await page.goto(newLink());
    await page.locator("#signed-in").waitFor();
    expect(await textOf(page, "account-email")).toBe(email);
  });
});

browserTest("a key created here works until it is revoked, and is shown once", async () => {
  await withPage(async (page) => {
    await signIn(page);
    await page.click("#to-account");
    await page.fill("#key-name", "laptop");
    await page.click("#new-key button");
    await page.locator("#made-key").waitFor();
    const key = await textOf(page, "shown-key");
    expect((await server.ask("GET", "/v1/auth/me", { key })).body.email).toBe(email);

    await page.click("#key-stored");
    expect(await page.content()).not.toContain(key);
    await page.reload();
    await page.getByRole("button", { name: "Revoke laptop" }).click();
    expect((await server.ask("GET", "/v1/auth/me", { key })).status).toBe(200);
    await page.getByRole("button", { name: "Really revoke laptop?" }).click();
    await page.locator("#key-list li").waitFor({ state: "detached" });
    await page.locator("#keys-told", { hasText: "laptop is revoked." }).waitFor();
    expect(await page.evaluate(() => document.activeElement?.id)).not.toBe("key-name");
    expect((await server.ask("GET", "/v1/auth/me", { key })).status).toBe(401);
  });
});

browserTest("keys that are made or revoked elsewhere are told of at the next look at them", async () => {
  const person = await server.signUp(email);
  const { keyId } = (await person.ask("POST", "/v1/auth/keys", { name: "laptop" })).body;
  await withPage(async (page) => {
    await signIn(page);
    await page.click("#to-account");
    const names = page.locator("#key-list li b");
    await names.filter({ hasText: "laptop" }).waitFor();
    await person.ask("DELETE", `/v1/auth/keys/${keyId}`);
    await person.ask("POST", "/v1/auth/keys", { name: "phone" });
    await page.click("#to-chat");
    await page.click("#to-account");
    await names.filter({ hasText: "phone" }).waitFor();
    expect(await names.allTextContents()).toEqual(["phone"]);
  });
});

browserTest("a key that is for one instance says for which", async () => {
  const person = await server.signUp(email);
  const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "<b>home</b>" })).body;
  await person.ask("POST", "/v1/auth/keys", { name: "everywhere" });
  await person.ask("POST", "/v1/auth/keys", { name: "there", instanceId });
  await withPage(async (page) => {
    await signIn(page);
    await page.click("#to-account");
    const [there, everywhere] = [page.locator("#key-list li").nth(0), page.locator("#key-list li").nth(1)];
    await there.getByText("only in <b>home</b>").waitFor();
    expect(await everywhere.textContent()).not.toContain("only in");
  });
});

browserTest("a key says when it expires, and may be created to", async () => {
  const person = await server.signUp(email);
  await person.ask("POST", "/v1/auth/keys", { name: "for ever" });
  await withPage(async (page) => {
    await signIn(page);
    await page.click("#to-account");
    await page.locator("#key-list li").waitFor();
    expect(await page.locator("#key-list li").textContent()).not.toContain("expires");
    await page.fill("#key-name", "for a month");
    await page.getByLabel("It works", { exact: true }).selectOption("for 30 days");
    await page.getByRole("button", { name: "Create a key" }).click();
    await page
      .locator("#key-list li", { hasText: "for a month" })
      .getByText(/expires \d+ \w+ 20\d\d/)
      .waitFor();
    const { data } = (await person.ask("GET", "/v1/auth/keys")).body as { data: { expiresAt: string | null }[] };
    const [made = "", never] = data.map(({ expiresAt }) => expiresAt) as [string, null];
    const days = (Date.parse(made) - Date.now()) / (24 * 3_600_000);
    expect([Math.round(days), never]).toEqual([30, null]);
  });
});

browserTest("one click creates an agent, and its answer is still there after a reload", async () => {
  await withPage(async (page) => {
    await signIn(page);
    await page.click("#wake-agent");
    await page.fill("#chat-input", "Hello <i>you</i>");
    await page.keyboard.press("Enter");
    await page.getByText("Hello, I am the mock model.", { exact: true }).waitFor();
    expect(await page.locator(".turn.user .said").textContent()).toBe("Hello <i>you</i>");
    await page.reload();
    await page.getByText("Hello, I am the mock model.", { exact: true }).waitFor();

    await page.click("#instance-power");
    await page.getByRole("button", { name: /^Really stop all agents / }).click();
    await page.locator("#instance-state", { hasText: "stopped · costs nothing" }).waitFor();
    await page.fill("#chat-input", "Still there?");
    await page.keyboard.press("Enter");
    await page.getByText("Start it, then try again.").waitFor();
    expect(await page.inputValue("#chat-input")).toBe("Still there?");
  });
});

browserTest("a cancelled answer keeps what was said", async () => {
  await withPage(async (page) => {
    await signIn(page);
    await page.click("#wake-agent");
    model.script({ kind: "text", tokens: ["Once ", "upon ", "a time"], ending: "hang" });
    await page.click("#chat-ideas button");
    await page.getByText("Once upon a time", { exact: true }).waitFor();
    await page.click("#chat-cancel");
    await page.getByText("cancelled", { exact: true }).waitFor();
    expect(await page.locator(".turn.agent .said").textContent()).toBe("Once upon a time");
  });
});

browserTest("the commands shown work as they are, for a whole conversation", async () => {
  await withPage(async (page) => {
    await signIn(page);
    await page.click("#to-account");
    await page.click("#new-key button");
    await page.locator("#made-key").waitFor();
    const steps = ["step-key", "step-instance", "step-agent", "step-message"];
    const script = (await Promise.all(steps.map((id) => textOf(page, id)))).join("\n");
    const shell = Bun.spawn(["bash", "-euc", script], { stderr: "ignore", timeout: 120_000 });
    expect(await new Response(shell.stdout).text()).toContain("event: run.completed");
  });
});

browserTest("signing out leaves nothing of the session behind", async () => {
  await withPage(async (page) => {
    await signIn(page);
    await page.click("#to-account");
    await page.click("#sign-out");
    await page.locator("#signed-out").waitFor();
    expect(await page.evaluate(() => [sessionStorage.length, localStorage.length, document.cookie])).toEqual([
      0,
      0,
      "",
    ]);
    await page.reload();
    await page.locator("#signed-out").waitFor();
  });
});

browserTest("a session that the server ended leads back to the sign-in", async () => {
  await withPage(async (page) => {
    await signIn(page);
    const token = await page.evaluate(() => sessionStorage.getItem("roost.token"));
    await server.ask("POST", "/v1/auth/revoke-tokens", { token: token ?? "" });
    await page.click("#to-account");
    await page.getByText("Your session has ended. Sign in again.").waitFor();
    expect(await page.locator("#signed-in").isVisible()).toBe(false);
  });
});

browserTest("the page fits 320 pixels, signed out and in", async () => {
  await withPage(async (page) => {
    const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    await page.setViewportSize({ width: 320, height: 640 });
    await page.goto(server.url);
    await page.locator("#signed-out").waitFor();
    expect(await overflow()).toBe(0);
    await signIn(page);
    await page.click("#wake-agent");
    await page.locator("#conversation").waitFor();
    expect(await overflow()).toBe(0);
    await page.click("#to-account");
    await page.click("#new-key button");
    await page.locator("#made-key").waitFor();
    expect(await overflow()).toBe(0);
  });
});
