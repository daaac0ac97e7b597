import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, chromium } from "playwright-core";
import { findChromium } from "../../scripts/chromium.ts";

/** Path of the browser, "" where there is none; a browser test says `test.skipIf(browserPath === "")`. */
export const browserPath = process.env.ROOST_TEST_BROWSER ?? findChromium() ?? "";

/** It starts nothing in the background and talks to nobody but the pages that are opened. */
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Hands `use` a headless browser with a new, empty profile, and closes and removes both after. */
export async function withBrowser<T>(use: (browser: BrowserContext) => Promise<T>): Promise<T> {
  const profile = await mkdtemp(join(tmpdir(), "roost-browser-"));
  try {
    const browser = await chromium.launchPersistentContext(profile, {
      executablePath: browserPath,
      headless: true,
      args: FLAGS,
    });
    try {
      return await use(browser);
    } finally {
      await browser.close();
    }
  } finally {
    await rm(profile, { recursive: true, force: true });
  }
}
