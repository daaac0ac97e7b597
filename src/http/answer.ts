import { namesType } from "../lib/accept.ts";
import { AppError } from "../lib/app-error.ts";
import { isDiskFull, isOutOfFiles } from "../lib/system-error.ts";
import { declaredLength } from "./request.ts";

/** An answer with a status other than 200 or the route's own. */
export class Reply {
  constructor(
    readonly status: number,
    readonly value: unknown,
    readonly headers: Record<string, string> = {},
  ) {}
}

/** As the API's description names it: generated clients compare all of it. JSON is UTF-8 without saying so (RFC 8259, 8.1). */
const JSON_TYPE = "application/json";

/** Of an event stream. A proxy that buffers or compresses it would hold back what is sent. */
export const STREAM_HEADERS = {
  "Content-Type": "text/event-stream; charset=utf-8",
  "Cache-Control": "no-store, no-transform",
  "X-Accel-Buffering": "no",
};

/** The answer to HEAD where GET sends a stream: its length is unknown. */
export const streamHead = (headers: Record<string, string>): Response =>
  new Response(null, { headers: { ...headers, "Transfer-Encoding": "chunked" } });

export function jsonAnswer(
  status: number,
  body: string,
  requestId: string,
  headers?: Record<string, string>,
): Response {
  return new Response(body, {
    status,
    headers: { "Content-Type": JSON_TYPE, "Cache-Control": "no-store", "X-Request-Id": requestId, ...headers },
  });
}

/** Whoever asked has left: nobody gets this. */
export const clientLeft = () => new AppError("invalid_request", "the client has left", { status: 499 });

/** Turns anything thrown into an `AppError`. Unexpected errors reveal nothing to the caller. */
export function toAppError(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown;
  if (isDiskFull(thrown)) {
    return new AppError("internal_error", "the host's disk is full: nothing was changed; try again later", {
      cause: thrown,
      status: 503,
      retryAfterSeconds: 60,
    });
  }
  if (isOutOfFiles(thrown)) {
    return new AppError("internal_error", "the host has too many files and connections open; try again in a moment", {
      cause: thrown,
      status: 503,
      retryAfterSeconds: 5,
    });
  }
  return new AppError(
    "internal_error",
    "something went wrong on this host; its log has the details under this request id",
    {
      cause: thrown,
    },
  );
}

/** How the errors of a route look: as OpenAI's for its clients, which find Roost's members beside them. */
export type ErrorForm = "openai";

/** The error envelope (docs/contract/api.md, Errors), or RFC 9457 problem details if the client asks for them. */
export function errorAnswer(error: AppError, requestId: string, accept: string | null, form?: ErrorForm): Response {
  const { code, message, status } = error;
  if (namesType(accept, "application/problem+json")) {
    const problem = {
      type: `urn:roost:error:${code}`,
      title: code,
      status,
      detail: message,
      code,
      requestId,
      ...error.body,
    };
    const headers = { ...error.headers, "Content-Type": "application/problem+json" };
    return jsonAnswer(status, JSON.stringify(problem), requestId, headers);
  }
  const envelope = form === "openai" ? openAiError(error, requestId) : { code, message, status, requestId };
  const body = JSON.stringify({ error: envelope, ...error.body });
  // OpenAI's clients repeat what failed; a model's failure has been repeated here already, and a limit holds for hours.
  const final =
    form === "openai" && (status === 502 || code === "budget_exceeded") ? { "X-Should-Retry": "false" } : {};
  return jsonAnswer(status, body, requestId, { ...error.headers, ...final });
}

/** An error's envelope for OpenAI's clients (docs/contract/api.md, OpenAI-compatible surface). */
export const openAiError = ({ code, message, status, param }: AppError, requestId: string) => ({
  message,
  type:
    OPENAI_TYPES_OF_CODES[code] ?? OPENAI_TYPES[status] ?? (status < 500 ? "invalid_request_error" : "server_error"),
  param,
  code,
  status,
  requestId,
});

const OPENAI_TYPES_OF_CODES: Readonly<Record<string, string>> = { budget_exceeded: "insufficient_quota" };
const OPENAI_TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  429: "rate_limit_error",
};

/**
 * The answer to a refused request. Delays a 429 for a moment, since a program that retries at once would cost the
 * others as much as one that is served. Requests with a body are not delayed: the body would arrive meanwhile and take
 * up memory.
 */
export async function refusalAnswer(
  error: AppError,
  request: Request,
  requestId: string,
  form?: ErrorForm,
): Promise<Response> {
  if (error.code === "rate_limited" && isSmall(request)) await Bun.sleep(REFUSAL_DELAY_MS);
  return errorAnswer(error, requestId, request.headers.get("accept"), form);
}

const REFUSAL_DELAY_MS = 20;
const SMALL_BYTES = 1024;

const isSmall = (request: Request): boolean =>
  (declaredLength(request) ?? 0) <= SMALL_BYTES && request.headers.get("transfer-encoding") === null;
