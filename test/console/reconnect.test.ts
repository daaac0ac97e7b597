import { expect } from "bun:test";
import { connect, createServer, type Socket } from "node:net";
import { browserTest, withBrowser } from "../support/browser.ts";
import { startMockModelServer } from "../support/mock-model-server.ts";
import { startTestServer } from "../support/test-server.ts";

/** A way to the port whose connections can be cut as a bad network cuts them. */
async function startBreakableWay(port: number) {
  const sockets = new Set<Socket>();
  let isOpen = true;
  const server = createServer((near) => {
    if (!isOpen) return near.destroy();
    const far = connect(port, "127.0.0.1");
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.pipe(to);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${address.port}`,
    cut,
    /** Whether connections come through from now on. */
    open(is: boolean) {
      isOpen = is;
      if (!is) cut();
    },
    async stop() {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

browserTest("an answer whose connection breaks continues, with no word lost or repeated", async () => {
  const tokens = Array.from({ length: 30 }, (_, index) => `word${index} `);
  const model = startMockModelServer();
  // Its second half is said once the page has connected again.
  const again = Promise.withResolvers<void>();
  model.script({ kind: "tools", calls: [{ name: "now", arguments: {} }], text: tokens.slice(0, 15).join("") });
  model.script({ kind: "text", tokens: tokens.slice(15), after: again.promise });
  const server = await startTestServer({ ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: model.url });
  const way = await startBreakableWay(Number(new URL(server.url).port));
  try {
    await withBrowser(async (browser) => {
      const page = browser.pages()[0] ?? (await browser.newPage());
      const link = server.foundation.links.create("ada@example.com", 10_000_000n);
      await page.goto(`${way.url}/#link=${link}`);
      await page.click("#wake-agent");
      const resumed = page.waitForRequest((request) => /events\?runId=.*after=/.test(request.url()));
      await page.fill("#chat-input", "Count");
      await page.keyboard.press("Enter");
      await page.getByText("word14").waitFor();
      way.cut();
      await resumed;
      again.resolve();
      await page.getByText("word29").waitFor();
      const deltas = await page.locator(".turn.agent .said").textContent();
      expect(deltas?.trim()).toBe(tokens.join("").trim());
      await page.locator("#chat-log[aria-busy=false]").waitFor();
      expect(await page.locator("[role=alert]:visible").count()).toBe(0);
    });
  } finally {
    await way.stop();
    await server.stop();
    await model.stop();
  }
});

browserTest("an answer says when its server is away, and goes on without a word when that is back", async () => {
  const model = startMockModelServer();
  const again = Promise.withResolvers<void>();
  model.script({ kind: "tools", calls: [{ name: "now", arguments: {} }], text: "Once upon " });
  model.script({ kind: "text", tokens: ["a ", "time."], after: again.promise });
  const server = await startTestServer({ ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: model.url });
  const way = await startBreakableWay(Number(new URL(server.url).port));
  try {
    await withBrowser(async (browser) => {
      const page = browser.pages()[0] ?? (await browser.newPage());
      const link = server.foundation.links.create("ada@example.com", 10_000_000n);
      await page.goto(`${way.url}/#link=${link}`);
      await page.click("#wake-agent");
      await page.fill("#chat-input", "Tell me a story");
      await page.keyboard.press("Enter");
      await page.getByText("Once upon").waitFor();
      way.open(false);
      await page.getByText("Reconnecting…").waitFor();
      way.open(true);
      await page.getByText("Reconnecting…").waitFor({ state: "hidden" });
      again.resolve();
      await page.getByText("Once upon a time.").waitFor();
      expect(await page.locator("[role=alert]:visible").count()).toBe(0);
    });
  } finally {
    await way.stop();
    await server.stop();
    await model.stop();
  }
});
