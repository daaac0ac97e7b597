import { pathAndQueryOf } from "./request.ts";

type Answer = (request: Request) => Response | Promise<Response>;

/** What pages may read besides the body. */
const SHOWN = [
  ...["X-Request-Id", "Retry-After", "ETag", "Allow", "WWW-Authenticate", "Location"],
  ...["Idempotent-Replayed", "Content-Disposition", "X-Should-Retry", "Last-Event-ID", "Preference-Applied"],
  ...["PAYMENT-REQUIRED", "PAYMENT-RESPONSE", "X-PAYMENT-RESPONSE"],
].join(", ");
const METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE";
/** Browsers ask once in this time, for each path and method. */
const ASKED_AGAIN_SECONDS = "600";

/**
 * Lets pages of these origins call `/v1` (docs/contract/api.md, Conventions). There are no cookies, so a page can do no more
 * than the credential that it sends. Nothing is changed for other origins, nor where there are none to allow.
 */
export function allowOrigins(origins: readonly string[], answer: Answer): Answer {
  if (origins.length === 0) return answer;
  const allowed = new Set(origins);
  return async (request) => {
    const origin = request.headers.get("origin");
    if (origin === null || !allowed.has(origin) || !isOfApi(request)) return answer(request);
    const headers = { "Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": SHOWN, Vary: "Origin" };
    if (isPreflight(request))
      return new Response(null, { status: 204, headers: { ...headers, ...whatIsAsked(request) } });
    const given = await answer(request);
    for (const [name, value] of Object.entries(headers)) given.headers.set(name, value);
    return given;
  };
}

const isOfApi = (request: Request): boolean => pathAndQueryOf(request).startsWith("/v1/");

const isPreflight = (request: Request): boolean =>
  request.method === "OPTIONS" && request.headers.has("access-control-request-method");

/** All headers that the page wants to send: clients have many of their own, and ours are no secret. */
const whatIsAsked = (request: Request): Record<string, string> => ({
  "Access-Control-Allow-Methods": METHODS,
  "Access-Control-Allow-Headers": request.headers.get("access-control-request-headers") ?? "",
  "Access-Control-Max-Age": ASKED_AGAIN_SECONDS,
});
