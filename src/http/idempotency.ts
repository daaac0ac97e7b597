import { createHmac, timingSafeEqual } from "node:crypto";
import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import type { Store } from "../storage/store.ts";
import { idempotencyQueries } from "./queries.ts";
import type { IdempotentRequest } from "./schema.ts";

const KEEP_MS = 24 * 60 * 60 * 1000;
const KEY = /^[\x21-\x7e]{1,255}$/;

const MAC_BYTES = 32;
const NO_PAYMENT = Buffer.alloc(MAC_BYTES);

/** Answers kept per account (docs/contract/api.md, Limits); the oldest are dropped first. */
const MAX_ANSWERS = 10_000;
/** A longer answer is not stored, but read again from its record. */
const MAX_BYTES = 64 * 1024;

/** The answer of an operation, as it will be repeated. */
export interface KeptAnswer {
  status: number;
  body: string;
  /** The run whose result is the answer, if any. */
  runId?: string | undefined;
  /** What the path of the GET that reads the record again has besides the request's own parameters, if there is one. */
  record?: Record<string, string> | undefined;
}

/** A first request with a key. */
export interface Attempt {
  /** Stores the answer. Call it in the transaction of the operation. */
  save(answer: KeptAnswer): void;
  /** True once `save` ran. */
  saved(): boolean;
  end(): void;
}

export type Begun = { kind: "first"; attempt: Attempt } | { kind: "replay"; stored: IdempotentRequest };

/** What identifies a request: a repetition must agree in all of these. */
export interface Asked {
  method: string;
  /** With its query. */
  path: string;
  /** The instance that the caller's key is limited to, unless the path names it. */
  limitedTo: string | null;
  body: Uint8Array;
  /** Its header with a payment, if there is one: a repetition may leave it out, but not bring another. */
  payment: string | null;
}

/** The error for an invalid key; null for a valid one. */
export const keyRefusal = (key: string): AppError | null =>
  KEY.test(key) ? null : new AppError("invalid_request", "Idempotency-Key: expected 1 to 255 visible ASCII characters");

export interface Idempotency {
  /**
   * Begins a request with an `Idempotency-Key` (docs/contract/api.md, Repeating a request): the first one proceeds, a
   * repetition gets the stored answer. Throws `conflict` for a different request with the same key, and while the first
   * is still running.
   */
  begin(accountId: string, key: string, asked: Asked): Begun;
  /** Removes at most `limit` answers older than a day. Returns whether there may be more. Call it in a transaction. */
  prune(limit: number): boolean;
}

/**
 * `secret` is the key of the HMAC by which requests are compared, kept outside the database: a body may contain a short
 * secret, which a plain hash would reveal to guessing within a second.
 */
export function createIdempotency(store: Store, clock: Clock, secret: Buffer): Idempotency {
  const queries = idempotencyQueries(store.db);
  // One entry for each request in progress: bounded by the requests that the host admits at once.
  const running = new Map<string, Buffer>();
  const otherRequest = () => new AppError("conflict", "Idempotency-Key: this key was used for another request");
  const macOf = (text: string) => createHmac("sha256", secret).update(text);
  const isEqual = (one: Buffer, other: Buffer) => one.byteLength === other.byteLength && timingSafeEqual(one, other);
  /** Of what was stored before payments were compared, only the request is there. */
  const isRepetition = (first: Buffer, again: Buffer) =>
    isEqual(first.subarray(0, MAC_BYTES), again.subarray(0, MAC_BYTES)) &&
    (first.byteLength === MAC_BYTES || NO_PAYMENT.equals(again.subarray(MAC_BYTES)) || isEqual(first, again));

  return {
    begin(accountId, key, { method, path, limitedTo, body, payment }) {
      const place = `${accountId} ${key}`;
      const request = JSON.stringify([accountId, key, limitedTo, method, path]);
      const paymentMac = payment === null ? NO_PAYMENT : macOf(`${request}\n${payment}`).digest();
      const requestMac = Buffer.concat([macOf(`${request}\n`).update(body).digest(), paymentMac]);
      const current = running.get(place);
      if (current) {
        if (!isRepetition(current, requestMac)) throw otherRequest();
        throw new AppError("conflict", "Idempotency-Key: the first request with this key is still running", {
          retryAfterSeconds: 1,
        });
      }
      const stored = queries.find(accountId, key);
      if (stored && stored.createdAt > clock.now() - KEEP_MS) {
        if (!isRepetition(stored.requestMac, requestMac)) throw otherRequest();
        return { kind: "replay", stored };
      }
      running.set(place, requestMac);
      let saved = false;
      return {
        kind: "first",
        attempt: {
          save({ status, body, runId = null, record = null }) {
            const kept = Buffer.byteLength(body) > MAX_BYTES ? { body: null, record } : { body, record: null };
            const row = { accountId, key, requestMac, status, ...kept, runId, createdAt: clock.now() };
            store.transaction(() => queries.save(row, MAX_ANSWERS));
            saved = true;
          },
          saved: () => saved,
          end: () => running.delete(place),
        },
      };
    },
    prune: (limit) => queries.prune(clock.now() - KEEP_MS, limit) === limit,
  };
}
