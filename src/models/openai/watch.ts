/**
 * Aborts a request when the caller gives up, or when a single wait for the server exceeds `limitMs`. Only time spent
 * waiting counts: a slow reader is not a silent server.
 */
export interface RequestWatch {
  /** For the request: aborting closes its connection, so that the server stops generating. */
  readonly signal: AbortSignal;
  readonly silent: boolean;
  /** Marks the start of a wait for the server. */
  beginWait(): void;
  endWait(): void;
  limit(ms: number): void;
  abort(reason?: unknown): void;
  close(): void;
}

export function watchRequest(caller: AbortSignal, limitMs: number): RequestWatch {
  const controller = new AbortController();
  let limit = limitMs;
  let waitingSince: number | null = null;
  let silent = false;

  const onAbort = () => controller.abort(caller.reason);
  caller.addEventListener("abort", onAbort, { once: true });

  // One timer for the whole answer, set again if it fires too early: a timer for each chunk would cost more than
  // reading it.
  const check = () => {
    const left = waitingSince === null ? limit : waitingSince + limit - performance.now();
    if (left > 0) {
      timer = setTimeout(check, Math.ceil(left));
    } else {
      silent = true;
      controller.abort();
    }
  };
  let timer = setTimeout(check, limit);

  return {
    signal: controller.signal,
    get silent() {
      return silent;
    },
    beginWait() {
      waitingSince = performance.now();
    },
    endWait() {
      waitingSince = null;
    },
    limit(ms) {
      limit = Math.min(limit, ms);
      clearTimeout(timer);
      timer = setTimeout(check, limit);
    },
    abort(reason) {
      controller.abort(reason);
    },
    close() {
      clearTimeout(timer);
      caller.removeEventListener("abort", onAbort);
    },
  };
}
