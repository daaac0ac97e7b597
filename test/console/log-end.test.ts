import { afterAll, beforeEach, expect } from "bun:test";
import type { Page } from "playwright-core";
import { now } from "../../src/tools/now.ts";
import { browserTest } from "../support/browser.ts";
import type { Person } from "../support/test-server.ts";
import { focus, lookAgain, signUpWithAgent, startWithModel, withConsoleAs } from "./with-console.ts";

const LONG = "A line of an answer that goes on for a while. ".repeat(12);

let person: Person;
let agentPath: string;

const { model, server, stop } = await startWithModel({ tools: [now] });
afterAll(stop);
beforeEach(async () => {
  ({ person, agentPath } = await signUpWithAgent(server));
});

/** A conversation that is longer than the screen. */
async function talkAtLength(): Promise<void> {
  for (let count = 0; count < 4; count++) {
    model.script({ kind: "text", tokens: [LONG] });
    await person.ask("POST", `${agentPath}/messages`, { message: `Question ${count}` });
  }
}

const withPage = (use: (page: Page) => Promise<void>) =>
  withConsoleAs(server, person, async (page) => {
    await page.getByText("Question 3", { exact: true }).waitFor();
    await use(page);
  });

async function write(page: Page, text: string): Promise<void> {
  await page.fill("#chat-input", text);
  await page.keyboard.press("Enter");
}

/** How far the log is from its end, in CSS pixels. */
const fromEnd = (page: Page): Promise<number> =>
  page
    .locator("#chat-log")
    .evaluate(({ scrollHeight, clientHeight, scrollTop }) => scrollHeight - clientHeight - scrollTop);
const position = (page: Page): Promise<number> => page.locator("#chat-log").evaluate((log) => log.scrollTop);

/** Resolves when the log has stopped scrolling after this. */
async function scroll(page: Page, act: () => Promise<void>): Promise<void> {
  await page.evaluate(() => {
    document.body.removeAttribute("data-scrolled");
    const tell = () => document.body.setAttribute("data-scrolled", "");
    document.querySelector("#chat-log")?.addEventListener("scrollend", tell, { once: true });
  });
  await act();
  await page.locator("body[data-scrolled]").waitFor();
}

/** Asks for an answer of which the beginning is shown; `end` lets the rest come, and waits for it. */
async function beginAnswer(page: Page, name: string): Promise<{ end(): Promise<void> }> {
  const { promise, resolve } = Promise.withResolvers<void>();
  model.script({ kind: "tools", calls: [{ name: "now", arguments: {} }], text: `Beginning of ${name}. ` });
  model.script({ kind: "text", tokens: [LONG, `End of ${name}.`], after: promise });
  await write(page, name);
  await page.getByText(`Beginning of ${name}.`).waitFor();
  await page.getByText("using now").waitFor();
  return {
    async end() {
      resolve();
      await page.getByText(`End of ${name}.`).waitFor();
      await page.locator("#chat-cancel").waitFor({ state: "hidden" });
    },
  };
}

const press = (page: Page, key: string) => async () => {
  await focus(page.locator("#chat-log"));
  await page.keyboard.press(key);
};
const turnWheel = (page: Page, by: number) => async () => {
  await page.locator("#chat-log").hover();
  await page.mouse.wheel(0, by);
};

browserTest("who scrolls up while an answer is written, however little, stays there", async () => {
  await talkAtLength();
  await withPage(async (page) => {
    for (const [name, up] of [
      ["arrow", press(page, "ArrowUp")],
      ["wheel", turnWheel(page, -30)],
    ] as const) {
      const answer = await beginAnswer(page, name);
      expect(await fromEnd(page)).toBeLessThan(2);
      await scroll(page, up);
      const before = await position(page);
      await answer.end();
      expect(await position(page)).toBe(before);
    }
  });
});

browserTest("who scrolls back to the end of an answer that is written follows it again", async () => {
  await talkAtLength();
  await withPage(async (page) => {
    const answer = await beginAnswer(page, "story");
    await scroll(page, press(page, "ArrowUp"));
    await scroll(page, press(page, "End"));
    await answer.end();
    expect(await fromEnd(page)).toBeLessThan(2);
  });
});

browserTest(
  "who unfolds steps while an answer is written reads there, and a message sent leads to the end",
  async () => {
    await talkAtLength();
    await withPage(async (page) => {
      const answer = await beginAnswer(page, "story");
      await page.getByText("Steps: now").click();
      const before = await position(page);
      await answer.end();
      expect(await position(page)).toBe(before);
      await write(page, "Thank you");
      await page.getByText("Hello, I am the mock model.").waitFor();
      await page.locator("#chat-cancel").waitFor({ state: "hidden" });
      expect(await fromEnd(page)).toBeLessThan(2);
    });
  },
);

browserTest("a message sent elsewhere leads nobody to the end who reads above it", async () => {
  await talkAtLength();
  await withPage(async (page) => {
    const sendElsewhere = async (message: string) => {
      await person.ask("POST", `${agentPath}/messages`, { message });
      await lookAgain(page);
      await page.getByText(message, { exact: true }).waitFor();
    };
    await sendElsewhere("To a reader at the end");
    expect(await fromEnd(page)).toBeLessThan(2);
    await scroll(page, press(page, "ArrowUp"));
    const before = await position(page);
    await sendElsewhere("To a reader above it");
    expect(await position(page)).toBe(before);
  });
});

browserTest("a conversation whose last runs have failed is opened at its end", async () => {
  await talkAtLength();
  for (let count = 0; count < 3; count++) {
    model.script({ kind: "status", status: 400, body: { error: { message: "no such model" } } });
    await person.ask("POST", `${agentPath}/messages`, { message: `Failing ${count}` });
  }
  await withPage(async (page) => {
    await page.getByRole("button", { name: "Try again" }).nth(2).waitFor();
    expect(await fromEnd(page)).toBeLessThan(2);
  });
});

browserTest(
  "who looks at another page and comes back reads on where they were, with what was said meanwhile",
  async () => {
    await talkAtLength();
    await withPage(async (page) => {
      await page
        .locator(".exchange")
        .first()
        .evaluate((shown) => shown.setAttribute("data-kept", ""));
      await scroll(page, press(page, "PageUp"));
      const before = await position(page);
      for (const link of ["#to-approvals", "#to-usage", "#to-agent"]) {
        await page.click(link);
        await page.locator("#chat").waitFor({ state: "hidden" });
        if (link === "#to-usage") await person.ask("POST", `${agentPath}/messages`, { message: "Meanwhile" });
        await page.goBack();
        await page.locator("#chat").waitFor();
        if (link !== "#to-approvals") await page.getByText("Meanwhile", { exact: true }).waitFor();
        expect(await page.locator(".exchange[data-kept]").count()).toBe(1);
        expect(await position(page)).toBe(before);
      }
    });
  },
);
