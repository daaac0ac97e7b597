import { expect, test } from "bun:test";
import { consolePages } from "../../src/console/pages.ts";

const pages = consolePages();

async function get(path: string, headers: Record<string, string> = {}): Promise<Response> {
  const page = pages.find((each) => each.path === path);
  if (!page) throw new Error(`no page ${path}`);
  return page.answer(new Request(`http://localhost${path}`, { headers }));
}

test("every page forbids inline script, framing and other origins", async () => {
  for (const { path } of pages) {
    const { headers } = await get(path);
    const policy = headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain("unsafe");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
  }
});

test("a page that the browser has already is not sent again", async () => {
  for (const { path } of pages) {
    const first = await get(path);
    const again = await get(path, { "If-None-Match": first.headers.get("etag") ?? "" });
    expect(again.status).toBe(304);
    expect(await again.text()).toBe("");
  }
});

test("what the page and its scripts ask for is there, and named by no other origin", async () => {
  const known = new Set(pages.map(({ path }) => path));
  for (const { path } of pages) {
    const text = await (await get(path)).text();
    const named = [...text.matchAll(/(?:href|src)="([^"#]+)"|from\s*"\.([^"]+)"/g)];
    for (const [, address, module] of named) {
      if (address === "/docs") continue;
      expect(known).toContain(address ?? `/console${module}`);
    }
  }
});

test("scripts are sent as JavaScript, without types", async () => {
  const scripts = pages.filter(({ path }) => path.endsWith(".js"));
  expect(scripts.length).toBeGreaterThan(0);
  for (const { path } of scripts) {
    const answer = await get(path);
    expect(answer.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    const text = await answer.text();
    expect(new Bun.Transpiler({ loader: "js" }).scan(text).imports.every((each) => each.path.endsWith(".js"))).toBe(
      true,
    );
    expect(text).not.toContain("innerHTML");
  }
});
