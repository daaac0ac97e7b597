import { pathAndQueryOf } from "../http/request.ts";
import type { WebPage } from "../http/server.ts";
import { AppError } from "../lib/app-error.ts";
import type { ConsoleFile } from "./bundle.ts";

/** Nothing from other origins, nothing inline, and no text turned into markup (docs/contract/security.md, HTTP). */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const SECURITY_HEADERS = {
  "Content-Security-Policy": CONTENT_SECURITY_POLICY,
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
};
const FOR_A_YEAR = "public, max-age=31536000, immutable";

export interface ConsoleFacts {
  /** Whether sign-in codes are mailed: the console says where to look for them. */
  mailed: boolean;
}

/** The console: one page, its style sheet and script. It contains no account's data: that comes from the API. */
export function consolePages({ mailed }: ConsoleFacts): WebPage[] {
  let loading: Promise<Map<string, ConsoleFile>> | undefined;
  const answer = async (request: Request): Promise<Response> => {
    loading ??= loadFiles();
    const file = (await loading).get(pathAndQueryOf(request).split("?")[0] ?? "");
    if (!file) throw new AppError("not_found", "no such path");
    return fileAnswer(file, request);
  };
  return [
    { path: "/", answer },
    { path: "/favicon.svg", answer },
    { path: "/console/host.json", answer: () => Response.json({ mailed }, { headers: SECURITY_HEADERS }) },
    { path: "/console/:file", answer },
  ];
}

/** The build embeds them in the binary; from source, they are bundled now. */
async function loadFiles(): Promise<Map<string, ConsoleFile>> {
  const files = import.meta.path.includes("$bunfs")
    ? (await import("console:files")).default
    : await (await import("./bundle.ts")).bundleConsole();
  return new Map(files.map((file) => [file.path, file]));
}

function fileAnswer(file: ConsoleFile, request: Request): Response {
  const encoding = encodingFor(request.headers.get("accept-encoding") ?? "");
  const headers: Record<string, string> = {
    ...SECURITY_HEADERS,
    "Content-Type": `${file.type}; charset=utf-8`,
    "Cache-Control": file.lasts ? FOR_A_YEAR : "no-cache",
    Vary: "Accept-Encoding",
    ETag: `"${file.etag}-${encoding}"`,
  };
  if (request.headers.get("if-none-match") === headers.ETag) return new Response(null, { status: 304, headers });
  if (encoding !== "plain") headers["Content-Encoding"] = encoding;
  const content = Buffer.from(file[encoding], "base64");
  return new Response(content, { headers: { ...headers, "Content-Length": `${content.byteLength}` } });
}

/** Browsers accept `br` only over TLS or from their own machine, `gzip` from anywhere. */
function encodingFor(accepted: string): "br" | "gzip" | "plain" {
  const names = accepted.split(",").map((part) => part.trim());
  return names.includes("br") ? "br" : names.includes("gzip") ? "gzip" : "plain";
}
