import type { components } from "./schema.ts";

type Schemas = components["schemas"];

/** The codes of the API, and of what goes wrong before or without an answer of it. */
export type ErrorCode =
  | Schemas["Error"]["error"]["code"]
  /** No answer. */
  | "unreachable"
  /** A stream broke, and could not be continued. */
  | "disconnected"
  /** No answer within the deadline. */
  | "timeout"
  /** The server sent the request elsewhere; it is not followed, since it could carry the credential to another host. */
  | "redirected"
  /** An answer, but not one of Roost's. */
  | "unexpected_answer"
  /** The run was cancelled before it had answered. */
  | "cancelled";

/** What else an error may say: for `payment_required`, what to pay and where. */
export interface ErrorDetails {
  x402?: Schemas["Quote"];
  [name: string]: unknown;
}

/** Why a call failed: the server's error, or why there was none. */
export class RoostError extends Error {
  override readonly name = "RoostError";
  readonly code: ErrorCode;
  /** Of the answer; 0 if there was none. */
  readonly status: number;
  /** Names the request in the host's log. */
  readonly requestId: string | null;
  /** When to try again, if the server says so. */
  readonly retryAfterSeconds: number | null;
  /** The server's address. */
  readonly server: string | null;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, more: Partial<RoostErrorParts> = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.code = code;
    this.status = more.status ?? 0;
    this.requestId = more.requestId ?? null;
    this.retryAfterSeconds = more.retryAfterSeconds ?? null;
    this.server = more.server ?? null;
    this.details = more.details ?? {};
  }
}

interface RoostErrorParts {
  status: number;
  requestId: string | null;
  retryAfterSeconds: number | null;
  server: string;
  details: ErrorDetails;
  cause: unknown;
}

/** The error that an answer of the server is. `text` is its body, `server` what to call the server. */
export function errorOf({ status, headers }: Response, text: string, server: string): RoostError {
  const wait = Number.parseInt(headers.get("retry-after") ?? "", 10);
  const retryAfterSeconds = Number.isNaN(wait) ? null : wait;
  const { error, ...details } = parsed(text);
  const { code, message, requestId = null } = (error ?? {}) as Partial<Schemas["Error"]["error"]>;
  if (typeof code === "string" && typeof message === "string") {
    return new RoostError(code as ErrorCode, message, { status, requestId, retryAfterSeconds, server, details });
  }
  // A reverse proxy answers so while the server is down.
  const isProxy = status >= 502;
  const why = `${server} answered ${status}, not in Roost's format`;
  return new RoostError(isProxy ? "unreachable" : "unexpected_answer", why, { status, retryAfterSeconds, server });
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
