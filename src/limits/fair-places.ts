import { createFairQueue } from "../lib/fair-queue.ts";
import { createSlots } from "./slots.ts";

/** Places for work of several owners, who wait for them in turns. */
export interface FairPlaces {
  /**
   * Waits for a place; the returned function gives it back. Null if too many of the owner's wait already. Throws the
   * signal's reason when it aborts first.
   */
  take(owner: string, signal: AbortSignal): Promise<(() => void) | null>;
  inUse(): number;
}

export interface FairPlacesOptions {
  total: number;
  maxPerOwner: number;
  maxWaitingPerOwner: number;
}

/** Slots (slots.ts) that are waited for, in the order of a fair queue. */
export function createFairPlaces({ total, maxPerOwner, maxWaitingPerOwner }: FairPlacesOptions): FairPlaces {
  const slots = createSlots({ total, maxPerOwner });
  const queue = createFairQueue<() => void>();

  const giver = (owner: string) => () => {
    slots.release(owner);
    queue.serve((begin, next) => {
      if (slots.acquire(next) !== "taken") return "skip owner";
      begin();
      return "taken";
    });
  };

  return {
    async take(owner, signal) {
      signal.throwIfAborted();
      if (slots.acquire(owner) === "taken") return giver(owner);
      if (queue.length(owner) >= maxWaitingPerOwner) return null;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const abort = () => {
        queue.remove(owner, resolve);
        reject(signal.reason);
      };
      signal.addEventListener("abort", abort, { once: true });
      queue.add(owner, resolve);
      try {
        await promise;
      } finally {
        signal.removeEventListener("abort", abort);
      }
      return giver(owner);
    },
    inUse: () => slots.inUse(),
  };
}
