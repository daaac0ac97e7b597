import { createHash } from "node:crypto";
import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import type { Store } from "../storage/store.ts";
import { type IdempotentRequest, idempotencyTable } from "./table.ts";

const KEPT_MS = 24 * 60 * 60 * 1000;
const KEY = /^[\x21-\x7e]{1,255}$/;

/** One request under a key: what to do with its answer. */
export interface Attempt {
  /** Stores the answer; call it in the transaction of the operation. */
  save(answer: { status: number; body: string; runId?: string }): void;
  /** True once `save` ran. */
  saved(): boolean;
  end(): void;
}

export type Judgement = { kind: "first"; attempt: Attempt } | { kind: "replay"; stored: IdempotentRequest };

/** What is wrong with a key; null for a good one. */
export const keyRefusal = (key: string): AppError | null =>
  KEY.test(key) ? null : new AppError("invalid_request", "Idempotency-Key: expected 1 to 255 visible ASCII characters");

export interface Idempotency {
  /**
   * Judges a request that carries `Idempotency-Key` (api.md section 1): the first goes on, a repetition gets the stored
   * answer. Throws `conflict` for another request under the same key, and while the first is still running.
   */
  begin(accountId: string, key: string, request: { method: string; path: string; body: Uint8Array }): Judgement;
  prune(): void;
}

export function createIdempotency(store: Store, clock: Clock): Idempotency {
  const table = idempotencyTable(store.db);
  const running = new Map<string, Buffer>();
  const otherRequest = () => new AppError("conflict", "Idempotency-Key: this key was used for another request");

  return {
    begin(accountId, key, request) {
      const hash = createHash("sha256").update(`${request.method} ${request.path}\n`).update(request.body).digest();
      const place = `${accountId} ${key}`;
      const current = running.get(place);
      if (current) {
        if (!current.equals(hash)) throw otherRequest();
        throw new AppError("conflict", "Idempotency-Key: the first request with this key is still running", {
          retryAfterSeconds: 1,
        });
      }
      const stored = table.find(accountId, key);
      if (stored && stored.createdAt > clock.now() - KEPT_MS) {
        if (!stored.requestHash.equals(hash)) throw otherRequest();
        return { kind: "replay", stored };
      }
      running.set(place, hash);
      let saved = false;
      return {
        kind: "first",
        attempt: {
          save({ status, body, runId }) {
            const createdAt = clock.now();
            store.transaction(() =>
              table.save({ accountId, key, requestHash: hash, status, body, runId: runId ?? null, createdAt }),
            );
            saved = true;
          },
          saved: () => saved,
          end: () => running.delete(place),
        },
      };
    },
    prune: () => store.transaction(() => table.prune(clock.now() - KEPT_MS)),
  };
}
