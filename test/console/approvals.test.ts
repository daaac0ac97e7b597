import { afterAll, afterEach, beforeEach, expect } from "bun:test";
import type { Page } from "playwright-core";
import { outsideTool } from "../approvals/asking.ts";
import { faultsOf } from "../support/axe.ts";
import { browserTest } from "../support/browser.ts";
import { storeApproval } from "../support/stored-approval.ts";
import type { Person } from "../support/test-server.ts";
import { lookAgain, openAs, SIZES, startWithModel, tooWide, untilRunsEnd, withConsole } from "./with-console.ts";

const mail = outsideTool("mail");
let person: Person;

const { model, server, stop } = await startWithModel({ moreTools: [mail.tool] });
afterAll(stop);
afterEach(() => untilRunsEnd(server));
beforeEach(async () => {
  mail.acted.length = 0;
  person = await server.signUp();
});

interface Made {
  accountId: string;
  instanceId: string;
  agentId: string;
  path: string;
}

async function makeAgent(displayName: string): Promise<Made> {
  const { body: instance } = await person.ask("POST", "/v1/instances", { name: `of ${displayName}` });
  const agents = `/v1/instances/${instance.instanceId}/agents`;
  const { body: agent } = await person.ask("POST", agents, { name: "agent", displayName });
  const { accountId } = person;
  return { accountId, instanceId: instance.instanceId, agentId: agent.agentId, path: `${agents}/${agent.agentId}` };
}

const open = async (): Promise<{ agentId: string; approvalId: string }[]> =>
  (await person.ask("GET", "/v1/approvals?status=open")).body.data;

/** Lets an agent ask whether it may make this call; resolves once it does. */
async function ask({ path }: Made, name: string, input: object): Promise<void> {
  const before = (await open()).length;
  model.script({ kind: "tools", calls: [{ name, arguments: input }] });
  const { body: run } = await person.ask("POST", `${path}/messages`, { message: "Do it" }, { Prefer: "respond-async" });
  const events = await person.fetch("GET", `${path}/events?runId=${run.runId}`);
  const reader = events.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; !text.includes("event: run.waiting"); ) {
    const part = await reader?.read();
    if (!part || part.done) throw new Error(`the run ended: ${text}`);
    text += part.value;
  }
  await reader?.cancel();
  expect((await open()).length).toBe(before + 1);
}

/** The page with the approvals. */
const withApprovals = (use: (page: Page) => Promise<void>) =>
  withConsole(
    () => server.url,
    async (page) => {
      await openAs(page, server.url, person.token);
      await page.click("#to-approvals");
      await page.locator("#open-approvals:not(.loading)").waitFor();
      await use(page);
    },
  );
const row = (page: Page, at: number) => page.locator("#approval-list > li").nth(at);
const badge = (page: Page, text: string) =>
  page.locator("#open-count", { hasText: new RegExp(`^${text} waiting$`) }).waitFor();

browserTest("an agent's name that could not be read once is read for what it asks next", async () => {
  const ada = await makeAgent("Ada");
  storeApproval(server, ada);
  await withConsole(
    () => server.url,
    async (page) => {
      await openAs(page, server.url, person.token);
      await page.locator("#agent-name", { hasText: "Ada" }).waitFor();
      await page.route(`**${ada.path}`, (route) => route.abort());
      await page.click("#to-approvals");
      await row(page, 0).getByText(ada.agentId).waitFor();
      await page.unroute(`**${ada.path}`);
      storeApproval(server, ada);
      await lookAgain(page);
      await row(page, 0).getByText("Ada").waitFor();
    },
  );
});

browserTest("what every agent asks is in one list, newest first, and is decided there with the keyboard", async () => {
  await ask(await makeAgent("Ada"), "mail", { key: "to Cy" });
  await ask(await makeAgent("Bea"), "ask_user", { questions: [{ question: "Which day?" }] });
  await withApprovals(async (page) => {
    await badge(page, "2");
    expect(await page.locator("#to-approvals").getAttribute("aria-current")).toBe("page");
    await row(page, 0).getByText("Bea").waitFor();
    await row(page, 1).getByText("Ada").waitFor();
    expect(await page.locator("#approval-list .what").allTextContents()).toEqual([
      "ask_user Which day?",
      "mail GET to Cy",
    ]);

    await row(page, 1).locator("summary").focus();
    await page.keyboard.press("Enter");
    await row(page, 1).locator(".approval pre", { hasText: '"key": "to Cy"' }).waitFor();
    model.script({ kind: "text", tokens: ["Mailed."] });
    await row(page, 1).getByRole("button", { name: "Approve" }).focus();
    await page.keyboard.press("Enter");
    await row(page, 1).locator(".who", { hasText: "Approved by" }).waitFor();
    await badge(page, "1");
    expect(await row(page, 1).getByRole("button").count()).toBe(0);

    await row(page, 0).locator("summary").click();
    await row(page, 0).getByRole("textbox", { name: "Which day?" }).fill("Friday");
    model.script({ kind: "text", tokens: ["Friday."] });
    await page.keyboard.press("Enter");
    await row(page, 0).locator(".who", { hasText: "Answered by" }).waitFor();
    await page.locator("#open-count").waitFor({ state: "hidden" });
    expect(await open()).toEqual([]);

    // What was decided is gone from the list the next time, and kept below it.
    await page.click("#to-model");
    await page.click("#to-approvals");
    await page.getByText("Nothing waits for you.").waitFor();
    await page.locator("#decided-approvals > summary").click();
    const decided = page.locator("#decided-approvals li");
    await decided.nth(1).waitFor();
    expect(await decided.locator(".what").allTextContents()).toEqual(["ask_user Which day?", "mail GET to Cy"]);
    await decided.nth(0).getByText("Friday").waitFor();
  });
});

browserTest("an approval that is asked for or decided elsewhere shows without a reload", async () => {
  const ada = await makeAgent("Ada");
  await withApprovals(async (page) => {
    await page.getByText("Nothing waits for you.").waitFor();
    await ask(ada, "mail", { key: "a" });
    await lookAgain(page);
    await row(page, 0).locator("summary").click();
    await row(page, 0).getByRole("button", { name: "Approve" }).waitFor();
    const [{ approvalId } = { approvalId: "" }] = await open();
    model.script({ kind: "text", tokens: ["Not mailed."] });
    await person.ask("POST", `/v1/approvals/${approvalId}/decision`, { decision: "deny" });
    await lookAgain(page);
    await row(page, 0).locator(".approval", { hasText: "Denied by" }).waitFor();
    expect(await row(page, 0).getByRole("button").count()).toBe(0);
    await page.locator("#open-count").waitFor({ state: "hidden" });
  });
});

browserTest("the count in the navigation follows what the open conversation asks, in every view", async () => {
  await makeAgent("Ada");
  await withConsole(
    () => server.url,
    async (page) => {
      await openAs(page, server.url, person.token);
      model.script({ kind: "tools", calls: [{ name: "mail", arguments: { key: "a" } }] });
      await page.fill("#chat-input", "Mail it");
      await page.keyboard.press("Enter");
      await badge(page, "1");
      expect(await page.locator("#open-told").textContent()).toBe("1 waiting for your approval");
      await page.click("#to-account");
      expect(await page.locator("#open-count").isVisible()).toBe(true);
      await page.click("#to-chat");
      model.script({ kind: "text", tokens: ["Not mailed."] });
      await page.locator(".approval").getByRole("button", { name: "Deny" }).click();
      await page.locator("#open-count").waitFor({ state: "hidden" });
    },
  );
});

browserTest("what need not be asked again is listed, and can be taken back", async () => {
  const ada = await makeAgent("Ada");
  await ask(ada, "mail", { key: "a", method: "POST" });
  await withApprovals(async (page) => {
    const rules = page.locator("#approval-rules");
    await rules.locator(":scope > summary").click();
    await rules.getByText("Do not ask again for such calls").waitFor();
    await rules.locator(":scope > summary").click();

    await row(page, 0).locator("summary").click();
    await row(page, 0).getByLabel("Do not ask again for such calls").check();
    model.script({ kind: "text", tokens: ["Mailed."] });
    await row(page, 0).getByRole("button", { name: "Approve" }).click();
    await row(page, 0).locator(".who", { hasText: "Approved by" }).waitFor();

    await rules.locator(":scope > summary").click();
    await rules.locator("li", { hasText: "mail" }).getByText("Ada").waitFor();
    await page.getByRole("button", { name: "Ask again before mail" }).click();
    const stored = async () =>
      (await person.ask("GET", `/v1/instances/${ada.instanceId}/approval-rules`)).body.data.length;
    expect(await stored()).toBe(1);
    await page.getByRole("button", { name: "Really ask again before mail?" }).click();
    await rules.getByText("it is then listed here").waitFor();
    expect(await stored()).toBe(0);
  });
});

browserTest("many open approvals are shown a page at a time, and each once", async () => {
  const ada = await makeAgent("Ada");
  for (let count = 0; count < 45; count++) storeApproval(server, ada);
  await withApprovals(async (page) => {
    await badge(page, "20\\+");
    const shown = page.locator("#approval-list > li");
    expect(await shown.count()).toBe(20);
    storeApproval(server, ada);
    await lookAgain(page);
    await shown.nth(20).waitFor();
    await page.click("#more-approvals");
    await shown.nth(40).waitFor();
    await page.click("#more-approvals");
    await shown.nth(45).waitFor();
    await page.locator("#more-approvals").waitFor({ state: "hidden" });
    const ids = await shown.evaluateAll((items) => items.map(({ id }) => id));
    expect(ids).toEqual([...new Set(ids)].sort().reverse());
    expect(ids.length).toBe(46);
  });
});

browserTest("an approval that could not be decided says why, and can be tried again", async () => {
  await ask(await makeAgent("Ada"), "mail", { key: "a" });
  await withApprovals(async (page) => {
    await row(page, 0).locator("summary").click();
    await page.route("**/decision", (route) => route.abort());
    const approve = row(page, 0).getByRole("button", { name: "Approve" });
    await approve.click();
    const alert = row(page, 0).getByRole("alert");
    await alert.waitFor();
    expect(await alert.textContent()).toBe("the server does not answerCheck that it is running, then try again.");
    await page.unroute("**/decision");
    model.script({ kind: "text", tokens: ["Mailed."] });
    await approve.click();
    await row(page, 0).locator(".who", { hasText: "Approved by" }).waitFor();
  });
});

const LONG = "Donaudampfschifffahrtselektrizitaetenhauptbetriebswerkbauunterbeamtengesellschaft";

browserTest("names and inputs are shown as text, break no layout, and axe finds no problem", async () => {
  const hostile = await makeAgent(`<img src=x> \u05d0\u05d1 ${LONG}`);
  await ask(hostile, "mail", { key: `\u202e<b>bold</b> ${LONG.repeat(5)}` });
  await ask(await makeAgent(LONG), "ask_user", {
    questions: [{ question: `<b>${LONG}</b> \u05d0`, options: [LONG, "\u05d1"] }],
  });
  await withApprovals(async (page) => {
    const check = async (what: string) => {
      for (const size of SIZES) {
        for (const colorScheme of ["light", "dark"] as const) {
          await page.setViewportSize(size);
          await page.emulateMedia({ colorScheme });
          expect([what, size.width, colorScheme, await tooWide(page)]).toEqual([what, size.width, colorScheme, false]);
          expect(await faultsOf(page)).toEqual([]);
        }
      }
    };
    await check("folded");
    for (const at of [0, 1]) await row(page, at).locator("summary").click();
    await page.locator(".approval").nth(1).waitFor();
    await check("whole");
    model.script({ kind: "text", tokens: ["No."] });
    await row(page, 1).getByRole("button", { name: "Deny" }).click();
    await row(page, 1).locator(".who", { hasText: "Denied by" }).waitFor();
    for (const id of ["decided-approvals", "approval-rules"]) await page.click(`#${id} > summary`);
    await page.locator("#decided-approvals li summary").click();
    await check("decided");
    expect(await page.locator("#view-approvals :is(img, pre b, .what b)").count()).toBe(0);
    expect(await page.locator("#decided-approvals pre").textContent()).toContain("\\u202e<b>bold</b>");
  });
});
