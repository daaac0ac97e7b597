import { createHmac, timingSafeEqual } from "node:crypto";
import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import type { Store } from "../storage/store.ts";
import { idempotencyQueries } from "./queries.ts";
import type { IdempotentRequest } from "./schema.ts";

const KEPT_MS = 24 * 60 * 60 * 1000;
const KEY = /^[\x21-\x7e]{1,255}$/;

/** What is kept for an account (api.md section 1, Limits): the oldest answers go first. */
const MOST_ANSWERS = 10_000;
/** An answer that is longer is read anew. */
const MOST_BYTES = 64 * 1024;
const PRUNED_AT_ONCE = 100;

/** The answer of an operation, as it is to be told again. */
export interface KeptAnswer {
  status: number;
  body: string;
  /** The run that tells the answer, where one does. */
  runId?: string | undefined;
  /** The path parameters of the GET that reads the record anew, where one does. */
  record?: Record<string, string> | undefined;
}

/** One request under a key: what to do with its answer. */
export interface Attempt {
  /** Stores the answer; call it in the transaction of the operation. */
  save(answer: KeptAnswer): void;
  /** True once `save` ran. */
  saved(): boolean;
  end(): void;
}

export type Judgement = { kind: "first"; attempt: Attempt } | { kind: "replay"; stored: IdempotentRequest };

/** A request under a key; another one in any of these is another request. */
export interface Asked {
  method: string;
  /** With its query. */
  path: string;
  /** The instance that the caller's key is limited to, where the path does not name it. */
  limitedTo: string | null;
  body: Uint8Array;
}

/** What is wrong with a key; null for a good one. */
export const keyRefusal = (key: string): AppError | null =>
  KEY.test(key) ? null : new AppError("invalid_request", "Idempotency-Key: expected 1 to 255 visible ASCII characters");

export interface Idempotency {
  /**
   * Judges a request that carries `Idempotency-Key` (api.md section 1): the first goes on, a repetition gets the stored
   * answer. Throws `conflict` for another request under the same key, and while the first is still running.
   */
  begin(accountId: string, key: string, asked: Asked): Judgement;
  /** Removes what is a day old, in slices that leave room for requests. */
  prune(): Promise<void>;
}

/**
 * `secret` is the key of the HMAC by which requests are compared. It lies outside the database: a body may hold a secret
 * of few digits, and whoever has a plain hash of it needs less than a second for all of them.
 */
export function createIdempotency(store: Store, clock: Clock, secret: Buffer): Idempotency {
  const queries = idempotencyQueries(store.db);
  // One entry for each request that is being answered, taken out when its answer is made: bounded by the requests that
  // the host admits at once.
  const running = new Map<string, Buffer>();
  const otherRequest = () => new AppError("conflict", "Idempotency-Key: this key was used for another request");
  const isSame = (one: Buffer, other: Buffer) => one.byteLength === other.byteLength && timingSafeEqual(one, other);

  return {
    begin(accountId, key, { method, path, limitedTo, body }) {
      const place = `${accountId} ${key}`;
      const request = JSON.stringify([accountId, key, limitedTo, method, path]);
      const requestMac = createHmac("sha256", secret).update(`${request}\n`).update(body).digest();
      const current = running.get(place);
      if (current) {
        if (!isSame(current, requestMac)) throw otherRequest();
        throw new AppError("conflict", "Idempotency-Key: the first request with this key is still running", {
          retryAfterSeconds: 1,
        });
      }
      const stored = queries.find(accountId, key);
      if (stored && stored.createdAt > clock.now() - KEPT_MS) {
        if (!isSame(stored.requestMac, requestMac)) throw otherRequest();
        return { kind: "replay", stored };
      }
      running.set(place, requestMac);
      let saved = false;
      return {
        kind: "first",
        attempt: {
          save({ status, body, runId = null, record = null }) {
            const kept = Buffer.byteLength(body) > MOST_BYTES ? { body: null, record } : { body, record: null };
            const row = { accountId, key, requestMac, status, ...kept, runId, createdAt: clock.now() };
            store.transaction(() => queries.save(row, MOST_ANSWERS));
            saved = true;
          },
          saved: () => saved,
          end: () => running.delete(place),
        },
      };
    },
    async prune() {
      const slice = () => queries.prune(clock.now() - KEPT_MS, PRUNED_AT_ONCE);
      while ((await store.commitSoon(slice, "process")) === PRUNED_AT_ONCE);
    },
  };
}
