import { afterAll, beforeAll, beforeEach, expect } from "bun:test";
import { z } from "zod";
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
let agentPath: string;
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
  ({ person, agentPath } = ada);
  servers = `${ada.instancePath}/mcp-servers`;
  hash = `${ada.hash}/tools`;
});

browserTest("what has changed at an MCP server is shown, and approved as it is shown", async () => {
  await service.offer(search);
  const { serverId } = (await person.ask("POST", servers, { name: "docs", url: service.url })).body;
  const query = z.string().describe("What to look for.");
  const long = z.array(z.enum(["a".repeat(40), "b".repeat(40)]));
  const input = z.object({ query, long });
  await service.offer({ ...search, description: "Searches everything.", input }, { name: "delete" });
  await person.ask("POST", `${servers}/${serverId}/refresh`);
  await withConsoleAs(
    server,
    person,
    async (page) => {
      const row = page.locator("#mcp-list > li", { hasText: "docs" });
      await row.locator("summary", { hasText: "waits for you" }).click();
      await row.getByText("Searches everything.").waitFor();
      await row.getByText("query (string, required): What to look for.").waitFor();
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

browserTest(
  "what is chosen among the tools and not saved stays when an MCP server's tools are read again",
  async () => {
    await service.offer(search, { name: "delete" });
    await person.ask("POST", servers, { name: "docs", url: service.url });
    await withConsoleAs(
      server,
      person,
      async (page) => {
        const policy = (tool: string) => page.getByLabel(`Policy of ${tool}`, { exact: true });
        await policy("http_request").selectOption("Always");
        await policy("docs__search").selectOption("Never");
        await policy("docs__delete").selectOption("Never");
        await page.locator("#mcp-list > li", { hasText: "docs" }).locator("summary").click();
        await service.offer(search);
        await page.getByRole("button", { name: "Ask docs again" }).click();
        await page.locator("#mcp-told", { hasText: "docs was asked." }).waitFor();
        expect([await policy("http_request").inputValue(), await policy("docs__search").inputValue()]).toEqual([
          "always",
          "deny",
        ]);
        expect(await page.getByText("even if a stranger's text").filter({ visible: true }).count()).toBe(1);
        await page.getByRole("button", { name: "Remove docs" }).click();
        await page.getByRole("button", { name: "Really remove docs?" }).click();
        await page.locator("#mcp-told", { hasText: "docs is removed." }).waitFor();
        expect(await policy("docs__search").count()).toBe(0);
        await page.getByRole("button", { name: "Save" }).click();
        await page.getByText("Saved. It counts at once").waitFor();
      },
      hash,
    );
    expect((await person.ask("GET", agentPath)).body.tools).toEqual({ http_request: "always" });
  },
);
