import { afterAll, beforeAll, expect } from "bun:test";
import type { Page } from "playwright-core";
import { faultsOf } from "../support/axe.ts";
import { browserTest } from "../support/browser.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";
import { signUpWithAgent, withConsoleAs } from "./with-console.ts";

let server: TestServer;
let person: Person;
let hash: string;

beforeAll(async () => {
  server = await startTestServer({ ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: "http://127.0.0.1:9/v1" });
  const ada = await signUpWithAgent(server);
  person = ada.person;
  await person.ask("PUT", `${ada.agentPath}/files/notes.md`, "Maren drinks <b>Earl Grey</b>.\n");
  // The first search begins the index.
  await person.ask("GET", `${ada.agentPath}/memory?query=tea`);
  await server.app.settled();
  hash = `${ada.hash}/memory`;
});
afterAll(() => server.stop());

const withAgent = (use: (page: Page) => Promise<void>) =>
  withConsoleAs(
    server,
    person,
    async (page) => {
      await page.getByRole("heading", { name: "Memory" }).waitFor();
      await use(page);
    },
    hash,
  );

browserTest("a search of the memory shows what was found as text, where it is and who wrote it", async () => {
  await withAgent(async (page) => {
    await page.getByLabel("Search it").fill("Earl Grey");
    await page.getByRole("button", { name: "Search", exact: true }).click();
    const row = page.locator("#memory-list li");
    await row.waitFor();
    expect(await row.allTextContents()).toEqual([
      expect.stringMatching(/^Maren drinks <b>Earl Grey<\/b>\.notes\.md, line 1, by you, /),
    ]);
    expect(await faultsOf(page)).toEqual([]);
  });
});

browserTest("a search that finds nothing says so", async () => {
  await withAgent(async (page) => {
    await page.getByLabel("Search it").fill("zebra crossing");
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await page.getByText("Nothing was found.").waitFor();
  });
});
