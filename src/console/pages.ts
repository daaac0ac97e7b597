import type { WebPage } from "../http/server.ts";
import * as api from "./browser/api.ts" with { type: "text" };
import chatStyle from "./browser/chat.css" with { type: "text" };
import * as chat from "./browser/chat.ts" with { type: "text" };
import * as dom from "./browser/dom.ts" with { type: "text" };
import favicon from "./browser/favicon.svg" with { type: "text" };
import * as html from "./browser/index.html" with { type: "text" };
import * as keys from "./browser/keys.ts" with { type: "text" };
import * as nextSteps from "./browser/next-steps.ts" with { type: "text" };
import * as page from "./browser/page.ts" with { type: "text" };
import parts from "./browser/parts.css" with { type: "text" };
import * as run from "./browser/run.ts" with { type: "text" };
import * as signIn from "./browser/sign-in.ts" with { type: "text" };
import style from "./browser/style.css" with { type: "text" };
import * as topUp from "./browser/top-up.ts" with { type: "text" };

/** TypeScript sees a module where Bun, told by `type: "text"`, gives its source. */
const sourceOf = (module: unknown): string => (module as { default: string }).default;

const MODULES = { api, chat, dom, keys, "next-steps": nextSteps, page, run, "sign-in": signIn, "top-up": topUp };

/** Nothing from elsewhere, nothing inline, and no text that could become markup (security.md, HTTP). */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

/** The console: one page, its style and its scripts. It holds no account's data; all of that comes from the API. */
export function consolePages(): WebPage[] {
  return [
    staticPage("/", "text/html", () => sourceOf(html)),
    ...Object.entries({ style, parts, chat: chatStyle }).map(([name, text]) =>
      staticPage(`/console/${name}.css`, "text/css", () => text),
    ),
    staticPage("/favicon.svg", "image/svg+xml", () => favicon),
    ...Object.entries(MODULES).map(([name, module]) =>
      staticPage(`/console/${name}.js`, "text/javascript", () => toJavaScript(sourceOf(module))),
    ),
  ];
}

/** A browser module as the browser takes it. Done on the host, so that the console needs no build of its own. */
function toJavaScript(source: string): string {
  const script = new Bun.Transpiler({ loader: "ts", target: "browser" }).transformSync(source);
  return script.replace(/(\bfrom\s*"\.\/[a-z-]+)\.ts"/g, '$1.js"');
}

function staticPage(path: string, type: string, contentOf: () => string): WebPage {
  let made: { content: string; headers: Record<string, string> } | undefined;
  const make = () => {
    const content = contentOf();
    const headers = {
      "Content-Type": `${type}; charset=utf-8`,
      "Content-Security-Policy": CONTENT_SECURITY_POLICY,
      "X-Content-Type-Options": "nosniff",
      "Referrer-Policy": "no-referrer",
      "Cache-Control": "no-cache",
      ETag: `"${Bun.hash(content).toString(36)}"`,
    };
    return { content, headers };
  };
  return {
    path,
    answer(request) {
      made ??= make();
      const { content, headers } = made;
      const unchanged = request.headers.get("if-none-match") === headers.ETag;
      return unchanged ? new Response(null, { status: 304, headers }) : new Response(content, { headers });
    },
  };
}
