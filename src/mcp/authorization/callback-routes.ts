import { createHash } from "node:crypto";
import { pathAndQueryOf } from "../../http/request.ts";
import type { WebPage } from "../../http/server.ts";
import type { Ending, Returned } from "./authorization.ts";
import { CALLBACK_PATH, CLIENT_PATH, clientDocument } from "./client-metadata.ts";
import type { OwnedServer } from "./credentials.ts";

export interface CallbackParts {
  /** Completes the authorization, and looks at the server anew. */
  complete(returned: Returned): Promise<Ending>;
  /** Whom the page names as the one that now has access. */
  namesOf(server: OwnedServer): { instance: string; email: string };
  /** Turns off the idle timeout of a request's connection: other hosts are asked meanwhile. */
  keepOpen(request: Request): void;
}

/** Longer than any of ours. */
const MAX_STATE = 100;
/** As long as authorization servers make them; they are sent on, once. */
const MAX_CODE = 4_096;
const MAX_ISSUER = 2_048;

const STYLE =
  "body{font:1.1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:4rem auto;padding:0 1rem;color-scheme:light dark}";
const HEADERS = {
  "Content-Type": "text/html; charset=utf-8",
  "Content-Security-Policy": [
    "default-src 'none'",
    `style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`,
    // The icon of the tab.
    "img-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
  "X-Content-Type-Options": "nosniff",
  // The address holds a code and a state: neither is for anybody else.
  "Referrer-Policy": "no-referrer",
  "Cache-Control": "no-store",
};

/**
 * Where authorization servers send browsers back to. Such a request has no credential: its state is what it may do, once
 * (docs/contract/security.md, Authorization of MCP servers). The page says in fixed words what happened; nothing of the request is on it.
 */
export function callbackPage({ complete, namesOf, keepOpen }: CallbackParts): WebPage {
  return {
    path: CALLBACK_PATH,
    async answer(request) {
      // A picture, a frame or a script of another page, and a program that only looks, are not a person who comes back.
      const destination = request.headers.get("sec-fetch-dest") ?? "document";
      const returned = request.method === "GET" && destination === "document" ? returnedIn(request) : null;
      if (returned === null) return page(400, UNKNOWN);
      keepOpen(request);
      return pageOf(await complete(returned), namesOf);
    },
  };
}

/** Who the host is, for authorization servers that do not register clients. */
export const clientPage = (publicUrl: () => string): WebPage => ({
  path: CLIENT_PATH,
  answer: () => Response.json(clientDocument(publicUrl()), { headers: { "Cache-Control": "public, max-age=3600" } }),
});

/** Null for what no authorization server sends. */
function returnedIn(request: Request): Returned | null {
  const query = pathAndQueryOf(request).split("?")[1] ?? "";
  const values = new URLSearchParams(query);
  const one = (name: string, most: number): string | undefined | null => {
    const [first, ...more] = values.getAll(name);
    return more.length > 0 || (first?.length ?? 0) > most ? null : first || undefined;
  };
  const state = one("state", MAX_STATE);
  const code = one("code", MAX_CODE);
  const iss = one("iss", MAX_ISSUER);
  if (typeof state !== "string" || code === null || iss === null) return null;
  return { state, code: values.has("error") ? undefined : code, iss };
}

interface Text {
  title: string;
  paragraphs: string[];
}

const CLOSE = "You can close this window.";
const UNKNOWN: Text = {
  title: "Nothing was authorized",
  paragraphs: [
    "This address was used before, or it is too late for it: it counts once, for ten minutes. If you were authorizing an MCP server, begin again in Roost.",
    CLOSE,
  ],
};

function pageOf(ending: Ending, namesOf: CallbackParts["namesOf"]): Response {
  switch (ending.outcome) {
    case "authorized": {
      const { name, url } = ending.server;
      const { instance, email } = namesOf(ending.server);
      return page(200, {
        title: "Authorized",
        paragraphs: [
          `The agents of the instance “${instance}” can now use the MCP server “${name}” (${new URL(url).host}) as you.`,
          `They belong to ${email}. If that is not you, somebody else has sent you here: take this access back at that service now.`,
          CLOSE,
        ],
      });
    }
    case "denied":
      return page(200, {
        title: "Not authorized",
        paragraphs: ["The access was denied: nothing was changed. To give it after all, begin again in Roost.", CLOSE],
      });
    case "failed":
      return page(502, {
        title: "Not authorized",
        paragraphs: [
          "The authorization did not succeed: nothing was changed. Why is shown with the MCP server in Roost, where you can begin again.",
          CLOSE,
        ],
      });
    case "unknown":
      return page(400, UNKNOWN);
  }
}

function page(status: number, { title, paragraphs }: Text): Response {
  const body = paragraphs.map((text) => `<p>${escaped(text)}</p>`).join("\n");
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)} – Roost</title>
<link rel="icon" href="/favicon.svg" type="image/svg+xml">
<style>${STYLE}</style>
<main>
<h1>${escaped(title)}</h1>
${body}
</main>
</html>
`;
  return new Response(html, { status, headers: HEADERS });
}

const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
