import type { BrowserContext } from "playwright-core";

const MAX_LINES = 300;

/**
 * Notes what the pages of a browser ask and log, from now on. The function returned tells it, with what they show now:
 * for a failure that is too rare to be seen again.
 */
export function recordPages(browser: BrowserContext): () => Promise<string> {
  const beganMs = performance.now();
  const lines: string[] = [];
  const note = (what: string) => {
    lines.push(`${Math.round(performance.now() - beganMs)} ms: ${what}`);
    if (lines.length > MAX_LINES) lines.shift();
  };
  browser.on("request", (asked) => note(`asks ${asked.method()} ${asked.url()}`));
  browser.on("response", (answer) => note(`gets ${answer.status()} for ${answer.request().method()} ${answer.url()}`));
  browser.on("requestfinished", (asked) => note(`has all of ${asked.method()} ${asked.url()}`));
  browser.on("requestfailed", (asked) => note(`${asked.failure()?.errorText} at ${asked.method()} ${asked.url()}`));
  browser.on("console", (message) => note(`logs, as ${message.type()}: ${message.text()}`));
  return async () => {
    const pages = browser.pages().map(async (page) => {
      const shown = await page.locator("body").ariaSnapshot({ timeout: 10_000 }).catch(String);
      return `${page.url()} shows:\n${shown}`;
    });
    return [...lines, ...(await Promise.all(pages))].join("\n");
  };
}
