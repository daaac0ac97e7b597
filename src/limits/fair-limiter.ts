import { createFairQueue } from "../lib/fair-queue.ts";
import { createSlots } from "./slots.ts";

export interface FairLimiter {
  /** Runs the work when its turn comes. Returns false, and never runs it, if its owner has too many waiting. */
  submit(owner: string, work: () => Promise<void>): boolean;
}

export interface FairLimiterOptions {
  /** Works that run at once. */
  concurrency: number;
  /** Works of one owner that run at once, so that one owner does not take all slots. */
  maxPerOwner: number;
  /** Works of one owner that wait. */
  maxWaiting: number;
}

/**
 * Runs works concurrently, taking the owners in turn: one with a hundred waiting and one with a single work are served
 * alternately. Works must not reject.
 */
export function createFairLimiter({ concurrency, maxPerOwner, maxWaiting }: FairLimiterOptions): FairLimiter {
  // Slots are held briefly, so none is reserved for the next owner.
  const slots = createSlots({ total: concurrency, maxPerOwner, share: Number.POSITIVE_INFINITY });
  const queue = createFairQueue<() => Promise<void>>();

  async function run(owner: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } finally {
      slots.release(owner);
      serve();
    }
  }

  function serve(): void {
    queue.serve((work, owner) => {
      if (slots.acquire(owner) !== "taken") return "skip owner";
      void run(owner, work);
      return "taken";
    });
  }

  return {
    submit(owner, work) {
      if (queue.length(owner) >= maxWaiting) return false;
      queue.add(owner, work);
      serve();
      return true;
    },
  };
}
