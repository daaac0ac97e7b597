import { afterAll, afterEach, beforeEach, expect } from "bun:test";
import type { Page, Request } from "playwright-core";
import { outsideTool } from "../approvals/asking.ts";
import { browserTest } from "../support/browser.ts";
import type { Person } from "../support/test-server.ts";
import {
  lookAgain,
  openAs,
  signUpWithAgent,
  startWithModel,
  untilRunsEnd,
  withConsole,
  withConsoleAs,
} from "./with-console.ts";

/** How many connections a browser opens to one host, for all of its tabs. */
const CONNECTIONS = 6;

const mail = outsideTool("mail");
let person: Person;
let instanceId: string;

const { model, server, stop } = await startWithModel({ moreTools: [mail.tool] });
afterAll(stop);
afterEach(() => untilRunsEnd(server));
beforeEach(async () => {
  mail.acted.length = 0;
  const ada = await signUpWithAgent(server);
  person = ada.person;
  instanceId = ada.instancePath.split("/").at(-1) ?? "";
});

const isStream = (request: Request) => /\/events\?/.test(request.url());
/** Resolves when the page has left a stream. */
const untilLeft = (page: Page) => page.waitForEvent("requestfailed", isStream);

async function write(page: Page, text: string): Promise<void> {
  await page.fill("#chat-input", text);
  await page.keyboard.press("Enter");
}

/** Writes a message whose run asks to mail this, and waits until nothing is open for it but the question. */
async function askToMail(page: Page, key: string): Promise<void> {
  model.script({ kind: "tools", calls: [{ name: "mail", arguments: { key } }], text: "Wait. " });
  const left = untilLeft(page);
  await write(page, "Mail it");
  await page.locator(".approval").getByRole("button", { name: "Approve" }).waitFor();
  await left;
}

/** Lets the page be seen, or covered by another tab. */
const setSeen = (page: Page, isSeen: boolean): Promise<boolean> =>
  page.evaluate(
    (state) => {
      Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
      return document.dispatchEvent(new Event("visibilitychange"));
    },
    isSeen ? "visible" : "hidden",
  );

browserTest("runs that wait for a decision, each in a tab of its own, hold up neither them nor another", async () => {
  await withConsole(
    () => server.url,
    async (first, browser) => {
      const open = async (page: Page, at: number) => {
        const { agentId } = (await person.ask("POST", `/v1/instances/${instanceId}/agents`, { name: `Ada ${at}` }))
          .body;
        await openAs(page, server.url, person.token);
        await page.evaluate((to) => location.assign(to), `#${instanceId}/${agentId}`);
        await page.locator("#agent-name", { hasText: `Ada ${at}` }).waitFor();
      };
      for (let at = 0; at < CONNECTIONS; at++) {
        const page = at === 0 ? first : await browser.newPage();
        await open(page, at);
        await askToMail(page, `letter ${at}`);
      }
      await open(await browser.newPage(), CONNECTIONS);
      model.script({ kind: "text", tokens: ["Mailed."] });
      await first.getByRole("button", { name: "Approve" }).click();
      await first.getByText("Wait. Mailed.").waitFor();
      expect(mail.acted).toEqual(["letter 0"]);
    },
  );
});

browserTest("what is decided elsewhere about a run that waits is shown at the next look, and it goes on", async () => {
  await withConsoleAs(server, person, async (page) => {
    await askToMail(page, "a");
    const [{ approvalId }] = (await person.ask("GET", "/v1/approvals?status=open")).body.data;
    model.script({ kind: "text", tokens: ["Not mailed."] });
    await person.ask("POST", `/v1/approvals/${approvalId}/decision`, { decision: "deny" });
    await lookAgain(page);
    await page.locator(".approval").getByText("Denied by").waitFor();
    await page.getByText("Wait. Not mailed.").waitFor();
  });
});

browserTest("a run that waits for a decision is cancelled from its conversation", async () => {
  await withConsoleAs(server, person, async (page) => {
    await askToMail(page, "a");
    await page.click("#chat-cancel");
    await page.locator(".approval").getByText("Cancelled").waitFor();
    await page.locator("#chat-cancel").waitFor({ state: "hidden" });
  });
});

browserTest("a page that nobody sees follows no answer, and shows all of it once it is seen", async () => {
  await withConsoleAs(server, person, async (page) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    model.script({ kind: "tools", calls: [{ name: "now", arguments: {} }], text: "Once upon " });
    model.script({ kind: "text", tokens: ["a ", "time."], after: promise });
    await write(page, "Tell me a story");
    await page.getByText("Once upon").waitFor();
    await Promise.all([untilLeft(page), setSeen(page, false)]);
    expect(await page.locator("#chat-cancel").isVisible()).toBe(true);
    resolve();
    await untilRunsEnd(server);
    const again = page.waitForRequest(isStream);
    await setSeen(page, true);
    expect((await again).url()).toMatch(/after=\d+/);
    await page.getByText("Once upon a time.").waitFor();
    await page.locator("#chat-cancel").waitFor({ state: "hidden" });
  });
});
