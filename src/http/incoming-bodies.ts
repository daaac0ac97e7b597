import { AppError } from "../lib/app-error.ts";
import { createSlots } from "../limits/slots.ts";
import { declaredLength } from "./request.ts";

/** A request's body, while its request is judged and until it is read. */
export interface IncomingBody {
  /** All of it, once. Throws `payload_too_large` beyond the limit, `invalid_request` for a client that left or is too slow. */
  bytes(): Promise<Uint8Array>;
  /** Gives back what was kept free for it. */
  close(): void;
}

export interface IncomingBodies {
  /**
   * Keeps room free for what the request brings, in the name of who sends it. What arrives before anybody reads it lies in
   * memory, so this comes before everything that takes time. Throws 503 where too much is being received already.
   */
  open(request: Request, owner: string, limitBytes: number): IncomingBody;
  /** Bytes that are kept free now. */
  receiving(): number;
}

export interface IncomingBodiesOptions {
  /** Of all bodies together (api.md section 1, Limits). */
  totalBytes?: number;
  /** A body that has not come after this never comes. */
  deadlineSeconds?: number;
  /** How often it is looked for those. */
  lookMs?: number;
  /** Seconds of a clock that never steps. */
  now(): number;
}

const TOTAL_BYTES = 64 * 1024 * 1024;
const DEADLINE_SECONDS = 30;
const LOOK_MS = 1_000;
const EMPTY: IncomingBody = { bytes: async () => new Uint8Array(), close() {} };

export function createIncomingBodies(options: IncomingBodiesOptions): IncomingBodies {
  const { totalBytes = TOTAL_BYTES, deadlineSeconds = DEADLINE_SECONDS, lookMs = LOOK_MS, now } = options;
  const places = createSlots({ total: totalBytes });
  /** Those that are being received, the oldest first, and when they began. */
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
      // Not one byte of it is read: the runtime drops what comes.
      if (declared !== null && declared > limitBytes) return refusedBody(tooLarge(limitBytes));
      const reserved = declared ?? limitBytes;
      if (reserved > 0 && places.acquire(owner, reserved) !== "taken") throw busy();

      const late = Promise.withResolvers<never>();
      late.promise.catch(() => {}); // heard only by who reads
      const body = { expire: () => late.reject(tooSlow(deadlineSeconds)) };
      receiving.set(body, now());
      timer ??= setInterval(look, lookMs).unref();
      // Without a length it must be counted as it comes, whoever else is still being asked.
      const counted = declared === null ? receive(request, limitBytes) : undefined;
      counted?.catch(() => {});
      const close = () => {
        if (!receiving.delete(body)) return;
        places.release(owner, reserved);
        // What waits for a promise lies in memory as long as that is open, and with it here all that was received.
        late.reject(tooSlow(deadlineSeconds));
      };
      return {
        async bytes() {
          try {
            return await Promise.race([counted ?? request.bytes(), late.promise]);
          } catch (cause) {
            if (cause instanceof AppError || !request.signal.aborted) throw cause;
            // Nobody hears this; it keeps a broken connection from being logged as a fault of the host.
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

/** One that is here already. Whoever answers may take long: from its reading on it is nowhere kept. */
export function receivedBody(bytes: Uint8Array): IncomingBody {
  let unread: Uint8Array | null = bytes;
  return {
    async bytes() {
      if (unread === null) throw new Error("a request's body is read once");
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
  new AppError("internal_error", "this host is receiving as much as it can hold; try again in a moment", {
    status: 503,
    retryAfterSeconds: 1,
    isKept: false,
  });
