export interface FairQueue<T> {
  /** Appends an item to its owner's queue. An item that is already in it keeps its position. */
  add(owner: string, item: T): void;
  /**
   * Offers the first item of each owner in turn. `"taken"` removes it, and the other owners' items come next; `"skip
   * owner"` leaves that owner's items in the queue. Items added meanwhile are offered too; a nested call does nothing.
   */
  serve(accept: (item: T, owner: string) => "taken" | "skip owner"): void;
  /** Takes an item back, if it is still in its owner's queue. */
  remove(owner: string, item: T): void;
  /** How many items of one owner wait. */
  length(owner: string): number;
  isEmpty(): boolean;
}

/** A round-robin queue: owners take turns; items of one owner are first in, first out. */
export function createFairQueue<T>(): FairQueue<T> {
  /** Each owner's items; the owners in the order of their turns. */
  const queues = new Map<string, Set<T>>();
  let serving = false;

  function remove(owner: string, item: T): void {
    const queue = queues.get(owner);
    if (queue?.delete(item) && queue.size === 0) queues.delete(owner);
  }

  function offerAll(accept: (item: T, owner: string) => "taken" | "skip owner"): void {
    const refused = new Set<string>();
    while (refused.size < queues.size) {
      for (const [owner, queue] of [...queues]) {
        const [item] = queue;
        if (item === undefined || refused.has(owner) || !queues.has(owner)) continue;
        const answer = accept(item, owner);
        if (answer === "skip owner") {
          refused.add(owner);
          continue;
        }
        remove(owner, item);
        // This owner goes to the end.
        if (queues.delete(owner)) queues.set(owner, queue);
      }
    }
  }

  return {
    add(owner, item) {
      const queue = queues.get(owner);
      if (queue) queue.add(item);
      else queues.set(owner, new Set([item]));
    },
    serve(accept) {
      if (serving) return;
      serving = true;
      try {
        offerAll(accept);
      } finally {
        serving = false;
      }
    },
    remove,
    length: (owner) => queues.get(owner)?.size ?? 0,
    isEmpty: () => queues.size === 0,
  };
}
