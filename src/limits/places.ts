export interface PlacesOptions {
  /** What there is for everybody together. */
  total: number;
  /** What one owner may hold at most, beside its share. */
  each?: number;
  /** No owner takes more than so many times what it leaves free: whoever comes next finds a place, however few there are. */
  share?: number;
}

export interface Places {
  /**
   * Takes `count` places for an owner. `"each"` where that owner would hold too many, `"total"` where too few are free;
   * then nothing is taken.
   */
  take(owner: string, count?: number, each?: number): "taken" | "each" | "total";
  give(owner: string, count?: number): void;
  /**
   * How many places others would have to give back before this owner could take one: 0 where it can now, infinitely many
   * where it holds as many as one may.
   */
  lacking(owner: string): number;
  /** What is taken, of an owner or of all. */
  held(owner?: string): number;
  readonly total: number;
}

const SHARE = 3;

/**
 * Something of which the host has only so much, such as memory for request bodies: a bound for all, a bound for each, and
 * a share, so that one owner alone can never take the last of it. (Dynamic thresholds, Choudhury and Hahne, 1998.)
 */
export function createPlaces({ total, each: eachDefault = total, share = SHARE }: PlacesOptions): Places {
  const holders = new Map<string, number>();
  let taken = 0;
  return {
    total,
    take(owner, count = 1, each = eachDefault) {
      const own = (holders.get(owner) ?? 0) + count;
      if (own > each) return "each";
      // An owner's first place is refused only where there is none.
      if (taken + count > total || (own > count && own > share * (total - taken - count))) return "total";
      holders.set(owner, own);
      taken += count;
      return "taken";
    },
    give(owner, count = 1) {
      const own = (holders.get(owner) ?? 0) - count;
      if (own > 0) holders.set(owner, own);
      else holders.delete(owner);
      taken -= count;
    },
    lacking(owner) {
      const own = (holders.get(owner) ?? 0) + 1;
      if (own > eachDefault) return Number.POSITIVE_INFINITY;
      const toLeaveFree = own === 1 ? 0 : Math.ceil(own / share);
      return Math.max(0, toLeaveFree - (total - taken - 1));
    },
    held: (owner) => (owner === undefined ? taken : (holders.get(owner) ?? 0)),
  };
}
