import { afterAll, beforeAll, expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { bundleOf, filesIn, manifest } from "../bundles/archives.ts";
import { faultsOf } from "../support/axe.ts";
import { browserTest } from "../support/browser.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";
import { signUpWithAgent, withConsoleAs } from "./with-console.ts";

let server: TestServer;
let person: Person;
let hash: string;
const folder = mkdtempSync(join(tmpdir(), "roost-copies-"));

beforeAll(async () => {
  server = await startTestServer({ ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: "http://127.0.0.1:9/v1" });
  const ada = await signUpWithAgent(server);
  person = ada.person;
  hash = `${ada.hash}/export`;
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

const withAgent = (use: (page: Page) => Promise<void>) =>
  withConsoleAs(
    server,
    person,
    async (page) => {
      await page.getByRole("heading", { name: "Export" }).waitFor();
      await use(page);
    },
    hash,
  );

browserTest("an agent is downloaded as one file, and what an import brings switched off is listed", async () => {
  await withAgent(async (page) => {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download" }).click(),
    ]);
    expect(download.suggestedFilename()).toBe("ada.tar.gz");
    const bundle = await Bun.file(await download.path()).bytes();
    expect((await filesIn(bundle)).has("workspace/SOUL.md")).toBe(true);

    const file = join(folder, "eve.tar.gz");
    const tools = [{ tool: "http_request", policy: "always" }];
    writeFileSync(file, bundleOf(manifest({ agent: { name: "<b>Eve</b>", tools } }), ["later/a", "x"]));
    await page.getByLabel("Or import an agent").setInputFiles(file);
    await page.getByText("is here. What came with it and is off").waitFor();
    expect(await page.locator("#export-review li").allTextContents()).toEqual([
      "http_request has its default policy, not always.",
      "later/a was left out.",
    ]);
    expect(await page.locator("#export-told a").textContent()).toBe("<b>Eve</b>");
    expect(await faultsOf(page)).toEqual([]);

    writeFileSync(file, "no bundle");
    await page.getByLabel("Or import an agent").setInputFiles(file);
    await page.locator("#export [role=alert]").getByText("not compressed with gzip").waitFor();

    writeFileSync(file, Buffer.alloc(33 * 1024 * 1024));
    await page.getByLabel("Or import an agent").setInputFiles(file);
    await page.locator("#export [role=alert]").getByText("expected at most 32 MiB").waitFor();
  });
});

browserTest("an agent is copied into its own instance with another name, from the file that was chosen", async () => {
  await withAgent(async (page) => {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download" }).click(),
    ]);
    const file = join(folder, "ada.tar.gz");
    await download.saveAs(file);
    await page.getByLabel("Or import an agent").setInputFiles(file);
    await page.locator("#export [role=alert]").getByText('has an agent "ada" already').waitFor();
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("export-name");
    expect(await faultsOf(page)).toEqual([]);
    await page.keyboard.type("Ada the second");
    await page.keyboard.press("Enter");
    await page.locator("#export-told a", { hasText: "Ada the second" }).waitFor();
    await page.locator("#export-name").waitFor({ state: "hidden" });
    await page.locator("#instance-list").getByText("Ada the second").waitFor({ state: "attached" });
  });
});
