import { afterAll, beforeEach, expect } from "bun:test";
import type { Page } from "playwright-core";
import { browserTest } from "../support/browser.ts";
import type { Person } from "../support/test-server.ts";
import { focus, signUpWithAgent, startWithModel, withConsoleAs } from "./with-console.ts";

let person: Person;
let agentPath: string;
let hash: string;

const { model, server, stop } = await startWithModel();
afterAll(stop);
beforeEach(async () => {
  ({ person, agentPath, hash } = await signUpWithAgent(server));
});

/** Presses this button by keyboard. */
async function press(page: Page, selector: string): Promise<void> {
  await focus(page.locator(selector));
  await page.keyboard.press("Enter");
}

/** What has the focus once the page is drawn as it is now: before that, what is hidden may still have it. */
const focused = (page: Page): Promise<string | undefined> =>
  page.evaluate(async () => {
    for (const _ of [1, 2]) await new Promise(requestAnimationFrame);
    return document.activeElement?.id || document.activeElement?.tagName;
  });

browserTest("a button that was pressed by keyboard keeps the focus once its work is done", async () => {
  await withConsoleAs(server, person, async (page) => {
    const hold = async (path: string, selector: string) => {
      const gate = Promise.withResolvers<void>();
      await page.route(path, async (route) => {
        await gate.promise;
        await route.continue();
      });
      await press(page, selector);
      await page.locator(`${selector}:disabled`).waitFor();
      expect(await focused(page)).toBe("BODY");
      gate.resolve();
      await page.locator(`${selector}:enabled`).waitFor();
      await page.unroute(path);
      return focused(page);
    };
    await page.locator("#conversation").waitFor();
    await press(page, "#instance-power");
    expect(await hold("**/stop", "#instance-power")).toBe("instance-power");
    expect(await hold("**/start", "#instance-power")).toBe("instance-power");
    await page.goto(`${server.url}/${hash}/memory`);
    await page.fill("#memory-query", "bird");
    expect(await hold("**/memory?*", "#memory-search")).toBe("memory-search");
    await page.goto(`${server.url}/${hash}/export`);
    expect(await hold("**/bundle?*", "#export-download")).toBe("export-download");
    await page.goto(`${server.url}/#usage`);
    await page.locator("#limits-fields:enabled").waitFor();
    await page.evaluate(() => document.querySelector("#limits-fields button")?.setAttribute("id", "save-limits"));
    expect(await hold("**/auth/me", "#save-limits")).toBe("save-limits");
    expect(await page.locator("#limits-saved").textContent()).toStartWith("Saved.");
  });
});

browserTest("where the pressed button is gone, what is next to it has the focus", async () => {
  // More than one page of messages, and fewer than two.
  for (let count = 0; count < 30; count++) {
    model.script({ kind: "text", tokens: ["An answer."] });
    await person.ask("POST", `${agentPath}/messages`, { message: `Question ${count}` });
  }
  await withConsoleAs(
    server,
    person,
    async (page) => {
      await press(page, "#chat-earlier");
      await page.getByText("Question 0", { exact: true }).waitFor();
      await page.locator("#chat-earlier").waitFor({ state: "hidden" });
      expect(await focused(page)).toBe("chat-log");
      await page.goto(`${server.url}/${hash}/schedules`);
      await page.locator("#schedules:not(.loading)").waitFor();
      await press(page, "#schedule-fold > summary");
      await press(page, "#schedule-cancel");
      await page.locator("#schedule-cancel").waitFor({ state: "hidden" });
      expect(await focused(page)).toBe("SUMMARY");
    },
    hash,
  );
});

browserTest("cancelling an answer leaves the focus in the conversation", async () => {
  const never = Promise.withResolvers<void>();
  model.script({ kind: "text", tokens: ["One ", "two"], after: never.promise });
  await withConsoleAs(
    server,
    person,
    async (page) => {
      const hidden = Promise.withResolvers<void>();
      const answered = Promise.withResolvers<void>();
      await page.route("**/cancel", async (route) => {
        const response = await route.fetch();
        await hidden.promise;
        await route.fulfill({ response });
        answered.resolve();
      });
      await page.fill("#chat-input", "Count");
      await page.keyboard.press("Enter");
      await press(page, "#chat-cancel");
      await page.locator("#chat-cancel").waitFor({ state: "hidden" });
      hidden.resolve();
      await answered.promise;
      await page.locator("#chat-cancel:enabled").waitFor({ state: "attached" });
      expect(await focused(page)).toBe("chat-input");
      never.resolve();
    },
    hash,
  );
});
