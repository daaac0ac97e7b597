import { afterAll, expect, spyOn, test } from "bun:test";
import type { Page } from "playwright-core";
import { faultsOf } from "../support/axe.ts";
import { browserTest, withBrowser } from "../support/browser.ts";
import type { OpenApi } from "../support/openapi-check.ts";
import { startTestServer } from "../support/test-server.ts";

const server = await startTestServer();
afterAll(() => server.stop());
const at = (path: string) => new URL(path, server.url).href;

const PAGES: [path: string, type: string][] = [
  ["/docs", "text/html"],
  ["/docs/reference.css", "text/css"],
  ["/docs/reference.js", "text/javascript"],
  ["/docs/swagger-ui.css", "text/css"],
  ["/docs/swagger-ui.js", "text/javascript"],
  ["/docs/licenses.txt", "text/plain"],
];

test.each(PAGES)("%s is sent gzipped to clients that accept it, and only once", async (path, type) => {
  const gzipped = await fetch(at(path), { decompress: false, headers: { "Accept-Encoding": "gzip" } });
  expect(gzipped.headers.get("content-encoding")).toBe("gzip");
  const liked = await fetch(at(path), { decompress: false, headers: { "Accept-Encoding": "br, gzip;q=0.5" } });
  expect(liked.headers.get("content-encoding")).toBe("gzip");
  const plain = await fetch(at(path), { headers: { "Accept-Encoding": "gzip;q=0" } });
  expect(plain.headers.get("content-encoding")).toBeNull();
  expect(Buffer.from(Bun.gunzipSync(await gzipped.bytes()))).toEqual(Buffer.from(await plain.bytes()));
  for (const { headers } of [gzipped, plain]) {
    expect(headers.get("content-type")).toBe(`${type}; charset=utf-8`);
    expect(headers.get("vary")).toBe("Accept-Encoding");
    const policy = headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain("unsafe");
  }
  const again = await fetch(at(path), { headers: { "If-None-Match": gzipped.headers.get("etag") ?? "" } });
  expect([again.status, await again.text()]).toEqual([304, ""]);
});

test("clients that accept no gzip make the host unpack a page once, not for each of them", async () => {
  const unpack = spyOn(Bun, "gunzipSync");
  try {
    const ask = () => fetch(at("/docs/swagger-ui.js"), { headers: { "Accept-Encoding": "identity" } });
    for (let asked = 0; asked < 3; asked++) expect((await (await ask()).bytes()).byteLength).toBeGreaterThan(1_000_000);
    expect(unpack.mock.calls.length).toBeLessThanOrEqual(1);
  } finally {
    unpack.mockRestore();
  }
});

test("the licences of the viewer and of everything bundled with it are served", async () => {
  const text = await (await fetch(at("/docs/licenses.txt"))).text();
  for (const words of ["swagger-ui", "Apache License", "MIT"]) expect(text).toContain(words);
});

interface Shown {
  /** The page's requests to other hosts. */
  outside: string[];
  troubles: string[];
}

/** The reference in a browser that can reach only this host. */
async function show(path: string, look: (page: Page, shown: Shown) => Promise<void>): Promise<void> {
  await withBrowser(async (browser) => {
    const page = await browser.newPage();
    const shown: Shown = { outside: [], troubles: [] };
    await page.route("**", (route) => {
      if (route.request().url().startsWith(server.url)) return route.continue();
      shown.outside.push(route.request().url());
      return route.abort();
    });
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) shown.troubles.push(message.text());
    });
    page.on("pageerror", (error) => shown.troubles.push(error.message));
    await page.goto(at(path));
    await look(page, shown);
    expect(shown).toEqual({ outside: [], troubles: [] });
  });
}

/** The answers of an operation in the document, named as in the reference. */
function answers({ paths }: OpenApi, id: string): object {
  const operations = Object.values(paths).flatMap((operations) => Object.values(operations));
  return (
    operations.find(({ operationId }) => operationId !== undefined && id.endsWith(`-${operationId}`))?.responses ?? {}
  );
}

// In one test, because loading the page takes longer than all that is looked at.
browserTest(
  "the reference shows every operation with its answers, tries requests with a pasted key, and can be read by everybody, without a network and without blocked content",
  async () => {
    await show("/docs", async (page) => {
      await page.locator("#operations-billing-topUp").first().waitFor();
      await showsEveryOperation(page);
      await triesRequests(page);
      await canBeRead(page);
    });
  },
);

async function showsEveryOperation(page: Page): Promise<void> {
  const document = (await server.ask("GET", "/openapi.json")).body as OpenApi;
  const expected = Object.values(document.paths).flatMap(({ parameters: _, ...operations }) =>
    Object.values(operations).map(
      (one) => `operations-${(one as unknown as { tags: string[] }).tags[0]}-${one.operationId}`,
    ),
  );
  const operations = await page.locator(".opblock").evaluateAll((blocks) => blocks.map(({ id }) => id));
  expect(operations.toSorted()).toEqual(expected.toSorted());
  for (const id of ["messages-createAgentMessage", "billing-topUp"]) {
    const block = page.locator(`#operations-${id}`);
    await block.locator(".opblock-summary-control").click();
    for (const status of Object.keys(answers(document, id))) {
      await block.locator(`.response[data-code="${status}"]`).waitFor();
    }
  }
  expect(page.url()).toEndWith("#/billing/topUp");
  await page.locator("#operations-billing-topUp .opblock-summary-control").click();
}

/** Event streams are not tried: they would not end. */
async function triesRequests(page: Page): Promise<void> {
  const { ask } = await server.signUp();
  const { key } = (await ask("POST", "/v1/auth/keys", {})).body;
  await page.locator(".btn.authorize").click();
  const dialog = page.locator(".auth-container", { hasText: "X-API-Key" });
  await dialog.locator("input").fill(key);
  await dialog.locator("button.authorize").click();
  await page.locator(".btn-done").first().click();
  const create = page.locator("#operations-instances-createInstance");
  await create.locator(".opblock-summary-control").press("Enter");
  await create.locator(".try-out__btn").click();
  await create.locator(".body-param__text").fill('{ "name": "From the reference" }');
  await create.locator(".execute").click();
  await create.locator(".live-responses-table .response-col_status", { hasText: "201" }).waitFor();
  expect((await ask("GET", "/v1/instances")).body.data).toMatchObject([{ name: "From the reference" }]);
  await create.locator(".opblock-summary-control").click();
  const events = page.locator("#operations-events-streamAgentEvents");
  await events.locator(".opblock-summary-control").click();
  await events.locator(".responses-wrapper").waitFor();
  expect(await events.locator(".try-out__btn").count()).toBe(0);
  await events.locator(".opblock-summary-control").click();
}

/** Light and dark, on a screen and on a phone, with an operation open. */
async function canBeRead(page: Page): Promise<void> {
  for (const [colorScheme, width] of [
    ["light", 1280],
    ["dark", 1280],
    ["light", 390],
  ] as const) {
    await page.emulateMedia({ colorScheme });
    await page.locator(`html${colorScheme === "dark" ? ".dark-mode" : ":not(.dark-mode)"}`).waitFor();
    await page.setViewportSize({ width, height: 900 });
    expect(await faultsOf(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
  }
}

browserTest("a link to an operation opens it, with the name of each of its parameters", async () => {
  await show("/docs#/messages/createAgentMessage", async (page) => {
    const block = page.locator("#operations-messages-createAgentMessage");
    await block.locator(".try-out__btn").click();
    const names = await block.locator(".parameters .parameter__name").allInnerTexts();
    const first = names.map((name) => name.split(/\s/)[0]);
    expect(first).toEqual(["Idempotency-Key", "Prefer", "X-Request-Id", "instanceId", "agentId"]);
  });
});
