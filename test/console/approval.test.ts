import { afterAll, beforeAll, beforeEach, expect } from "bun:test";
import type { Page } from "playwright-core";
import { outsideTool, strangersTool } from "../approvals/asking.ts";
import { browserTest } from "../support/browser.ts";
import { type MockModelServer, startMockModelServer } from "../support/mock-model-server.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";
import { openAs, withConsole } from "./with-console.ts";

const LAPTOP = { width: 1366, height: 640 };
const PHONE = { width: 390, height: 844 };
/** The height of a thumb's target, in CSS pixels. */
const THUMB = 44;

const mail = outsideTool("mail");
let model: MockModelServer;
let server: TestServer;
let person: Person;
let agentPath: string;
let axe: string;

beforeAll(async () => {
  axe = await Bun.file(Bun.resolveSync("axe-core/axe.min.js", import.meta.dir)).text();
  model = startMockModelServer();
  const settings = { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: model.url };
  server = await startTestServer(settings, { moreTools: [mail.tool, strangersTool()] });
});
afterAll(async () => {
  await server.stop();
  await model.stop();
});
beforeEach(async () => {
  mail.acted.length = 0;
  person = await server.signUp();
  const { body: instance } = await person.ask("POST", "/v1/instances", { name: "home" });
  const agents = `/v1/instances/${instance.instanceId}/agents`;
  const { body: agent } = await person.ask("POST", agents, { name: "Ada" });
  agentPath = `${agents}/${agent.agentId}`;
});

const withPage = (use: (page: Page) => Promise<void>) =>
  withConsole(
    () => server.url,
    async (page) => {
      await openAs(page, server.url, person.token);
      await use(page);
    },
  );

async function write(page: Page, text: string, ...calls: [name: string, input: object][]): Promise<void> {
  for (const [name, input] of calls)
    model.script({ kind: "tools", calls: [{ name, arguments: input }], text: "Wait. " });
  model.script({ kind: "text", tokens: ["Done."] });
  await page.fill("#chat-input", text);
  await page.keyboard.press("Enter");
  await page.locator(".approval").waitFor();
}

async function faults(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: typeof import("axe-core") };
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    return violations as { id: string; nodes: { html: string }[] }[];
  });
  return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}

browserTest("an approval is shown whole, also after a reload, and approved by keyboard alone", async () => {
  await withPage(async (page) => {
    await write(page, "Mail it", ["mail", { key: "a\u202eb <b>bold</b>" }]);
    await page.reload();
    const card = page.locator(".approval");
    await card.waitFor();
    // What turns the direction of text around is to be seen, and markup is text.
    expect(await card.locator("pre").textContent()).toBe('{\n  "key": "a\\u202eb <b>bold</b>",\n  "method": "GET"\n}');
    expect(mail.acted).toEqual([]);
    await card.getByRole("button", { name: "Approve" }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("Wait. Done.").waitFor();
    await card.getByText("Approved by").waitFor();
    expect(mail.acted).toEqual(["a\u202eb <b>bold</b>"]);
    expect(await card.evaluate((element) => element === document.activeElement)).toBe(true);
    expect(await card.getByRole("button").count()).toBe(0);
  });
});

browserTest("a call is denied, and one that was decided elsewhere or cancelled can no longer be decided", async () => {
  await withPage(async (page) => {
    await write(page, "Mail it", ["mail", { key: "a" }]);
    await page.getByRole("button", { name: "Deny" }).click();
    await page.locator(".approval").getByText("Denied by").waitFor();
    await page.getByText("Wait. Done.").waitFor();

    await write(page, "Mail again", ["mail", { key: "b" }]);
    const second = page.locator(".approval").nth(1);
    await second.getByRole("button", { name: "Approve" }).waitFor();
    const [open] = (await person.ask("GET", "/v1/approvals?status=open")).body.data;
    await person.ask("POST", `/v1/approvals/${open.approvalId}/decision`, { decision: "deny" });
    await second.getByText("Denied by").waitFor();
    expect(await second.getByRole("button").count()).toBe(0);

    await write(page, "And again", ["mail", { key: "c" }]);
    const third = page.locator(".approval").nth(2);
    await third.getByRole("button", { name: "Approve" }).waitFor();
    await page.click("#chat-cancel");
    await third.getByText("Cancelled").waitFor();
    expect(mail.acted).toEqual([]);
  });
});

const QUESTIONS = [
  { question: "Which day suits you?", options: ["Monday", "Friday"] },
  { question: "What should I bring?" },
];

browserTest("questions are answered, by choice and in own words", async () => {
  await withPage(async (page) => {
    await write(page, "Plan it", ["ask_user", { questions: QUESTIONS }]);
    const card = page.locator(".approval");
    await card.getByRole("button", { name: "Answer", exact: true }).click();
    // Nothing is sent while an answer is missing.
    expect((await person.ask("GET", "/v1/approvals?status=open")).body.data.length).toBe(1);
    await card.getByLabel("Friday").check();
    await card.getByLabel("What should I bring?").fill("bread");
    await page.keyboard.press("Enter");
    await page.getByText("Wait. Done.").waitFor();
    const [{ answers }] = (await person.ask("GET", "/v1/approvals")).body.data;
    expect(answers).toEqual(["Friday", "bread"]);
    await card.getByText("Friday · bread").waitFor();
  });
});

browserTest(
  "what is to be decided fits a thumb, and axe finds no problem in it, light or dark, large or small",
  async () => {
    await person.ask("PATCH", agentPath, { tools: { mail: "allow" } });
    await withPage(async (page) => {
      await write(page, "Plan it", ["ask_user", { questions: QUESTIONS }]);
      await page.getByRole("button", { name: "Do not answer" }).click();
      await page.getByText("Wait. Done.").waitFor();
      const text = "A paragraph of the letter that goes on for a while.\n".repeat(12);
      await write(page, "Mail what it says", ["fetch", {}], ["mail", { key: text }]);
      const asked = page.locator(".approval").nth(1);
      await asked.getByText("a stranger may have written").waitFor();
      expect(await asked.getByRole("checkbox").count()).toBe(0);
      await write(page, "Plan more", ["ask_user", { questions: QUESTIONS }]).catch(() => undefined);
      for (const size of [LAPTOP, PHONE]) {
        for (const colorScheme of ["light", "dark"] as const) {
          await page.emulateMedia({ colorScheme });
          await page.setViewportSize(size);
          expect(await faults(page)).toEqual([]);
        }
        await page.emulateMedia({ colorScheme: "light" });
        await asked.scrollIntoViewIfNeeded();
        for (const button of await asked.getByRole("button").all()) {
          const box = await button.boundingBox();
          expect(box?.height).toBeGreaterThanOrEqual(THUMB);
          expect(box?.width).toBeGreaterThanOrEqual(THUMB);
          expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(size.width);
        }
        const shots = process.env.ROOST_TEST_SHOTS;
        if (shots) await page.screenshot({ path: `${shots}/approval-${size.width}.png` });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
        expect(wide).toBe(false);
      }
    });
  },
);
