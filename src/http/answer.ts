import { AppError } from "../lib/app-error.ts";
import { declaredLength } from "./request.ts";

/** An answer with a status other than 200 or the route's own. */
export class Reply {
  constructor(
    readonly status: number,
    readonly value: unknown,
    readonly headers: Record<string, string> = {},
  ) {}
}

const JSON_TYPE = "application/json; charset=utf-8";

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
  return new AppError(
    "internal_error",
    "something went wrong on this host; its log has the details under this request id",
    {
      cause: thrown,
    },
  );
}

function isDiskFull(thrown: unknown): boolean {
  const code = thrown instanceof Error && "code" in thrown ? thrown.code : undefined;
  return (
    code === "SQLITE_FULL" ||
    code === "ENOSPC" ||
    code === "EDQUOT" ||
    code === "EFBIG" ||
    code === "SQLITE_IOERR_WRITE"
  );
}

/** The error envelope (docs/contract/api.md, Errors), or RFC 9457 problem details if the client asks for them. */
export function errorAnswer(error: AppError, requestId: string, accept: string | null): Response {
  const { code, message, status } = error;
  if (accept?.includes("application/problem+json")) {
    const problem = {
      type: `urn:roost:error:${code}`,
      title: code,
      status,
      detail: message,
      code,
      requestId,
      ...error.body,
    };
    const headers = { ...error.headers, "Content-Type": "application/problem+json; charset=utf-8" };
    return jsonAnswer(status, JSON.stringify(problem), requestId, headers);
  }
  const body = JSON.stringify({ error: { code, message, status, requestId }, ...error.body });
  return jsonAnswer(status, body, requestId, error.headers);
}

/**
 * The answer to a refused request. Delays a 429 for a moment, since a program that retries at once would cost the
 * others as much as one that is served. Requests with a body are not delayed: the body would arrive meanwhile and take
 * up memory.
 */
export async function refusalAnswer(error: AppError, request: Request, requestId: string): Promise<Response> {
  if (error.code === "rate_limited" && isSmall(request)) await Bun.sleep(REFUSAL_DELAY_MS);
  return errorAnswer(error, requestId, request.headers.get("accept"));
}

const REFUSAL_DELAY_MS = 20;
const SMALL_BYTES = 1024;

const isSmall = (request: Request): boolean =>
  (declaredLength(request) ?? 0) <= SMALL_BYTES && request.headers.get("transfer-encoding") === null;
