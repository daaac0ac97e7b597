import { expect, test } from "bun:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { bundleConsole } from "../../src/console/bundle.ts";
import { consolePages } from "../../src/console/pages.ts";

const files = await bundleConsole();
const paths = files.map(({ path }) => path);
const pages = consolePages({ mailed: false });

async function get(path: string, headers: Record<string, string> = {}): Promise<Response> {
  const page = pages.find((each) => each.path === path) ?? pages.find((each) => each.path === "/console/:file");
  if (!page) throw new Error(`no page ${path}`);
  return page.answer(new Request(`http://localhost${path}`, { headers }));
}

const addressesIn = (html: string): string[] =>
  [...html.matchAll(/(?:href|src)="([^"#]+)"/g)].map(([, address = ""]) => address);

test("every page forbids inline script, framing and other origins", async () => {
  for (const path of [...paths, "/console/host.json"]) {
    const { headers } = await get(path);
    const policy = headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain("unsafe");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
  }
});

test("each is the same in every encoding, and small in the one that browsers use", async () => {
  for (const path of paths) {
    const plain = Buffer.from(await (await get(path)).arrayBuffer());
    for (const [accepted, encoding, unpack] of [
      ["gzip, deflate", "gzip", gunzipSync],
      ["gzip, deflate, br, zstd", "br", brotliDecompressSync],
    ] as const) {
      const answer = await get(path, { "Accept-Encoding": accepted });
      expect([answer.headers.get("content-encoding"), answer.headers.get("vary")]).toEqual([
        encoding,
        "Accept-Encoding",
      ]);
      expect(unpack(Buffer.from(await answer.arrayBuffer())).equals(plain)).toBe(true);
    }
  }
});

test("what the page loads at first is small, and so is all of it", async () => {
  const loaded = addressesIn(await (await get("/")).text());
  const sizeOf = async (some: string[]) => {
    const sent = await Promise.all(some.map(async (path) => (await get(path, { "Accept-Encoding": "br" })).bytes()));
    return sent.reduce((sum, { byteLength }) => sum + byteLength, 0);
  };
  expect(await sizeOf(paths.filter((path) => path === "/" || loaded.includes(path)))).toBeLessThan(64 * 1024);
  expect(await sizeOf(paths)).toBeLessThan(75 * 1024);
});

test("files named for their contents are cached; the page itself is only sent again if it has changed", async () => {
  for (const { path, lasts } of files) {
    const first = await get(path);
    expect(first.headers.get("cache-control")).toBe(lasts ? "public, max-age=31536000, immutable" : "no-cache");
    const again = await get(path, { "If-None-Match": first.headers.get("etag") ?? "" });
    expect([again.status, await again.text()]).toEqual([304, ""]);
  }
  // The page's script and style, and the scripts of schedules and settings.
  expect(paths.filter((path) => path.startsWith("/console/"))).toHaveLength(4);
});

test("everything that the page loads exists, on this origin", async () => {
  for (const address of addressesIn(await (await get("/")).text())) expect([...paths, "/docs"]).toContain(address);
});

test("no script turns text into markup", async () => {
  for (const { type, plain } of files) {
    if (type === "text/javascript") expect(Buffer.from(plain, "base64").toString()).not.toContain("innerHTML");
  }
});

test("an unknown file is not found", async () => {
  await expect(get("/console/page-older.js")).rejects.toMatchObject({ code: "not_found" });
});
