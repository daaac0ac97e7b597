import { afterAll, expect } from "bun:test";
import { browserTest } from "../support/browser.ts";
import { startWithModel, withConsoleAs } from "./with-console.ts";

const { server, stop } = await startWithModel();
afterAll(stop);

browserTest(
  "an amount or a transaction's hash that cannot be one is told of in plain words, and not sent",
  async () => {
    const person = await server.signUp();
    await withConsoleAs(
      server,
      person,
      async (page) => {
        const asked: string[] = [];
        page.on("request", (request) => request.url().endsWith("/top-up") && asked.push(request.postData() ?? ""));
        const alert = page.locator("#top-up > [role=alert]");
        for (const amount of ["2,50", "-1", "1.0000001", "much"]) {
          await page.fill("#top-up-amount", amount);
          await page.locator("#ask-quote button").click();
          await alert.getByText("this is not an amount").waitFor();
        }
        expect(asked).toEqual([]);
        await page.fill("#top-up-amount", "2.50");
        await page.locator("#ask-quote button").click();
        await page.locator("#quote").waitFor();
        expect(await alert.isVisible()).toBe(false);
        for (const hash of ["0x12", "a".repeat(64), `0x${"g".repeat(64)}`]) {
          await page.fill("#tx-hash", hash);
          await page.locator("#pay-quote button").click();
          await alert.getByText("this is not a transaction hash").waitFor();
        }
        expect(asked).toEqual([JSON.stringify({ amount: "2.50" })]);
      },
      "#account",
    );
  },
);
