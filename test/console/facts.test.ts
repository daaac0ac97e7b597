import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { loadConfig } from "../../src/config.ts";
import { browserTest } from "../support/browser.ts";
import { startMockModelServer } from "../support/mock-model-server.ts";
import { startTestServer } from "../support/test-server.ts";
import { openAs, withConsole } from "./with-console.ts";

// biome-ignore lint/performance/useDomNodeTextContent: what is hidden does not count
const visibleText = (page: Page) => page.locator("body").innerText();

browserTest("a host that does not charge mentions no cost, balance or payment", async () => {
  const model = startMockModelServer();
  const free = await startTestServer({
    ROOST_MODEL: "openai:mock",
    ROOST_OPENAI_BASE_URL: model.url,
    ROOST_PRICE_PER_HOUR: "0",
    ROOST_MINIMUM_LAUNCH_BALANCE: "0",
  });
  try {
    const { token } = await free.signUp("ada@example.com", "0.00");
    await withConsole(
      () => free.url,
      async (page) => {
        const quiet = async () => expect(await visibleText(page)).not.toMatch(/USDC|\bcosts?\b|balance|0\.00|top up/i);
        await openAs(page, free.url, token);
        await page.locator("#intro").waitFor();
        await quiet();
        await page.click("#wake-agent");
        await page.fill("#chat-input", "Hello");
        await page.keyboard.press("Enter");
        await page.getByText("Hello, I am the mock model.").waitFor();
        await quiet();
        await page.click("#instance-power");
        await page.getByText("Stop all agents here?").click();
        await page.locator("#instance-state", { hasText: "stopped" }).waitFor();
        await quiet();
        await page.click("#to-account");
        await page.getByText("This host does not charge.").waitFor();
        await quiet();
      },
    );
  } finally {
    await free.stop();
    await model.stop();
  }
});

browserTest("a user without credit sees what is missing and whom to ask, before and after trying", async () => {
  const host = await startTestServer();
  try {
    const { token } = await host.signUp("ada@example.com", "0.00");
    await withConsole(
      () => host.url,
      async (page) => {
        await openAs(page, host.url, token);
        const hint = page.locator("#intro-balance");
        await hint.waitFor();
        expect(await hint.textContent()).toBe(
          "Starting one needs a balance of 0.50 USDC, and yours is 0.00: ask the operator of this host for credit, or top up.",
        );
        await page.click("#wake-agent");
        const alert = page.locator("#chat > [role=alert]");
        await alert.waitFor();
        expect(await alert.textContent()).toMatch(
          /Ask the operator of this host for credit, or top up under Account\.$/,
        );
        await hint.getByText("top up").click();
        await page.locator("#ask-quote").waitFor();
      },
    );
  } finally {
    await host.stop();
  }
});

browserTest("a balance is shown to the cent, and never as more than there is", async () => {
  const model = startMockModelServer();
  const host = await startTestServer({ ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: model.url });
  try {
    const { token } = await host.signUp();
    await withConsole(
      () => host.url,
      async (page) => {
        await openAs(page, host.url, token);
        await page.click("#wake-agent");
        await page.fill("#chat-input", "Hello");
        const read = page.waitForResponse(
          async (answer) => answer.url().endsWith("/auth/me") && (await answer.json()).balance !== "10.000000",
        );
        await page.keyboard.press("Enter");
        await read;
        await page.getByText("Hello, I am the mock model.").waitFor();
        expect(await page.locator("#purse-balance").textContent()).toBe("9.99 USDC");
        expect(await page.locator("#balance").textContent()).toBe("9.99");
      },
    );
  } finally {
    await host.stop();
    await model.stop();
  }
});

browserTest("the console describes the embedded model, and Ollama is one command and a restart away", async () => {
  const ollama = startMockModelServer();
  let host = await startTestServer({}, { ollamaUrl: ollama.url });
  const { dataDir } = host;
  let command = "";
  try {
    const { token } = await host.signUp("ada@example.com");
    await withConsole(
      () => host.url,
      async (page) => {
        await openAs(page, host.url, token);
        await page.click("#wake-agent");
        const line = page.locator("#answers-from");
        await page.locator("#conversation").waitFor();
        expect(await line.textContent()).toContain("fluent in English, but its facts and advice are often wrong");
        await line.getByText("Use Ollama instead").click();
        await page.locator("#model-offer").waitFor();
        expect(await page.locator("#model-how").isVisible()).toBe(false);
        command = (await page.locator("#ollama-command").textContent()) ?? "";
      },
    );
    // Existing settings, without a final newline.
    await Bun.write(`${dataDir}/roost.toml`, 'models = "other"');
    for (let paste = 0; paste < 2; paste++) {
      const shell = Bun.spawn(["sh", "-c", command], { stdio: ["ignore", "pipe", "pipe"] });
      expect([await shell.exited, await new Response(shell.stderr).text()]).toEqual([0, ""]);
    }
    const { config } = loadConfig({ ROOST_DATA_DIR: dataDir });
    expect([config.model, config.openAiBaseUrl]).toEqual(["openai:mock", ollama.url]);

    await host.app.stop();
    host.foundation.store.close();
    host = await startTestServer({}, { dataDir, ollamaUrl: ollama.url });
    await withConsole(
      () => host.url,
      async (page) => {
        await openAs(page, host.url, token);
        await page.getByText("Answers come from mock.").waitFor();
        await page.fill("#chat-input", "Hello");
        await page.keyboard.press("Enter");
        await page.getByText("Hello, I am the mock model.").waitFor();
        await page.click("#to-model");
        expect(await page.locator("#model-offer").isVisible()).toBe(false);
      },
    );
  } finally {
    await host.stop();
    await ollama.stop();
  }
});
