import { afterAll, beforeAll, beforeEach, expect } from "bun:test";
import type { Page } from "playwright-core";
import { faultsOf } from "../support/axe.ts";
import { browserTest } from "../support/browser.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";
import { SIZES, signUpWithAgent, tooWide, withConsoleAs } from "./with-console.ts";

let server: TestServer;
let person: Person;
let agentPath: string;
let instancePath: string;
let hash: string;

beforeAll(async () => {
  // Nothing is asked of the model.
  server = await startTestServer({ ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: "http://127.0.0.1:9/v1" });
});
afterAll(() => server.stop());
beforeEach(async () => {
  const ada = await signUpWithAgent(server, { name: "Ada" });
  ({ person, agentPath, hash } = ada);
  instancePath = agentPath.replace(/\/agents\/.*/, "");
});

const withSettings = (use: (page: Page) => Promise<void>) =>
  withConsoleAs(
    server,
    person,
    async (page) => {
      await page.locator("#settings:not([hidden]) #agent-slug", { hasText: "ada" }).waitFor();
      await use(page);
    },
    `${hash}/settings`,
  );
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

browserTest("an agent gets another name and models, and the list and the title say so at once", async () => {
  await withSettings(async (page) => {
    await page.fill("#agent-rename", "Grace");
    await page.fill("#agent-model", "openai:mock, local:smollm2-135m-instruct");
    await page.locator("#agent-settings").getByRole("button", { name: "Save" }).click();
    await page.locator("#settings-told", { hasText: "Saved" }).waitFor();
    expect(await page.locator("#agent-title").textContent()).toBe("Grace");
    await page.locator("#instance-list a", { hasText: "Grace" }).waitFor({ state: "attached" });
    const { body } = await person.ask("GET", agentPath);
    expect([body.displayName, body.slug, body.model]).toEqual([
      "Grace",
      "ada",
      ["openai:mock", "local:smollm2-135m-instruct"],
    ]);

    await page.fill("#agent-model", "");
    await page.locator("#agent-settings").getByRole("button", { name: "Save" }).click();
    await page.locator("#settings-told", { hasText: "Saved" }).waitFor();
    expect((await person.ask("GET", agentPath)).body.model).toBeNull();
  });
});

browserTest("a model that this host does not offer is refused, and what was written stays", async () => {
  await withSettings(async (page) => {
    await page.fill("#agent-model", "gpt");
    await page.locator("#agent-settings").getByRole("button", { name: "Save" }).click();
    await page.locator("#settings > [role=alert]:not([hidden])").waitFor();
    expect(await page.inputValue("#agent-model")).toBe("gpt");
    expect((await person.ask("GET", agentPath)).body.model).toBeNull();
  });
});

browserTest("an agent is deleted at the second press, and its instance after it", async () => {
  await person.ask("POST", `${instancePath}/agents`, { name: "Bea" });
  await withSettings(async (page) => {
    await button(page, "Delete the agent Ada").click();
    expect((await person.ask("GET", agentPath)).status).toBe(200);
    await button(page, "Really delete the agent Ada?").click();
    await page.locator("#agent-name", { hasText: "Bea" }).waitFor();
    expect((await person.ask("GET", agentPath)).status).toBe(404);
    await page.locator("#instance-list a", { hasText: "Ada" }).waitFor({ state: "detached" });

    await page.click("#to-agent");
    await page.click("[data-part=settings]");
    const { name } = (await person.ask("GET", instancePath)).body;
    await button(page, `Delete the instance ${name}`).click();
    await button(page, `Really delete the instance ${name}?`).click();
    await page.locator("#intro-title", { hasText: "Say hello" }).waitFor();
    expect((await person.ask("GET", instancePath)).status).toBe(404);
  });
});

browserTest("another instance is created beside the first, and both are renamed where their agents are", async () => {
  await withSettings(async (page) => {
    await page.fill("#instance-rename", "Home");
    await page.locator("#instance-settings").getByRole("button", { name: "Save" }).click();
    await page.locator("#instance-settings-told", { hasText: "Saved" }).waitFor();
    expect((await person.ask("GET", instancePath)).body.name).toBe("Home");

    await page.click("#to-chat");
    await page.click("#new-instance summary");
    await page.fill("#new-instance-name", "Work");
    await page.locator("#new-instance-form").getByRole("button", { name: "Create" }).click();
    await page.locator("#intro-title", { hasText: "There is no agent in Work yet" }).waitFor();
    expect(await page.locator("#instance-list summary b").allTextContents()).toEqual(["Work", "Home"]);
  });
});

browserTest("an agent is found by a part of its name once there are many", async () => {
  for (const at of Array(12).keys()) await person.ask("POST", `${instancePath}/agents`, { name: `Agent ${at}` });
  await withConsoleAs(
    server,
    person,
    async (page) => {
      await page.locator("#instance-list a", { hasText: "Agent 11" }).waitFor();
      await page.fill("#find-agent", "ADA");
      expect(await page.locator("#instance-list a:visible").allTextContents()).toEqual(["Ada"]);
      await page.fill("#find-agent", "");
      expect(await page.locator("#instance-list a:visible").count()).toBe(13);
    },
    hash,
  );
});

browserTest("the monthly limit of the account is set and taken away", async () => {
  await withConsoleAs(
    server,
    person,
    async (page) => {
      await page.click("#change-limit summary");
      for (const [written, told, limit] of [
        ["25", "Saved.", "25.000000"],
        ["", "There is no limit any more.", null],
      ] as const) {
        await page.fill("#monthly-limit", written);
        await page.locator("#limit-form").getByRole("button", { name: "Save" }).click();
        await page.locator("#limit-told", { hasText: told }).waitFor();
        expect((await person.ask("GET", "/v1/auth/me")).body.limits.monthlyLimit).toBe(limit);
      }
      expect(await page.locator("#limit").textContent()).toBe("none");
    },
    "#account",
  );
});

browserTest("the settings fit every screen, and have no faults for those who cannot see them", async () => {
  await withSettings(async (page) => {
    for (const size of SIZES) {
      await page.setViewportSize(size);
      expect(await tooWide(page)).toBe(false);
    }
    expect(await faultsOf(page)).toEqual([]);
  });
});
