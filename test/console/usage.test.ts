import { afterAll, beforeAll, expect } from "bun:test";
import { type Conversation, startConversation } from "../messages/conversation.ts";
import { faultsOf } from "../support/axe.ts";
import { browserTest } from "../support/browser.ts";
import { openAs, SIZES, tooWide, withConsole } from "./with-console.ts";

let it: Conversation;
beforeAll(async () => {
  it = await startConversation({ ROOST_TOKENS_PER_DAY: "1000000" });
});
afterAll(() => it.stop());

browserTest("what models took is shown by day and by agent, and the account's limits can be changed", async () => {
  await it.send("hi");
  await withConsole(
    () => it.server.url,
    async (page) => {
      await openAs(page, it.server.url, it.person.token);
      await page.evaluate(() => {
        location.hash = "#usage";
      });
      const row = page.locator("#usage-table tbody tr");
      await row.waitFor();
      expect(await row.locator("th, td").allTextContents()).toEqual(["Ada", "1", "1", "12", "3", "–"]);
      expect(await page.locator("#usage-days > li").count()).toBe(7);
      expect(await page.locator("#operator-limits").textContent()).toContain("1,000,000 tokens in a day");

      await page.locator('input[name="tokensPerDay"]').fill("500000");
      await page.locator('#model-limits button[type="submit"]').click();
      await page.locator("#limits-saved", { hasText: "Saved" }).waitFor();
      const { modelLimits } = (await it.person.ask("GET", "/v1/auth/me")).body;
      expect(modelLimits).toMatchObject({ tokensPerDay: 500_000, costPerDay: null });

      await page.locator('input[name="tokensPerDay"]').fill("2000000");
      await page.locator('#model-limits button[type="submit"]').click();
      await page.locator("#model-limits [role=alert]:not([hidden])").waitFor();
      for (const size of SIZES) {
        await page.setViewportSize(size);
        expect(await tooWide(page)).toBe(false);
      }
      expect(await faultsOf(page)).toEqual([]);
    },
  );
});
