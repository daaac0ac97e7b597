import { afterAll, beforeAll, expect } from "bun:test";
import { faultsOf } from "../support/axe.ts";
import { browserTest } from "../support/browser.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";
import { focus, openAs, signUpWithAgent, tooWide, withConsole } from "./with-console.ts";

const PARTS = ["Files", "Skills", "Tools", "Context", "Memory", "Schedules", "Export", "Settings"];
const SIZES = [
  { width: 1280, height: 800 },
  { width: 360, height: 740 },
];

let server: TestServer;
let person: Person;

beforeAll(async () => {
  // Nothing is asked of the model.
  server = await startTestServer({ ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: "http://127.0.0.1:9/v1" });
  const ada = await signUpWithAgent(server);
  person = ada.person;
  await person.ask("POST", `${ada.instancePath}/agents`, { name: "Bea" });
});
afterAll(() => server.stop());

browserTest("the page about an agent shows one part at a time, which its links and the keyboard reach", async () => {
  await withConsole(
    () => server.url,
    async (page) => {
      await openAs(page, server.url, person.token);
      await focus(page.locator("#to-agent"));
      await page.keyboard.press("Enter");
      // The conversation has a heading with the same name.
      await page.locator("#view-agent").getByRole("heading", { level: 1, name: "Ada" }).waitFor();
      const links = page.getByRole("navigation", { name: "Details of the agent" }).getByRole("link");
      expect(await links.allTextContents()).toEqual(PARTS);
      await links.first().focus();
      for (const [at, name] of PARTS.entries()) {
        if (at > 0) await page.keyboard.press("Tab");
        await page.keyboard.press("Enter");
        await page.locator("#agent-parts [aria-current=page]", { hasText: name }).waitFor();
        expect(await page.locator("#view-agent h2").filter({ visible: true }).allTextContents()).toEqual([name]);
        expect(await page.title()).toBe(`${name} · Ada · Roost`);
        await page.waitForLoadState("networkidle");
        for (const size of SIZES) {
          for (const colorScheme of ["light", "dark"] as const) {
            await page.setViewportSize(size);
            await page.emulateMedia({ colorScheme });
            expect([name, size.width, colorScheme, await tooWide(page)]).toEqual([
              name,
              size.width,
              colorScheme,
              false,
            ]);
            expect([name, size.width, colorScheme, await faultsOf(page)]).toEqual([name, size.width, colorScheme, []]);
          }
        }
      }
    },
  );
});

browserTest(
  "what is chosen among the tools stays while another part is looked at, and going back shows it",
  async () => {
    await withConsole(
      () => server.url,
      async (page) => {
        await openAs(page, server.url, person.token);
        await page.locator("#to-agent").click();
        const links = page.locator("#agent-parts");
        await links.getByText("Tools").click();
        const policy = page.getByLabel("Policy of write_file", { exact: true });
        await policy.selectOption("Ask");
        await links.getByText("Memory").click();
        await page.getByRole("heading", { name: "Memory" }).waitFor();
        await page.goBack();
        await policy.waitFor();
        expect(await policy.evaluate((it) => (it as HTMLSelectElement).selectedOptions[0]?.text)).toBe("Ask");
        await page.reload();
        await policy.waitFor();
        expect(await policy.evaluate((it) => (it as HTMLSelectElement).selectedOptions[0]?.text)).toBe(
          "Default: allow",
        );
      },
    );
  },
);
