import { expect } from "bun:test";
import { pino } from "pino";
import type { BrowserContext, Locator, Page } from "playwright-core";
import { withBrowser } from "../support/browser.ts";
import { startMockModelServer } from "../support/mock-model-server.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

/** What the servers with a model have logged last, which is printed with a failure. */
const logged: string[] = [];
const MAX_LOGGED = 200;

function keepLine(line: string): void {
  logged.push(line);
  if (logged.length > MAX_LOGGED) logged.shift();
}

/** A server whose model answers as scripted; `stop` ends both. */
export async function startWithModel(options: Parameters<typeof startTestServer>[1] = {}) {
  const model = startMockModelServer();
  const settings = { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: model.url };
  const log = pino({ level: "debug" }, { write: keepLine });
  const server = await startTestServer(settings, { log, ...options });
  async function stop(): Promise<void> {
    await server.stop();
    await model.stop();
  }
  return { model, server, stop };
}

/** A new person with an instance and an agent, the paths of both in the API, and the agent's address in the console. */
export async function signUpWithAgent(server: TestServer, agent: object = { name: "Ada" }) {
  const person = await server.signUp();
  const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "home" })).body;
  const instancePath = `/v1/instances/${instanceId}`;
  const { agentId } = (await person.ask("POST", `${instancePath}/agents`, agent)).body;
  return { person, instancePath, agentPath: `${instancePath}/agents/${agentId}`, hash: `#${instanceId}/${agentId}` };
}

/** Resolves when no run is queued or running: an answer scripted for one must not be left to the next test's runs. */
export async function untilRunsEnd({ foundation }: TestServer): Promise<void> {
  const left = foundation.store.sqlite.query("SELECT 1 FROM runs WHERE status IN ('queued', 'running')");
  while (left.get() !== null) await Bun.sleep(5);
}

/** A laptop and a phone, in CSS pixels. */
export const SIZES = [
  { width: 1280, height: 800 },
  { width: 390, height: 844 },
];

/** Whether the page must be scrolled sideways. */
export const tooWide = (page: Page): Promise<boolean> =>
  page.evaluate(() => document.documentElement.scrollWidth > innerWidth);

/** Focuses what can be seen: what is still hidden would not take it, and Playwright would not tell. */
export async function focus(shown: Locator): Promise<void> {
  await shown.waitFor();
  await shown.focus();
}

/** Lets the page read again what others may have changed, as it does now and then. */
export const lookAgain = (page: Page): Promise<boolean> =>
  page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));

/**
 * In the page, for a busy machine: it never reads again by itself what others may have changed, only when a test says so
 * (`lookAgain`), and its longer deadlines, such as the 5 s of a sign-out, are a minute.
 */
function bePatient(): void {
  const { setTimeout: later } = window;
  Object.assign(window, {
    setInterval: () => 0,
    setTimeout: (work: TimerHandler, ms = 0, ...rest: unknown[]) =>
      later(work, ms >= 5_000 ? Math.max(ms, 60_000) : ms, ...rest),
  });
}

/**
 * Passes a page to `use`, and checks what holds for every page of the console: no errors, no requests to other origins.
 */
export async function withConsole(
  url: () => string,
  use: (page: Page, browser: BrowserContext) => Promise<void>,
): Promise<void> {
  const complaints: string[] = [];
  const foreign: string[] = [];
  await withBrowser(async (browser) => {
    browser.on("request", (request) => {
      if (/^https?:/.test(request.url()) && !request.url().startsWith(url())) foreign.push(request.url());
    });
    await browser.addInitScript(bePatient);
    browser.on("weberror", (error) => complaints.push(String(error.error())));
    browser.on("console", (message) => {
      // The browser itself logs each error response of the API here, and each answer that a test blocked.
      if (message.type() === "error" && !/status of (4\d\d|503)|net::ERR_FAILED/.test(message.text()))
        complaints.push(message.text());
    });
    try {
      await use(browser.pages()[0] ?? (await browser.newPage()), browser);
    } catch (error) {
      console.error(logged.join(""));
      throw error;
    }
  });
  expect(complaints).toEqual([]);
  expect(foreign).toEqual([]);
}

/** The page, signed in with this token. */
export async function openAs(page: Page, url: string, token: string): Promise<void> {
  await page.goto(`${url}/favicon.svg`);
  await page.evaluate((held) => sessionStorage.setItem("roost.token", held), token);
  await page.goto(url);
  await page.locator("#signed-in").waitFor();
}

/** Passes the console to `use`, signed in as this person, at this fragment of its URL; checks what `withConsole` does. */
export const withConsoleAs = (
  { url }: { url: string },
  { token }: { token: string },
  use: (page: Page) => Promise<void>,
  hash = "",
): Promise<void> =>
  withConsole(
    () => url,
    async (page) => {
      await openAs(page, url, token);
      // Set where it is empty already, it would be one more step to go back.
      if (hash !== "") {
        await page.evaluate((to) => {
          location.hash = to;
        }, hash);
      }
      await use(page);
    },
  );
