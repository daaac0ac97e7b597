import { afterAll, beforeAll, expect } from "bun:test";
import { withConsoleAs } from "../console/with-console.ts";
import { type McpService, startMcpService } from "../mcp/mcp-service.ts";
import { faultsOf } from "../support/axe.ts";
import { browserTest } from "../support/browser.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { visit } from "./person.ts";
import { refusalOf } from "./protected-server.ts";
import { type AuthorizationServer, startAuthorizationServer } from "./provider.ts";

let provider: AuthorizationServer;
let service: McpService;
let server: TestServer;
beforeAll(async () => {
  provider = await startAuthorizationServer();
  service = startMcpService("2026", { name: "search" });
  service.intercept = (_, request) => refusalOf(provider, request);
  server = await startTestServer({ ROOST_EGRESS: `public,${service.host},${new URL(provider.issuer).host}` });
});
afterAll(async () => {
  await server.stop();
  await service.stop();
  await provider.stop();
});

browserTest("a person authorizes a server in the console, by consenting in another window", async () => {
  const person = await server.signUp();
  const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "home" })).body;
  const { agentId } = (await person.ask("POST", `/v1/instances/${instanceId}/agents`, { name: "Ada" })).body;
  await person.ask("POST", `/v1/instances/${instanceId}/mcp-servers`, { name: "docs", url: service.url });
  await withConsoleAs(
    server,
    person,
    async (page) => {
      const row = page.locator("#mcp-list > li", { hasText: "docs" });
      await row.locator("summary", { hasText: "has to be authorized" }).click();
      await row.getByText("it answered 401: authorize it, or give it a token in a header", { exact: true }).waitFor();
      await row.getByRole("button", { name: "Authorize docs" }).click();
      const link = row.getByRole("link", { name: "Consent at 127.0.0.1" });
      await link.waitFor();
      expect(await faultsOf(page)).toEqual([]);
      const address = (await link.getAttribute("href")) ?? "";
      expect(await link.getAttribute("rel")).toBe("noopener noreferrer");
      const other = await page.context().newPage();
      await other.goto(await visit(address, `${server.url}/v1/oauth/callback`, { name: "ana", consents: true }));
      await other.getByRole("heading", { name: "Authorized" }).waitFor();
      expect(await faultsOf(other)).toEqual([]);
      await other.close();
      await page.locator("#mcp-told", { hasText: "docs is authorized." }).waitFor();
      await page.locator("#tool-list", { hasText: "docs__search" }).waitFor();
    },
    `#${instanceId}/${agentId}/tools`,
  );
});
