import { afterAll, afterEach, beforeEach, expect } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { outsideTool, strangersTool } from "../approvals/asking.ts";
import { faultsOf } from "../support/axe.ts";
import { browserTest } from "../support/browser.ts";
import type { Person } from "../support/test-server.ts";
import { lookAgain, signUpWithAgent, startWithModel, untilRunsEnd, withConsoleAs } from "./with-console.ts";

const LAPTOP = { width: 1366, height: 640 };
const PHONE = { width: 390, height: 844 };
/** The height of a thumb's target, in CSS pixels. */
const THUMB = 44;

const mail = outsideTool("mail");
let person: Person;
let agentPath: string;

const { model, server, stop } = await startWithModel({ moreTools: [mail.tool, strangersTool()] });
afterAll(stop);
afterEach(() => untilRunsEnd(server));
beforeEach(async () => {
  mail.acted.length = 0;
  ({ person, agentPath } = await signUpWithAgent(server));
});

const withPage = (use: (page: Page) => Promise<void>) => withConsoleAs(server, person, use);

/** Writes a message whose run makes these calls; waits until the last of them asks. */
async function write(page: Page, text: string, ...calls: [name: string, input: object][]): Promise<void> {
  const asked = await page.locator(".approval").count();
  for (const [name, input] of calls) {
    model.script({ kind: "tools", calls: [{ name, arguments: input }], text: "Wait. " });
  }
  await page.fill("#chat-input", text);
  await page.keyboard.press("Enter");
  await page.locator(".approval").nth(asked).waitFor();
}
/** What the model says once the call is decided. */
const thenSay = (text: string) => model.script({ kind: "text", tokens: [text] });

/** A picture for whoever wants to look, in the folder that `SHOTS` names. */
const shoot = async (page: Page, name: string): Promise<void> => {
  if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/${name}.png` });
};

browserTest("an approval is shown whole, also after a reload, and approved by keyboard alone", async () => {
  await withPage(async (page) => {
    await write(page, "Mail it", ["mail", { key: "a\u202eb <b>bold</b>" }]);
    await page.reload();
    const card = page.locator(".approval");
    await card.waitFor();
    // What turns the direction of text around is to be seen, and markup is text.
    expect(await card.locator("pre").textContent()).toBe('{\n  "key": "a\\u202eb <b>bold</b>",\n  "method": "GET"\n}');
    expect(mail.acted).toEqual([]);
    thenSay("Mailed.");
    await card.getByRole("button", { name: "Approve" }).focus();
    await page.keyboard.press("Enter");
    await card.getByText("Approved by").waitFor();
    await page.getByText("Mailed.", { exact: true }).waitFor();
    expect(mail.acted).toEqual(["a\u202eb <b>bold</b>"]);
    expect(await card.evaluate((element) => element === document.activeElement)).toBe(true);
    expect(await card.getByRole("button").count()).toBe(0);
  });
});

browserTest("an approval is shown from its beginning, and stands above the answer once it is decided", async () => {
  await withPage(async (page) => {
    await page.setViewportSize(LAPTOP);
    await write(page, "Mail it", ["mail", { key: "A line of the letter.\n".repeat(60) }]);
    const card = page.locator(".approval");
    const log = await page.locator("#chat-log").boundingBox();
    const title = await card.getByRole("heading").boundingBox();
    expect(title?.y).toBeGreaterThanOrEqual(log?.y ?? 0);
    expect(title?.y).toBeLessThan((log?.y ?? 0) + (log?.height ?? 0) / 2);
    thenSay("It is mailed, \n\n- with all that it says\n".repeat(20));
    await card.getByRole("button", { name: "Approve" }).click();
    await card.getByText("Approved by").waitFor();
    const said = page.locator(".turn.agent .said");
    await said.getByText("with all that it says").nth(19).waitFor();
    expect(await card.evaluate((one) => one.nextElementSibling?.className)).toBe("said");
    // The conversation follows what is said.
    await page.waitForFunction(() => {
      const { scrollHeight, scrollTop, clientHeight } = document.querySelector("#chat-log") ?? document.body;
      return scrollHeight - scrollTop - clientHeight < 2;
    });
  });
});

browserTest("what is said while an approval is open is in sight, with what it waits for", async () => {
  await withPage(async (page) => {
    await page.setViewportSize(LAPTOP);
    await write(page, "Mail it", ["mail", { key: "A line of the letter.\n".repeat(60) }]);
    await page.fill("#chat-input", "And then?");
    await page.keyboard.press("Enter");
    const waits = page.locator(".exchange", { hasText: "And then?" }).getByText("Waiting for the previous answer");
    await waits.waitFor();
    const log = (await page.locator("#chat-log").boundingBox()) ?? expect.unreachable();
    const note = (await waits.boundingBox()) ?? expect.unreachable();
    expect(note.y + note.height).toBeLessThanOrEqual(log.y + log.height);
    thenSay("Then not.");
    await page.getByRole("button", { name: "Deny" }).click();
    await page.getByText("Hello, I am the mock model.").waitFor();
  });
});

browserTest("a call is denied, and one that was decided elsewhere or cancelled can no longer be decided", async () => {
  await withPage(async (page) => {
    const card = (at: number) => page.locator(".approval").nth(at);
    await write(page, "Mail it", ["mail", { key: "a" }]);
    thenSay("Not mailed.");
    await card(0).getByRole("button", { name: "Deny" }).click();
    await card(0).getByText("Denied by").waitFor();
    await page.getByText("Not mailed.", { exact: true }).waitFor();

    await write(page, "Mail again", ["mail", { key: "b" }]);
    await card(1).getByRole("button", { name: "Approve" }).waitFor();
    thenSay("Not this either.");
    const [open] = (await person.ask("GET", "/v1/approvals?status=open")).body.data;
    await person.ask("POST", `/v1/approvals/${open.approvalId}/decision`, { decision: "deny" });
    await lookAgain(page);
    await card(1).getByText("Denied by").waitFor();
    expect(await card(1).getByRole("button").count()).toBe(0);
    await page.getByText("Not this either.", { exact: true }).waitFor();

    await write(page, "And again", ["mail", { key: "c" }]);
    await card(2).getByRole("button", { name: "Approve" }).waitFor();
    await page.click("#chat-cancel");
    await card(2).getByText("Cancelled").waitFor();
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
    for (const size of [PHONE, LAPTOP]) {
      await page.setViewportSize(size);
      expect(await faultsOf(page)).toEqual([]);
      await shoot(page, `questions-${size.width}`);
    }
    // Nothing is sent while an answer is missing.
    await card.getByRole("button", { name: "Answer", exact: true }).click();
    expect((await person.ask("GET", "/v1/approvals?status=open")).body.data.length).toBe(1);
    await card.getByLabel("Friday").check();
    await card.getByRole("textbox", { name: "What should I bring?" }).fill("bread");
    thenSay("Friday, with bread.");
    await page.keyboard.press("Enter");
    await card.getByText("Friday · bread").waitFor();
    await page.getByText("Friday, with bread.", { exact: true }).waitFor();
    const [{ answers }] = (await person.ask("GET", "/v1/approvals")).body.data;
    expect(answers).toEqual(["Friday", "bread"]);
  });
});

browserTest("Enter in the note on why questions are not answered answers nothing", async () => {
  await withPage(async (page) => {
    await write(page, "Plan it", ["ask_user", { questions: QUESTIONS }]);
    const card = page.locator(".approval");
    await card.getByLabel("Friday").check();
    await card.getByRole("textbox", { name: "What should I bring?" }).fill("bread");
    const why = "If you do not answer, tell your agent why";
    await card.getByText(why).click();
    await card.getByLabel(why).fill("I am away");
    await page.keyboard.press("Enter");
    thenSay("Another time.");
    await card.getByRole("button", { name: "Do not answer" }).click();
    await card.getByText("Denied by").waitFor();
    await page.getByText("Another time.", { exact: true }).waitFor();
    const [{ status, note }] = (await person.ask("GET", "/v1/approvals")).body.data;
    expect([status, note]).toEqual(["denied", "I am away"]);
  });
});

browserTest("what is being answered stays while its run is lost and followed again, and is then sent", async () => {
  await withPage(async (page) => {
    await write(page, "Plan it", ["ask_user", { questions: QUESTIONS }]);
    const [{ runId }] = (await person.ask("GET", `${agentPath}/runs`)).body.data;
    const answers = [
      // Broken before it tells that the run waits: of one that waits, a page leaves the stream.
      { contentType: "text/event-stream", body: (await eventsUntil("approval.requested", runId)).replace(WAITING, "") },
      { status: 409, json: { error: { code: "conflict", message: "something failed", status: 409 } } },
    ];
    await page.route("**/events?*", (route) => route.fulfill(answers.shift()), { times: answers.length });
    await page.reload();
    const card = page.locator(".approval");
    await card.getByRole("textbox", { name: "What should I bring?" }).fill("bre");
    await page.getByText("lost track of this answer").waitFor();
    const followed = page.waitForRequest("**/events?*");
    await lookAgain(page);
    expect((await followed).url()).toMatch(/after=\d+/);
    await page.getByText("waiting for a decision").waitFor();
    await card.getByRole("textbox", { name: "What should I bring?" }).pressSequentially("ad");
    await card.getByLabel("Friday").check();
    thenSay("Friday, with bread.");
    await card.getByRole("button", { name: "Answer", exact: true }).click();
    await card.getByText("Friday · bread").waitFor();
    await page.getByText("Friday, with bread.", { exact: true }).waitFor();
    expect(await page.locator(".approval").count()).toBe(1);
  });
});

/** The event that a run waits, as it is sent. */
const WAITING = /id: \d+\n(event: .*\n)?data: .*"type":"run\.waiting".*\n\n/;

/** Whether the page, which is loaded again, asks before it is left. */
async function asksBeforeLeaving(page: Page): Promise<boolean> {
  let isAsked = false;
  page.once("dialog", (dialog) => {
    isAsked = true;
    return dialog.accept();
  });
  await page.reload();
  return isAsked;
}

browserTest(
  "a half-written answer is the same in its conversation and among the approvals, until it is sent",
  async () => {
    await withPage(async (page) => {
      await write(page, "Plan it", ["ask_user", { questions: QUESTIONS }]);
      const inChat = page.locator("#chat-log .approval:not([data-before])");
      const inList = page.locator("#approval-list .approval");
      const why = "If you do not answer, tell your agent why";
      const written = async (card: Locator) => [
        await card.getByLabel("Friday").isChecked(),
        await card.getByRole("textbox", { name: "What should I bring?" }).inputValue(),
        await card.getByLabel(why).inputValue(),
        await card.getByLabel(why).isVisible(),
      ];
      await inChat.getByLabel("Friday").check();
      await inChat.getByRole("textbox", { name: "What should I bring?" }).fill("bre");
      await inChat.getByText(why).click();
      await inChat.getByLabel(why).fill("I am a");
      await page.click("#to-approvals");
      await page.locator("#approval-list summary").first().click();
      expect(await written(inList)).toEqual([true, "bre", "I am a", true]);

      await inList.getByRole("textbox", { name: "What should I bring?" }).fill("bread");
      await inList.getByLabel(why).fill("I am away");
      await page.click("#to-chat");
      expect(await written(inChat)).toEqual([true, "bread", "I am away", true]);

      await inChat.evaluate((card) => card.setAttribute("data-before", ""));
      await page.click("#to-approvals");
      await page.locator("#approval-list summary").first().click();
      await page.getByText("See it in its conversation").click();
      expect(await written(inChat)).toEqual([true, "bread", "I am away", true]);
      thenSay("Friday, with bread.");
      await inChat.getByRole("button", { name: "Answer", exact: true }).click();
      await page.getByText("Friday, with bread.", { exact: true }).waitFor();
      expect(await asksBeforeLeaving(page)).toBe(false);
    });
  },
);

browserTest(
  "what is written for an approval is asked about before the page is left, while it can be decided",
  async () => {
    await withPage(async (page) => {
      await write(page, "Mail it", ["mail", { key: "a" }]);
      const why = "If you deny it, tell your agent why";
      const note = page.locator(".approval").getByLabel(why);
      const writeNote = async () => {
        await page.getByText(why).click();
        await note.fill("Not n");
      };
      await writeNote();
      expect(await asksBeforeLeaving(page)).toBe(true);
      await writeNote();
      // It is decided elsewhere while something else is shown.
      await page.click("#new-conversation");
      await note.waitFor({ state: "detached" });
      const [open] = (await person.ask("GET", "/v1/approvals?status=open")).body.data;
      thenSay("Not mailed.");
      await person.ask("POST", `/v1/approvals/${open.approvalId}/decision`, { decision: "deny" });
      await lookAgain(page);
      await page.locator("#open-count").waitFor({ state: "hidden" });
      expect(await asksBeforeLeaving(page)).toBe(false);
    });
  },
);

/** A run's stream as far as this event. */
async function eventsUntil(type: string, runId: string): Promise<string> {
  const leaving = new AbortController();
  const stream = await fetch(`${server.url}${agentPath}/events?runId=${runId}`, {
    headers: { Authorization: `Bearer ${person.token}` },
    signal: leaving.signal,
  });
  let text = "";
  for await (const chunk of stream.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (text.includes(`"type":"${type}"`) && text.endsWith("\n\n")) break;
  }
  leaving.abort();
  return text;
}

browserTest("what is to be decided fits a thumb, and axe finds no problem, light or dark, large or small", async () => {
  await person.ask("PATCH", agentPath, { tools: { mail: "allow" } });
  await withPage(async (page) => {
    const text = "A paragraph of the letter that goes on for a while.\n".repeat(12);
    await write(page, "Mail what it says", ["fetch", {}], ["mail", { key: text }]);
    const card = page.locator(".approval");
    await card.getByText("a stranger may have written").waitFor();
    // Nothing is remembered of a tainted run.
    expect(await card.getByRole("checkbox").count()).toBe(0);
    for (const size of [LAPTOP, PHONE]) {
      await page.setViewportSize(size);
      for (const colorScheme of ["dark", "light"] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await faultsOf(page)).toEqual([]);
      }
      for (const name of ["Approve", "Deny"]) {
        const button = card.getByRole("button", { name });
        await button.scrollIntoViewIfNeeded();
        const box = await button.boundingBox();
        expect(box?.height).toBeGreaterThanOrEqual(THUMB);
        expect(box?.width).toBeGreaterThanOrEqual(THUMB);
        expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(size.width);
      }
      await shoot(page, `approval-${size.width}`);
      const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
      expect(isWide).toBe(false);
    }
  });
});
