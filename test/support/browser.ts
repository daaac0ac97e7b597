import { test } from "bun:test";
import { type Browser, type BrowserContext, chromium } from "playwright-core";
import { findChromium } from "../../scripts/chromium.ts";
import { recordPages } from "./page-record.ts";

const browserPath = process.env.ROOST_TEST_BROWSER ?? findChromium() ?? "";
const NO_BROWSER = "no Chromium here: set CHROME_PATH to one, or install the package chromium-headless-shell";

/** A test in the browser. Without a Chromium it is skipped with a message; if CI is set, it fails. */
export const browserTest = test.skipIf(browserPath === "" && !process.env.CI);
if (browserPath === "") console.error(`THE BROWSER TESTS DO NOT RUN: ${NO_BROWSER}`);

/** Flags for a browser without background work, and without connections except those of the opened pages. */
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Only ends what hangs: Playwright's 30 s are short where many browsers start at once. */
const DEADLINE_MS = 120_000;

let running: Promise<Browser> | undefined;

/** One browser for all tests of this process, with which Playwright ends it; restarted if it crashed. */
async function startedBrowser(): Promise<Browser> {
  if (running && !(await running).isConnected()) running = undefined;
  running ??= chromium.launch({ executablePath: browserPath, headless: true, args: FLAGS, timeout: DEADLINE_MS });
  return await running;
}

/**
 * Calls `use` with a fresh browser context: without cookies, storage or cache. Closes its pages afterwards; what they have
 * done is printed if `use` throws.
 */
export async function withBrowser<T>(use: (browser: BrowserContext) => Promise<T>): Promise<T> {
  if (browserPath === "") throw new Error(NO_BROWSER);
  const browser = await (await startedBrowser()).newContext();
  browser.setDefaultTimeout(DEADLINE_MS);
  const tell = recordPages(browser);
  try {
    return await use(browser);
  } catch (error) {
    console.error(await tell());
    throw error;
  } finally {
    await browser.close();
  }
}
