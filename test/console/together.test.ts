import { afterAll, beforeEach, expect } from "bun:test";
import type { Page } from "playwright-core";
import { outsideTool } from "../approvals/asking.ts";
import { readEvents } from "../messages/conversation.ts";
import { browserTest } from "../support/browser.ts";
import type { Person } from "../support/test-server.ts";
import { lookAgain, signUpWithAgent, startWithModel, withConsoleAs } from "./with-console.ts";

let person: Person;
let agents: string;
const mail = outsideTool("mail");

const { model, server, stop } = await startWithModel({ moreTools: [mail.tool] });
afterAll(stop);
beforeEach(async () => {
  const ada = await signUpWithAgent(server);
  person = ada.person;
  agents = `${ada.instancePath}/agents`;
  await person.ask("POST", agents, { name: "Bob" });
});

const withPage = (use: (page: Page) => Promise<void>) => withConsoleAs(server, person, use);
async function write(page: Page, text: string): Promise<void> {
  await page.fill("#chat-input", text);
  await page.keyboard.press("Enter");
}

browserTest(
  "a run that waits for another agent says so, and leads to the conversation in which that works",
  async () => {
    await withPage(async (page) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      model.script(
        { kind: "tools", calls: [{ name: "message_agent", arguments: { agent: "Bob", message: "Which day?" } }] },
        { kind: "text", tokens: ["Friday."], after: promise },
        { kind: "text", tokens: ["On Friday, says Bob."] },
      );
      await write(page, "Plan it");
      const waiting = page.locator(".turn.agent > small", { hasText: "waiting for Bob" });
      await waiting.waitFor();
      await page.reload();
      await waiting.locator("a").click();
      await page.locator("#agent-name", { hasText: "Bob" }).waitFor();
      await page.locator("#conversation-name", { hasText: "Asked by Ada" }).waitFor();
      await page.locator(".turn.user", { hasText: "From the agent Ada" }).getByText("Which day?").waitFor();
      resolve();
      await page.locator(".turn.agent .said", { hasText: "Friday." }).waitFor();
      // Nothing of it is in Bob's own conversation with the person.
      await page.locator("#conversations > summary").click();
      await page.locator("#conversations").getByRole("link", { name: "Default conversation" }).click();
      await page.locator("#conversation-name", { hasText: "Default conversation" }).waitFor();
      expect(await page.locator("#chat-log .exchange").count()).toBe(0);
      await page.locator("#instance-list").getByText("Ada").click();
      await page.locator(".turn.agent .said", { hasText: "On Friday, says Bob." }).waitFor();
    });
  },
);

browserTest("an approval leads to its own conversation, and a denial takes its reason along", async () => {
  const { data } = (await person.ask("GET", agents)).body;
  const ada = `${agents}/${data[0].agentId}`;
  const { conversationId } = (await person.ask("POST", `${ada}/conversations`, { title: "Letters" })).body;
  model.script(
    { kind: "tools", calls: [{ name: "mail", arguments: { key: "a" } }] },
    { kind: "text", tokens: ["Then not."] },
  );
  const letter = { message: "Mail it", conversationId };
  const { runId } = (await person.ask("POST", `${ada}/messages`, letter, { Prefer: "respond-async" })).body;
  // A page that shows another conversation reads only now and then what was asked in this one.
  await using events = readEvents(await person.fetch("GET", `${ada}/events?runId=${runId}`));
  await events.until(({ event }) => event === "run.waiting");
  await withPage(async (page) => {
    await page.locator("#open-count", { hasText: "1" }).waitFor();
    await page.locator("#to-approvals").click();
    await page.locator("#approval-list summary").click();
    await page.getByText("See it in its conversation").click();
    await page.locator("#conversation-name", { hasText: "Letters" }).waitFor();
    const card = page.locator(".exchange .approval");
    await card.getByText("tell your agent why").click();
    await card.getByLabel("tell your agent why").fill("not to strangers");
    await card.getByRole("button", { name: "Deny" }).click();
    await page.locator(".turn.agent .said", { hasText: "Then not." }).waitFor();
  });
  const told = model.requests.at(-1)?.body.messages.at(-1).content;
  expect([told, mail.acted]).toEqual([expect.stringContaining("not to strangers") as unknown as string, []]);
});

browserTest("that the server does not answer is told until the next look that it answers", async () => {
  await withPage(async (page) => {
    const told = page.getByRole("alert").getByText("the server does not answer", { exact: false });
    await page.route("**/stop", (route) => route.abort());
    await page.locator("#instance-power", { hasText: "Stop all" }).click();
    await page.getByText("Stop all agents here?").click();
    await told.waitFor();
    await page.route("**/v1/approvals?*", (route) => route.abort(), { times: 1 });
    await Promise.all([page.waitForEvent("requestfailed"), lookAgain(page)]);
    expect(await told.isVisible()).toBe(true);
    await lookAgain(page);
    await told.waitFor({ state: "hidden" });
  });
});

browserTest("an instance is stopped only when asked twice, and then nothing in it waits for a decision", async () => {
  await withPage(async (page) => {
    model.script({ kind: "tools", calls: [{ name: "mail", arguments: { key: "a" } }] });
    await page.locator("#instance-list").getByText("Ada").click();
    await write(page, "Mail it");
    await page.locator("#open-count", { hasText: "1" }).waitFor();
    const stop = page.locator("#instance-power", { hasText: "Stop all" });
    await stop.click();
    const sure = page.getByRole("button", { name: "Really stop all agents of home?" });
    await sure.getByText("Stop all agents here?").waitFor();
    // What is read meanwhile does not take the question back; going elsewhere does.
    const read = page.waitForResponse((answer) => answer.url().includes("/v1/instances?"));
    await lookAgain(page);
    await read;
    await page.locator("#instance-list").getByText("running").waitFor();
    await sure.waitFor();
    await page.locator("#chat-input").focus();
    await stop.waitFor();
    const { data } = (await person.ask("GET", "/v1/instances")).body;
    expect(data[0].status).toBe("running");

    await stop.click();
    await sure.click();
    await page.locator("#instance-power", { hasText: "Start" }).waitFor();
    await page.locator("#open-count").waitFor({ state: "hidden" });
    expect(mail.acted).toEqual([]);
  });
});
