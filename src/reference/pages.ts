import type { WebPage } from "../http/server.ts";
import { lazily } from "../lib/lazily.ts";
import style from "./browser/reference.css" with { type: "text" };
import * as html from "./browser/reference.html" with { type: "text" };
import * as script from "./browser/reference.ts" with { type: "text" };
import { readViewerFile, type ViewerFile } from "./viewer-files.ts";

/** TypeScript sees a module, but with `type: "text"` Bun imports its source. */
const sourceOf = (module: unknown): string => (module as { default: string }).default;

/** Nothing from other origins and nothing inline. The viewer turns text into markup, so it cannot use trusted types. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The API reference at /docs: `/openapi.json` shown by Swagger UI. It works offline. */
export function referencePages(): WebPage[] {
  const viewer = (path: string, type: string, ...names: ViewerFile[]) =>
    staticPage(path, type, async () => {
      const files = await Promise.all(names.map(readViewerFile));
      // Concatenated gzip files are a valid gzip file.
      return Buffer.concat(files);
    });
  const own = (path: string, type: string, text: () => string) =>
    staticPage(path, type, async () => Bun.gzipSync(Buffer.from(text())));
  const toJavaScript = () => new Bun.Transpiler({ loader: "ts", target: "browser" }).transformSync(sourceOf(script));
  return [
    own("/docs", "text/html", () => sourceOf(html)),
    own("/docs/reference.css", "text/css", () => style),
    own("/docs/reference.js", "text/javascript", toJavaScript),
    viewer("/docs/swagger-ui.css", "text/css", "style"),
    viewer("/docs/swagger-ui.js", "text/javascript", "script"),
    viewer("/docs/licenses.txt", "text/plain", "notice", "license", "bundledLicenses"),
  ];
}

interface Made {
  gzipped: Uint8Array<ArrayBuffer>;
  /** Unpacked for the first client that accepts no gzip: strangers must not have that done again and again. */
  plain: () => Uint8Array<ArrayBuffer>;
  headers: Record<string, string>;
}

/** Generated at the first request; stored gzipped. */
function staticPage(path: string, type: string, gzippedContent: () => Promise<Uint8Array<ArrayBuffer>>): WebPage {
  let made: Promise<Made> | undefined;
  async function make(): Promise<Made> {
    const gzipped = await gzippedContent();
    const headers = {
      "Content-Type": `${type}; charset=utf-8`,
      "Content-Security-Policy": CONTENT_SECURITY_POLICY,
      "X-Content-Type-Options": "nosniff",
      "Referrer-Policy": "no-referrer",
      "Cache-Control": "no-cache",
      Vary: "Accept-Encoding",
      ETag: `"${Bun.hash(gzipped).toString(36)}"`,
    };
    return { gzipped, plain: lazily(() => Bun.gunzipSync(gzipped)), headers };
  }
  return {
    path,
    async answer(request) {
      made ??= make().catch((error: unknown) => {
        made = undefined;
        throw error;
      });
      const { gzipped, plain, headers } = await made;
      if (request.headers.get("if-none-match") === headers.ETag) return new Response(null, { status: 304, headers });
      const isGzipped = takesGzip(request);
      const content = isGzipped ? gzipped : plain();
      const encoding = isGzipped ? { "Content-Encoding": "gzip" } : {};
      return new Response(content, { headers: { ...headers, ...encoding, "Content-Length": `${content.byteLength}` } });
    },
  };
}

const takesGzip = (request: Request): boolean =>
  /\bgzip\b(?!\s*;\s*q=0(\.0+)?\s*(,|$))/.test(request.headers.get("accept-encoding") ?? "");
