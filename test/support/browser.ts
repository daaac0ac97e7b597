import { test } from "bun:test";
import { type Browser, type BrowserContext, chromium } from "playwright-core";
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

let running: Promise<Browser> | undefined;

/** One for all tests of this process, which Playwright ends with it; started again where it crashed. */
async function startedBrowser(): Promise<Browser> {
  if (running && !(await running).isConnected()) running = undefined;
  running ??= chromium.launch({ executablePath: browserPath, headless: true, args: FLAGS });
  return await running;
}

/** Hands `use` a headless browser that nobody has used: without cookies, storage or cache. Closes its pages after. */
export async function withBrowser<T>(use: (browser: BrowserContext) => Promise<T>): Promise<T> {
  if (browserPath === "") throw new Error(NO_BROWSER);
  const browser = await (await startedBrowser()).newContext();
  try {
    return await use(browser);
  } finally {
    await browser.close();
  }
}
