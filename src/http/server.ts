import { Elysia } from "elysia";
import { AppError } from "../lib/app-error.ts";
import type { Admission } from "./admission.ts";
import { refusalAnswer, toAppError } from "./answer.ts";
import type { ServingParts } from "./exchange.ts";
import { requestIdOf } from "./request.ts";
import type { Route } from "./route.ts";
import { serveRoute } from "./serve-route.ts";

export interface WebPage {
  path: string;
  /** Answered however often it is asked for: what watches the host must never be kept out. */
  unlimited?: true;
  answer(request: Request): Response | Promise<Response>;
}

/**
 * The whole of HTTP as one `fetch`: the API's routes, the pages beside it, and the envelope for everything else.
 * Bodies are left unread by the framework, so that a handler judges who asks before what is asked.
 */
export function createFetch(
  routes: readonly Route[],
  pages: readonly WebPage[],
  parts: ServingParts,
): (request: Request) => Response | Promise<Response> {
  // A host name may be short, as `app` is in a container's network: the framework takes it for part of the path unless told.
  const app = new Elysia({ strictPath: true, normalize: false, handler: { standardHostname: false } });
  const methodsOf = new Map<string, string[]>();
  const known = (path: string, method: string) => methodsOf.set(path, [...(methodsOf.get(path) ?? []), method]);

  for (const route of routes) {
    known(route.path, route.method);
    app.route(route.method, route.path, ({ request, params }) => serveRoute(route, parts, request, decoded(params)), {
      parse: "none",
    });
  }
  for (const page of pages) {
    known(page.path, "GET");
    app.route("GET", page.path, ({ request }) => pageAnswer(page, parts.admission, request), { parse: "none" });
  }
  for (const [path, methods] of methodsOf) {
    const allow = methods.includes("GET") ? [...methods, "HEAD"] : methods;
    const error = new AppError("method_not_allowed", `expected one of ${allow.join(", ")}`, {
      headers: { Allow: allow.join(", ") },
    });
    app.route("ALL", path, ({ request }) => unknownAnswer(parts.admission, request, error), { parse: "none" });
  }
  app.onError(({ request, error, code }) =>
    code === "NOT_FOUND"
      ? unknownAnswer(parts.admission, request, new AppError("not_found", "no such path"))
      : plainError(request, toAppError(error)),
  );
  return app.compile().fetch;
}

/** The router gives nothing for a path without parts, and null for a part that is no percent-encoding: a malformed id. */
const decoded = (params: Record<string, string | null> = {}): Record<string, string> => {
  for (const name in params) params[name] ??= "";
  return params as Record<string, string>;
};

async function pageAnswer(page: WebPage, admission: Admission, request: Request): Promise<Response> {
  try {
    if (!page.unlimited) await admission.anybody(request);
    const answer = await page.answer(request);
    answer.headers.set("X-Request-Id", requestIdOf(request));
    return answer;
  } catch (thrown) {
    return plainError(request, toAppError(thrown));
  }
}

/** An address that asks for what is not there is counted as any other. */
async function unknownAnswer(admission: Admission, request: Request, error: AppError): Promise<Response> {
  try {
    await admission.anybody(request);
    return await plainError(request, error);
  } catch (thrown) {
    return plainError(request, toAppError(thrown));
  }
}

const plainError = (request: Request, error: AppError): Promise<Response> =>
  refusalAnswer(error, request, requestIdOf(request));
