import { test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, chromium } from "playwright-core";
import { findChromium } from "../../scripts/chromium.ts";

const browserPath = process.env.ROOST_TEST_BROWSER ?? findChromium() ?? "";
const NO_BROWSER = "no Chromium here: set CHROME_PATH to one, or install the package chromium";

/** A test in the browser. Without a Chromium it is skipped, which is said aloud; where CI is set it fails. */
export const browserTest = test.skipIf(browserPath === "" && !process.env.CI);
if (browserPath === "") console.error(`THE BROWSER TESTS DO NOT RUN: ${NO_BROWSER}`);

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
  if (browserPath === "") throw new Error(NO_BROWSER);
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
