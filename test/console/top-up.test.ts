import { afterAll, expect } from "bun:test";
import { browserTest } from "../support/browser.ts";
import { openChain } from "../support/chain-that-answers.ts";
import { startTestServer } from "../support/test-server.ts";
import { startWithModel, withConsoleAs } from "./with-console.ts";

const { server, stop } = await startWithModel();
afterAll(stop);
const UNKNOWN = `0x${"a".repeat(64)}`;
const FAILED = `0x${"b".repeat(64)}`;

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

browserTest(
  "a payment that cannot be credited yet can be checked again, and nobody who has paid is told to top up",
  async () => {
    await using node = openChain(FAILED);
    const host = await startTestServer({ ROOST_NETWORKS: "base", ROOST_BASE_RPC_URL: node.url });
    const person = await host.signUp();
    await withConsoleAs(
      host,
      person,
      async (page) => {
        await page.locator("#ask-quote button").click();
        await page.fill("#tx-hash", UNKNOWN);
        await page.getByRole("button", { name: "I have sent it" }).click();
        const told = page.locator("#paid");
        await told.getByText("Do not pay twice: check again in 2 s.").waitFor();
        expect(await told.textContent()).toStartWith("Not yet: no such transaction is in a block of base yet");
        expect(await page.inputValue("#tx-hash")).toBe(UNKNOWN);
        const alert = page.locator("#top-up > [role=alert]");
        expect(await alert.isVisible()).toBe(false);

        await page.fill("#tx-hash", FAILED);
        await page.getByRole("button", { name: "Check again" }).click();
        await alert.waitFor();
        expect(await alert.textContent()).toBe("the transaction failed on the chain: nothing was transferred");
        expect(await told.isVisible()).toBe(false);
      },
      "#account",
    ).finally(() => host.stop());
  },
);
