import { Elysia } from "elysia";
import { AppError } from "../lib/app-error.ts";
import { type ErrorForm, refusalAnswer, toAppError } from "./answer.ts";
import type { ServingParts } from "./exchange.ts";
import { requestIdOf } from "./request.ts";
import type { Route } from "./route.ts";
import { serveRoute } from "./serve-route.ts";

export interface WebPage {
  path: string;
  /** Not rate-limited, so that monitoring always gets an answer. */
  unlimited?: true;
  /** One that may be large has a `Content-Length`: it counts as several requests. */
  answer(request: Request): Response | Promise<Response>;
}

/**
 * The HTTP server as one `fetch`: the API's routes, other pages, and the error envelope for everything else. The
 * framework leaves bodies unread, so that a handler authenticates a request before reading it.
 */
export function createFetch(
  routes: readonly Route[],
  pages: readonly WebPage[],
  parts: ServingParts,
): (request: Request) => Response | Promise<Response> {
  // Short host names, such as `app` in a container network, would otherwise be taken for part of the path.
  const app = new Elysia({ strictPath: true, normalize: false, handler: { standardHostname: false } });
  const methodsOf = new Map<string, string[]>();
  const known = (path: string, method: string) => methodsOf.set(path, [...(methodsOf.get(path) ?? []), method]);
  const formOf = new Map(routes.map(({ path, errorForm }) => [path, errorForm]));

  for (const route of routes) {
    known(route.path, route.method);
    app.route(route.method, route.path, ({ request, params }) => serveRoute(route, parts, request, decoded(params)), {
      parse: "none",
    });
  }
  for (const page of pages) {
    known(page.path, "GET");
    app.route("GET", page.path, ({ request }) => pageAnswer(page, parts, request), { parse: "none" });
  }
  for (const [path, methods] of methodsOf) {
    const allow = methods.includes("GET") ? [...methods, "HEAD"] : methods;
    const error = new AppError("method_not_allowed", `expected one of ${allow.join(", ")}`, {
      headers: { Allow: allow.join(", ") },
    });
    const form = formOf.get(path);
    app.route("ALL", path, ({ request }) => unknownAnswer(parts, request, error, form), { parse: "none" });
  }
  app.onError(({ request, error, code }) =>
    code === "NOT_FOUND"
      ? unknownAnswer(parts, request, new AppError("not_found", "no such path"))
      : failedAnswer(parts, request, "unknown", error),
  );
  const answer = app.compile().fetch;
  return (request) => (request.method === "HEAD" ? withoutFalseLength(answer(request)) : answer(request));
}

/** The framework answers every HEAD with a length: with 0 also where GET sends a stream, or where nothing has changed. */
async function withoutFalseLength(answering: Response | Promise<Response>): Promise<Response> {
  const answer = await answering;
  if (answer.status === 304 || answer.headers.has("transfer-encoding")) answer.headers.delete("content-length");
  return answer;
}

/** The router returns nothing for a path without parameters, and null for one with invalid percent-encoding. */
const decoded = (params: Record<string, string | null> = {}): Record<string, string> => {
  for (const name in params) params[name] ??= "";
  return params as Record<string, string>;
};

async function pageAnswer(page: WebPage, parts: ServingParts, request: Request): Promise<Response> {
  try {
    if (!page.unlimited) await parts.admission.anybody(request);
    const answer = await page.answer(request);
    answer.headers.set("X-Request-Id", requestIdOf(request));
    parts.admission.chargePage(request, Number(answer.headers.get("content-length") ?? 0));
    return answer;
  } catch (thrown) {
    return failedAnswer(parts, request, page.path, thrown);
  }
}

/** Requests for unknown paths count against their address too. */
async function unknownAnswer(
  parts: ServingParts,
  request: Request,
  error: AppError,
  form?: ErrorForm,
): Promise<Response> {
  try {
    await parts.admission.anybody(request);
    throw error;
  } catch (thrown) {
    return failedAnswer(parts, request, "unknown", thrown, form);
  }
}

/** `path` is the page's, or `unknown`. */
function failedAnswer(
  parts: ServingParts,
  request: Request,
  path: string,
  thrown: unknown,
  form?: ErrorForm,
): Promise<Response> {
  const requestId = requestIdOf(request);
  const error = toAppError(thrown);
  if (error.cause !== undefined) parts.onPageFailure({ requestId, method: request.method, path }, error);
  return refusalAnswer(error, request, requestId, form);
}
