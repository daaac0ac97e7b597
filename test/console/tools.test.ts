import { afterAll, beforeAll, beforeEach, expect } from "bun:test";
import type { Page } from "playwright-core";
import { faultsOf } from "../support/axe.ts";
import { browserTest } from "../support/browser.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";
import { SIZES, signUpWithAgent, tooWide, withConsoleAs } from "./with-console.ts";

let server: TestServer;
let person: Person;
let agentPath: string;
let hash: string;

beforeAll(async () => {
  // Nothing is asked of the model.
  server = await startTestServer({ ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: "http://127.0.0.1:9/v1" });
});
afterAll(() => server.stop());
beforeEach(async () => {
  const tools = { now: "deny", gone__tool: "ask" };
  const ada = await signUpWithAgent(server, { name: "Ada", tools });
  ({ person, agentPath } = ada);
  hash = `${ada.hash}/tools`;
});

const policies = async () => (await person.ask("GET", agentPath)).body.tools;

/** The page with the tools of the agent. */
const withTools = (use: (page: Page) => Promise<void>) =>
  withConsoleAs(
    server,
    person,
    async (page) => {
      await page.locator("#tool-list > li").first().waitFor();
      await use(page);
    },
    hash,
  );
const policy = (page: Page, tool: string) => page.getByLabel(`Policy of ${tool}`, { exact: true });
const chosen = (page: Page, tool: string) =>
  policy(page, tool).evaluate((it) => (it as HTMLSelectElement).selectedOptions[0]?.text);

browserTest("every tool shows what it may do, and changes are saved together, with the keyboard alone", async () => {
  await withTools(async (page) => {
    const { body } = await person.ask("GET", `${agentPath}/tools?limit=100`);
    expect(await page.locator("#tool-list h3").allTextContents()).toHaveLength(body.data.length + 1);
    expect([await chosen(page, "now"), await chosen(page, "gone__tool")]).toEqual(["Never", "Ask"]);
    expect([await chosen(page, "http_request"), await chosen(page, "web_fetch")]).toEqual([
      "Default: ask",
      "Default: allow",
    ]);
    expect(await page.locator("#save-tools").isVisible()).toBe(false);

    await policy(page, "web_fetch").focus();
    await page.keyboard.type("Ne");
    await policy(page, "now").focus();
    await page.keyboard.type("De");
    await policy(page, "gone__tool").focus();
    await page.keyboard.press("Home");
    expect(await policies()).toEqual({ now: "deny", gone__tool: "ask" });
    await page.getByRole("button", { name: "Save" }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("Saved. It counts at once").waitFor();
    expect(await policies()).toEqual({ web_fetch: "deny" });
    expect(await page.locator("#save-tools").isVisible()).toBe(false);
    await page.reload();
    await page.locator("#tool-list > li").first().waitFor();
    expect([await chosen(page, "web_fetch"), await chosen(page, "now")]).toEqual(["Never", "Default: allow"]);
    expect(await policy(page, "gone__tool").count()).toBe(0);
  });
});

browserTest("a change that is not saved says why, stays to be saved, and can be undone", async () => {
  await withTools(async (page) => {
    await policy(page, "write_file").selectOption("Ask");
    await page.route("**/agents/*", (route) =>
      route.request().method() === "PATCH" ? route.abort() : route.continue(),
    );
    await page.getByRole("button", { name: "Save" }).click();
    const alert = page.locator("#tools > [role=alert]");
    await alert.waitFor();
    expect(await alert.textContent()).toContain("Check that it is running, then try again.");
    expect([await chosen(page, "write_file"), await policies()]).toEqual(["Ask", { now: "deny", gone__tool: "ask" }]);
    await page.getByRole("button", { name: "Undo" }).click();
    expect(await chosen(page, "write_file")).toBe("Default: allow");
    expect(await page.locator("#save-tools").isVisible()).toBe(false);
  });
});

browserTest(
  "what is chosen stays while another agent is looked at, and is asked about before it is left, until it is saved",
  async () => {
    const { agentId } = (await person.ask("POST", agentPath.replace(/\/[^/]+$/, ""), { name: "Bea" })).body;
    await withTools(async (page) => {
      await policy(page, "write_file").selectOption("Ask");
      const show = async (of: string, name: string) => {
        await page.evaluate((to) => {
          location.hash = to;
        }, of);
        await page.locator("#tools-of", { hasText: name }).waitFor();
        await policy(page, "write_file").waitFor();
      };
      await show(hash.replace(/agt_\w+/, agentId), "Bea");
      expect([await chosen(page, "write_file"), await page.locator("#save-tools").isVisible()]).toEqual([
        "Default: allow",
        false,
      ]);
      await show(hash, "Ada");
      expect(await chosen(page, "write_file")).toBe("Ask");
      const asked = page.waitForEvent("dialog");
      void page.reload().catch(() => undefined);
      const dialog = await asked;
      expect(dialog.type()).toBe("beforeunload");
      await dialog.dismiss();
      expect(await chosen(page, "write_file")).toBe("Ask");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("Saved. It counts at once").waitFor();
      let isAsked = false;
      page.on("dialog", (again) => {
        isAsked = true;
        return again.accept();
      });
      await page.reload();
      await policy(page, "write_file").waitFor();
      expect([await chosen(page, "write_file"), isAsked]).toEqual(["Ask", false]);
    });
  },
);

browserTest("whoever lets a tool always act outside is told what that means, before it is saved", async () => {
  await withTools(async (page) => {
    const warning = page.getByText("even if a stranger's text has talked your agent into it");
    await policy(page, "http_request").selectOption("Always");
    await warning.filter({ visible: true }).waitFor();
    for (const size of SIZES) {
      for (const colorScheme of ["light", "dark"] as const) {
        await page.setViewportSize(size);
        await page.emulateMedia({ colorScheme });
        expect([size.width, colorScheme, await tooWide(page)]).toEqual([size.width, colorScheme, false]);
        expect(await faultsOf(page)).toEqual([]);
      }
    }
    await page.getByRole("button", { name: "Undo" }).click();
    expect(await warning.filter({ visible: true }).count()).toBe(0);
  });
});

browserTest("an agent whose model calls no tools says so", async () => {
  await person.ask("PATCH", agentPath, { model: "local:smollm2-135m-instruct" });
  await withTools(async (page) => {
    await page.getByText("The model of this agent calls a few simple tools at most").waitFor();
  });
});

browserTest("the context shows each part of the next prompt as it is now, with its tokens and its text", async () => {
  await withTools(async (page) => {
    await page.locator("#agent-parts").getByText("Context").click();
    const parts = page.locator("#context-list > li");
    await parts.first().waitFor();
    const { body } = await person.ask("GET", `${agentPath}/context`);
    expect(await page.locator("#context-told").textContent()).toBe(
      `About ${body.totalTokens.toLocaleString("en")} of ${body.contextTokens.toLocaleString("en")} tokens.`,
    );
    const soul = parts.filter({ hasText: "SOUL.md" }).first();
    await soul.locator("summary").click();
    const shown = body.pieces.find(({ name }: { name: string }) => name === "SOUL.md");
    expect(await soul.locator("pre").textContent()).toBe(shown.text);
    const bar = soul.getByRole("meter", { name: "Tokens of SOUL.md" });
    expect(Number(await bar.getAttribute("aria-valuenow"))).toBe(shown.tokens);
    expect(await faultsOf(page)).toEqual([]);
    // A long text scrolls by keyboard.
    await page.keyboard.press("Tab");
    expect(await soul.locator("pre").evaluate((text) => text === document.activeElement)).toBe(true);

    await person.fetch("PUT", `${agentPath}/files/SOUL.md`, "You are a lighthouse keeper.");
    await page.locator("#agent-parts").getByText("Memory").click();
    await page.locator("#memory").waitFor();
    const again = page.waitForResponse("**/context");
    await page.locator("#agent-parts").getByText("Context").click();
    await again;
    await soul.locator("summary").click();
    expect(await soul.locator("pre").textContent()).toContain("You are a lighthouse keeper.");
  });
});
