import { AppError } from "../lib/app-error.ts";
import { createSlots } from "../limits/slots.ts";
import { declaredLength } from "./request.ts";

/** A request's body, from before the request is checked until it is read. */
export interface IncomingBody {
  /**
   * Reads all of it, once. Throws `payload_too_large` beyond the limit, `invalid_request` if the client left or is too
   * slow.
   */
  bytes(): Promise<Uint8Array>;
  /** Releases the memory reserved for it. */
  close(): void;
}

export interface IncomingBodies {
  /**
   * Reserves memory for a request's body, on behalf of its sender. A body that arrives before it is read takes up
   * memory, so call this before anything that takes time. Throws 503 if too much is being received already.
   */
  open(request: Request, owner: string, limitBytes: number): IncomingBody;
  /** Bytes reserved now. */
  receiving(): number;
}

export interface IncomingBodiesOptions {
  /** Bytes of all bodies together (docs/contract/api.md, Limits). */
  totalBytes?: number;
  /** A body that has not arrived by then is refused. */
  deadlineSeconds?: number;
  /** How often deadlines are checked. */
  checkMs?: number;
  /** Seconds of a monotonic clock. */
  now(): number;
}

const TOTAL_BYTES = 64 * 1024 * 1024;
const DEADLINE_SECONDS = 30;
const CHECK_MS = 1_000;
const EMPTY: IncomingBody = { bytes: async () => new Uint8Array(), close() {} };

export function createIncomingBodies(options: IncomingBodiesOptions): IncomingBodies {
  const { totalBytes = TOTAL_BYTES, deadlineSeconds = DEADLINE_SECONDS, checkMs = CHECK_MS, now } = options;
  const places = createSlots({ total: totalBytes });
  /** The bodies being received and when they began, oldest first. */
  const receiving = new Map<{ expire(): void }, number>();
  let timer: Timer | undefined;

  function look(): void {
    const since = now() - deadlineSeconds;
    for (const [body, began] of receiving) {
      if (began > since) break;
      body.expire();
    }
    if (receiving.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  }

  return {
    receiving: () => places.inUse(),
    open(request, owner, limitBytes) {
      const declared = declaredLength(request);
      if (declared === null && request.headers.get("transfer-encoding") === null) return EMPTY;
      // Not a byte of it is read: the runtime discards it.
      if (declared !== null && declared > limitBytes) return refusedBody(tooLarge(limitBytes));
      const reserved = declared ?? limitBytes;
      if (reserved > 0 && places.acquire(owner, reserved) !== "taken") throw busy();

      const late = Promise.withResolvers<never>();
      late.promise.catch(() => {}); // only a reader handles it
      const body = { expire: () => late.reject(tooSlow(deadlineSeconds)) };
      receiving.set(body, now());
      timer ??= setInterval(look, checkMs).unref();
      // Without a length it must be counted as it arrives.
      const counted = declared === null ? receive(request, limitBytes) : undefined;
      counted?.catch(() => {});
      const close = () => {
        if (!receiving.delete(body)) return;
        places.release(owner, reserved);
        // Whatever awaits a pending promise stays in memory, here with all received chunks.
        late.reject(tooSlow(deadlineSeconds));
      };
      return {
        async bytes() {
          try {
            return await Promise.race([counted ?? request.bytes(), late.promise]);
          } catch (cause) {
            if (cause instanceof AppError || !request.signal.aborted) throw cause;
            // Nobody sees this answer; it keeps a broken connection from being logged as a server error.
            throw new AppError("invalid_request", "body: expected all of it", { cause });
          } finally {
            close();
          }
        },
        close,
      };
    },
  };
}

/** A body that has arrived. It is released when read, since the answer may take long. */
export function receivedBody(bytes: Uint8Array): IncomingBody {
  let unread: Uint8Array | null = bytes;
  return {
    async bytes() {
      if (unread === null) throw new Error("a request's body can be read only once");
      const whole = unread;
      unread = null;
      return whole;
    },
    close() {},
  };
}

const refusedBody = (error: AppError): IncomingBody => ({
  bytes: async () => {
    throw error;
  },
  close() {},
});

async function receive(request: Request, limitBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.byteLength;
    if (size > limitBytes) throw tooLarge(limitBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

const tooLarge = (limitBytes: number) =>
  new AppError("payload_too_large", `body: expected at most ${limitBytes} bytes`);

const tooSlow = (seconds: number) =>
  new AppError("invalid_request", `body: expected all of it within ${seconds} seconds`, {
    status: 408,
    headers: { Connection: "close" },
    isKept: false,
  });

const busy = () =>
  new AppError("internal_error", "this host is receiving too much data at once; try again in a moment", {
    status: 503,
    retryAfterSeconds: 1,
    isKept: false,
  });
