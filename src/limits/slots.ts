export interface SlotOptions {
  /** Slots of all owners together. */
  total: number;
  /** The most that one owner may hold. */
  maxPerOwner?: number;
  /** No owner may hold more than so many times what it leaves free, so that the next one always finds a slot. */
  share?: number;
}

export interface Slots {
  /**
   * Takes `count` slots for an owner; or nothing, and returns `"each"` if that owner would hold too many, `"total"` if
   * too few are free.
   */
  acquire(owner: string, count?: number, max?: number): "taken" | "each" | "total";
  release(owner: string, count?: number): void;
  /**
   * How many slots others would have to release before this owner could take one; 0 if it can now, infinity if it holds
   * as many as it may.
   */
  shortfall(owner: string): number;
  /** Slots held by an owner, or by all. */
  inUse(owner?: string): number;
  readonly total: number;
}

const SHARE = 3;

/**
 * A fair semaphore, for something the host has only so much of, such as memory for request bodies: besides the two
 * bounds, each owner's share is limited, so that one owner alone can never take the last slot. (Dynamic thresholds,
 * Choudhury and Hahne, 1998.)
 */
export function createSlots({ total, maxPerOwner = total, share = SHARE }: SlotOptions): Slots {
  const holders = new Map<string, number>();
  let taken = 0;
  return {
    total,
    acquire(owner, count = 1, max = maxPerOwner) {
      const own = (holders.get(owner) ?? 0) + count;
      if (own > max) return "each";
      // An owner's first slot is refused only if none is free.
      if (taken + count > total || (own > count && own > share * (total - taken - count))) return "total";
      holders.set(owner, own);
      taken += count;
      return "taken";
    },
    release(owner, count = 1) {
      const own = (holders.get(owner) ?? 0) - count;
      if (own > 0) holders.set(owner, own);
      else holders.delete(owner);
      taken -= count;
    },
    shortfall(owner) {
      const own = (holders.get(owner) ?? 0) + 1;
      if (own > maxPerOwner) return Number.POSITIVE_INFINITY;
      const toLeaveFree = own === 1 ? 0 : Math.ceil(own / share);
      return Math.max(0, toLeaveFree - (total - taken - 1));
    },
    inUse: (owner) => (owner === undefined ? taken : (holders.get(owner) ?? 0)),
  };
}
