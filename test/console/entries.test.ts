import { expect } from "bun:test";
import { browserTest } from "../support/browser.ts";
import { startTestServer } from "../support/test-server.ts";
import { openAs, withConsole } from "./with-console.ts";

browserTest("the account's page shows the newest entries of its ledger, a payment with its network", async () => {
  const host = await startTestServer();
  try {
    const { token, accountId } = await host.signUp("ada@example.com", "10.00");
    const { ledger } = host.foundation;
    const txHash = `0x${"ab".repeat(32)}`;
    const transfer = { chainId: 8453, txHash };
    ledger.post({ type: "top_up", accountId, amount: 1_005_715n, against: "clearing:base", transfer });
    ledger.post({ type: "reversal", accountId, amount: -5_000_000n, against: "grants", note: "a typing error" });
    await withConsole(
      () => host.url,
      async (page) => {
        await openAs(page, host.url, token);
        await page.click("#to-account");
        const entries = page.locator("#entry-list .entry");
        await entries.first().waitFor();
        const texts = await entries.locator("span:not(.soft)").allTextContents();
        expect(texts).toEqual(["Reversal", "−5.00", "Top-up on base", "1.005715", "Credit", "10.00"]);
      },
    );
  } finally {
    await host.stop();
  }
});
