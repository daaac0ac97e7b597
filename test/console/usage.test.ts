import { afterAll, beforeAll, expect } from "bun:test";
import { type Conversation, startConversation } from "../messages/conversation.ts";
import { faultsOf } from "../support/axe.ts";
import { browserTest } from "../support/browser.ts";
import { lookAgain, openAs, SIZES, tooWide, withConsole } from "./with-console.ts";

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
      // Today's bar is full, and the days before have none.
      const filled = await page
        .getByRole("meter")
        .evaluateAll((bars) => bars.map((bar) => (bar.firstElementChild?.clientWidth ?? -1) / bar.clientWidth));
      expect(filled).toEqual([1, 0, 0, 0, 0, 0, 0]);
      await page.locator("#operator-limits", { hasText: "1,000,000 tokens in a day" }).waitFor();

      await page.locator('input[name="tokensPerDay"]').fill("500000");
      await page.locator('#model-limits button[type="submit"]').click();
      await page.locator("#limits-saved", { hasText: "Saved" }).waitFor();
      const { modelLimits } = (await it.person.ask("GET", "/v1/auth/me")).body;
      expect(modelLimits).toMatchObject({ tokensPerDay: 500_000, costPerDay: null });

      await page.locator('input[name="tokensPerDay"]').fill("2000000");
      await page.locator('#model-limits button[type="submit"]').click();
      await page.locator("#model-limits [role=alert]:not([hidden])").waitFor();

      const ofInstance = `/v1/instances/${it.instance}`;
      for (const [name, path] of [
        ["all of test", ofInstance],
        ["Ada", it.at("")],
      ] as const) {
        await page.locator("#limits-of").selectOption(name);
        // A field of the one before cannot be filled.
        await page.locator('input[name="costPerMonth"]').fill("2.50");
        await page.locator('#model-limits button[type="submit"]').click();
        await page.locator("#limits-saved", { hasText: "Saved" }).waitFor();
        const { modelLimits: limits } = (await it.person.ask("GET", path)).body;
        expect(limits).toEqual({
          tokensPerDay: null,
          tokensPerMonth: null,
          costPerDay: null,
          costPerMonth: "2.500000",
        });
      }
      // What was refused is still there to be corrected.
      await page.locator("#limits-of").selectOption("this account");
      await page.waitForFunction(
        () => document.querySelector<HTMLInputElement>("[name=tokensPerDay]")?.value === "2000000",
      );
      for (const size of SIZES) {
        for (const colorScheme of ["light", "dark"] as const) {
          await page.setViewportSize(size);
          await page.emulateMedia({ colorScheme });
          expect([size.width, colorScheme, await tooWide(page)]).toEqual([size.width, colorScheme, false]);
          expect(await faultsOf(page)).toEqual([]);
          const folder = process.env.ROOST_TEST_PICTURES;
          if (folder)
            await page.screenshot({ path: `${folder}/usage-${size.width}-${colorScheme}.png`, fullPage: true });
        }
      }
    },
  );
});

browserTest("limits that are still being saved are those of what is chosen, until they are saved", async () => {
  await it.person.ask("PATCH", `/v1/instances/${it.instance}`, { modelLimits: { tokensPerDay: 7 } });
  await withConsole(
    () => it.server.url,
    async (page) => {
      await openAs(page, it.server.url, it.person.token);
      await page.locator("#to-usage").click();
      await page.locator("#limits-of").selectOption("Ada");
      const asked = Promise.withResolvers<void>();
      const answer = Promise.withResolvers<void>();
      await page.route(`**${it.at("")}`, async (route) => {
        if (route.request().method() !== "PATCH") return route.continue();
        asked.resolve();
        await answer.promise;
        await route.continue();
      });
      await page.locator('input[name="tokensPerDay"]').fill("9");
      await page.locator('#model-limits button[type="submit"]').click();
      await asked.promise;
      expect(await page.locator("#limits-of").isDisabled()).toBe(true);
      answer.resolve();
      await page.locator("#limits-saved", { hasText: "Saved" }).waitFor();
      await page.locator("#limits-of").selectOption("all of test");
      await page.waitForFunction(() => document.querySelector<HTMLInputElement>("[name=tokensPerDay]")?.value === "7");
      expect(await page.locator("#limits-saved").textContent()).toBe("");
    },
  );
  const none = { tokensPerDay: null };
  for (const path of [it.at(""), `/v1/instances/${it.instance}`])
    await it.person.ask("PATCH", path, { modelLimits: none });
});

browserTest("an agent beyond the first page of its instance is called by its name", async () => {
  await it.send("hi");
  await withConsole(
    () => it.server.url,
    async (page) => {
      // As if there were a hundred others before it.
      await page.route("**/agents?*", async (route) => {
        const url = new URL(route.request().url());
        const isFirst = !url.searchParams.has("after");
        url.searchParams.delete("after");
        const response = await route.fetch({ url: url.href });
        await route.fulfill(isFirst ? { json: { data: [], nextCursor: "more" } } : { response });
      });
      await openAs(page, it.server.url, it.person.token);
      await page.locator("#to-usage").click();
      await page.locator("#usage-table tbody th", { hasText: /^Ada$/ }).first().waitFor();
      await page.locator("#limits-of").selectOption("Ada");
    },
  );
});

browserTest("beside a deleted agent's long id the table's headings stay whole, on every screen", async () => {
  // A limit of costs refuses a model without a price.
  await it.person.ask("PATCH", `/v1/instances/${it.instance}`, { modelLimits: null });
  await it.begin();
  expect((await it.send("hi")).status).toBe(200);
  await it.person.ask("DELETE", it.at(""));
  await withConsole(
    () => it.server.url,
    async (page) => {
      await openAs(page, it.server.url, it.person.token);
      await page.locator("#to-usage").click();
      await page.locator("#usage-table tbody th", { hasText: it.agent }).waitFor();
      for (const size of SIZES) {
        await page.setViewportSize(size);
        const lines = await page.locator("#usage-table thead th").evaluateAll((headings) =>
          headings.map((heading) => {
            const text = document.createRange();
            text.selectNodeContents(heading);
            return [heading.textContent, text.getClientRects().length];
          }),
        );
        const headings = ["Name", "Runs", "Calls", "Prompt", "Answers", "USD"];
        expect([size.width, lines]).toEqual([size.width, headings.map((name) => [name, 1])]);
        expect(await tooWide(page)).toBe(false);
      }
    },
  );
});

browserTest("limits that are typed and not saved stay while others are looked at, and are asked about", async () => {
  await withConsole(
    () => it.server.url,
    async (page) => {
      await openAs(page, it.server.url, it.person.token);
      await page.locator("#to-usage").click();
      const field = page.locator('input[name="tokensPerMonth"]');
      const of = page.locator("#limits-of");
      const choose = async (name: string) => {
        await of.selectOption(name);
        await page.locator("#limits-fields:enabled").waitFor();
      };
      await field.fill("1234");
      await choose("all of test");
      expect(await field.inputValue()).toBe("");
      await page.locator("#to-model").click();
      await page.locator("#view-model").waitFor();
      const readAgain = page.waitForResponse(`**/v1/instances/${it.instance}`);
      await page.locator("#to-usage").click();
      await readAgain;
      await choose("this account");
      expect(await field.inputValue()).toBe("1234");
      const dialog = page.waitForEvent("dialog");
      void page.reload().catch(() => undefined);
      await (await dialog).dismiss();
      await field.press("Enter");
      await page.locator("#limits-saved", { hasText: "Saved" }).waitFor();
      expect((await it.person.ask("GET", "/v1/auth/me")).body.modelLimits).toMatchObject({ tokensPerMonth: 1234 });
      await page.reload();
      await field.waitFor();
      await it.person.ask("PATCH", "/v1/auth/me", { modelLimits: { tokensPerMonth: null } });
    },
  );
});

browserTest("whatever was asked for last is shown, also if an earlier answer comes later", async () => {
  await it.send("hi");
  await withConsole(
    () => it.server.url,
    async (page) => {
      await openAs(page, it.server.url, it.person.token);
      await page.locator("#to-usage").click();
      const names = page.locator("#usage-table tbody th");
      await names.filter({ hasText: "Ada" }).waitFor();
      const asked = Promise.withResolvers<void>();
      const answer = Promise.withResolvers<void>();
      await page.route("**/v1/usage?by=model*", async (route) => {
        asked.resolve();
        await answer.promise;
        await route.continue();
      });
      await page.locator("#usage-by").selectOption("model");
      await asked.promise;
      await page.locator("#usage-by").selectOption("instance");
      await names.filter({ hasText: "test" }).waitFor();
      const late = page.waitForResponse("**/v1/usage?by=model*");
      answer.resolve();
      await (await late).finished();
      // The page has dealt with it once it has asked for something else and been answered.
      await Promise.all([page.waitForResponse("**/v1/instances?*"), lookAgain(page)]);
      expect(await names.allTextContents()).toEqual(["test"]);
    },
  );
});

browserTest("figures are whole on a narrow screen, and in the page's language in any browser", async () => {
  await withConsole(
    () => it.server.url,
    async (_, browser) => {
      await using german = (await browser.browser()?.newContext({ locale: "de-DE" })) ?? expect.unreachable();
      const page = await german.newPage();
      await page.setViewportSize({ width: 320, height: 640 });
      await openAs(page, it.server.url, it.person.token);
      await page.evaluate(() => location.assign("#usage"));
      await page.locator("#operator-limits", { hasText: "1,000,000 tokens in a day" }).waitFor();
      const cells = page.locator("#usage-table tbody tr:first-child td");
      await cells.first().waitFor();
      const lines = await cells.evaluateAll((all) =>
        all.map((cell) => {
          cell.textContent = "12,345.000660";
          const text = document.createRange();
          text.selectNodeContents(cell);
          return text.getClientRects().length;
        }),
      );
      expect(lines).toEqual([1, 1, 1, 1, 1]);
      expect(await tooWide(page)).toBe(false);
    },
  );
});
