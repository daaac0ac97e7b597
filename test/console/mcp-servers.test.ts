import { afterAll, beforeAll, beforeEach, expect } from "bun:test";
import { type McpService, startMcpService } from "../mcp/mcp-service.ts";
import { faultsOf } from "../support/axe.ts";
import { browserTest } from "../support/browser.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";
import { SIZES, signUpWithAgent, tooWide, withConsoleAs } from "./with-console.ts";

const search = { name: "search", description: "Searches the documents." };
let service: McpService;
let server: TestServer;
let person: Person;
let servers: string;
let hash: string;
beforeAll(async () => {
  service = startMcpService("2026", search);
  server = await startTestServer({ ROOST_EGRESS: `public,${service.host}` });
});
afterAll(async () => {
  await server.stop();
  await service.stop();
});
beforeEach(async () => {
  const ada = await signUpWithAgent(server);
  person = ada.person;
  servers = `${ada.instancePath}/mcp-servers`;
  hash = `${ada.hash}/tools`;
});

browserTest("what has changed at an MCP server is shown, and approved as it is shown", async () => {
  await service.offer(search);
  const { serverId } = (await person.ask("POST", servers, { name: "docs", url: service.url })).body;
  await service.offer({ ...search, description: "Searches everything." }, { name: "delete" });
  await person.ask("POST", `${servers}/${serverId}/refresh`);
  await withConsoleAs(
    server,
    person,
    async (page) => {
      const row = page.locator("#mcp-list > li", { hasText: "docs" });
      await row.locator("summary", { hasText: "waits for you" }).click();
      await row.getByText("Searches everything.").waitFor();
      expect(await faultsOf(page)).toEqual([]);
      for (const size of SIZES) {
        await page.setViewportSize(size);
        expect([size.width, await tooWide(page)]).toEqual([size.width, false]);
      }
      await row.getByRole("button", { name: "Approve what has changed of docs" }).click();
      await page.locator("#mcp-told", { hasText: "docs is approved as it is shown." }).waitFor();
      await page.locator("#tool-list", { hasText: "docs__delete" }).waitFor();
      await row.getByRole("button", { name: "Remove docs" }).click();
      await row.getByRole("button", { name: "Really remove docs?" }).click();
      await page.locator("#mcp-told", { hasText: "docs is removed." }).waitFor();
    },
    hash,
  );
  expect((await person.ask("GET", servers)).body.data).toEqual([]);
});
