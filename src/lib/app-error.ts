/** Every error code of the API and its HTTP status (docs/contract/api.md, Errors). */
export const STATUS_OF_CODE = {
  invalid_request: 400,
  unauthorized: 401,
  payment_required: 402,
  invite_required: 403,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  precondition_failed: 412,
  payload_too_large: 413,
  rate_limited: 429,
  budget_exceeded: 429,
  internal_error: 500,
  model_error: 502,
  output_invalid: 502,
  loop_detected: 502,
  instance_not_ready: 503,
} as const;

export type ErrorCode = keyof typeof STATUS_OF_CODE;

export interface AppErrorOptions {
  cause?: unknown;
  /** For the log alone: what the message must not reveal. */
  reason?: string;
  /** Overrides the code's status: 410 for an expired cursor, 503 for a full disk. */
  status?: number;
  retryAfterSeconds?: number | undefined;
  headers?: Record<string, string>;
  /** False if the fault is in a header that the `Idempotency-Key` does not cover: the same key may be used again. */
  isKept?: false;
  /** True for what the request's run has failed with: the same key gets it again. */
  isOfRun?: true;
  /** The field or parameter that is wrong. */
  param?: string;
  /** Members beside `error` in the body, such as the `x402` object of a 402. */
  body?: Record<string, unknown>;
}

/** An error whose message may be shown to the caller. `http/` turns it into an answer. */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly isKept: boolean;
  readonly isOfRun: boolean;
  readonly param: string | null;
  readonly reason: string | undefined;
  readonly body: Record<string, unknown>;

  constructor(code: ErrorCode, publicMessage: string, options: AppErrorOptions = {}) {
    super(publicMessage, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "AppError";
    this.code = code;
    this.status = options.status ?? STATUS_OF_CODE[code];
    this.headers = { ...options.headers };
    if (options.retryAfterSeconds !== undefined) {
      this.headers["Retry-After"] = String(Math.max(1, Math.ceil(options.retryAfterSeconds)));
    }
    this.isKept = options.isKept ?? true;
    this.isOfRun = options.isOfRun ?? false;
    this.param = options.param ?? null;
    this.reason = options.reason;
    this.body = options.body ?? {};
  }
}

/** The same answer whether a thing is absent or somebody else's, so that a 404 reveals nothing. */
export const notFound = (what: string): AppError => new AppError("not_found", `${what} not found`);
