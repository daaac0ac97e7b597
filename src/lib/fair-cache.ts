export interface FairCache<V> {
  get(key: string): V | undefined;
  /** Adds or replaces an entry as its owner's newest. One that is more than an owner may have is not kept. */
  set(owner: string, key: string, value: V): void;
  delete(key: string): void;
  readonly size: number;
}

interface Entry<V> {
  owner: string;
  key: string;
  value: V;
  weight: number;
  newer: Entry<V> | null;
  older: Entry<V> | null;
}

/**
 * An LRU cache of at most `max` entries, and `maxPerOwner` of one owner, or of what they weigh together: an owner that
 * fills it evicts its own entries, not everybody else's.
 */
export function createFairCache<V>(max: number, maxPerOwner: number, weigh = (_value: V): number => 1): FairCache<V> {
  const entries = new Map<string, Entry<V>>();
  /** The keys of each owner, in the order they were set, and their weight. */
  const owned = new Map<string, { keys: Set<string>; weight: number }>();
  let total = 0;
  // A linked list by last use: a Map from whose front entries were deleted takes 40 µs to find its front at 10,000
  // entries.
  let newest: Entry<V> | null = null;
  let oldest: Entry<V> | null = null;

  function unlink({ newer, older }: Entry<V>): void {
    if (newer) newer.older = older;
    else newest = older;
    if (older) older.newer = newer;
    else oldest = newer;
  }

  function linkAsNewest(entry: Entry<V>): void {
    entry.newer = null;
    entry.older = newest;
    if (newest) newest.newer = entry;
    newest = entry;
    oldest ??= entry;
  }

  function remove(key: string | undefined): void {
    const entry = key === undefined ? undefined : entries.get(key);
    if (!entry) return;
    unlink(entry);
    entries.delete(entry.key);
    total -= entry.weight;
    const own = owned.get(entry.owner);
    if (!own) return;
    own.keys.delete(entry.key);
    own.weight -= entry.weight;
    if (own.keys.size === 0) owned.delete(entry.owner);
  }

  return {
    get(key) {
      const entry = entries.get(key);
      if (!entry) return undefined;
      if (entry !== newest) {
        unlink(entry);
        linkAsNewest(entry);
      }
      return entry.value;
    },
    set(owner, key, value) {
      remove(key);
      const weight = weigh(value);
      if (weight > maxPerOwner) return;
      const own = owned.get(owner) ?? { keys: new Set(), weight: 0 };
      while (own.weight + weight > maxPerOwner) remove(own.keys.values().next().value);
      while (total + weight > max) remove(oldest?.key);
      const entry = { owner, key, value, weight, newer: null, older: null };
      entries.set(key, entry);
      linkAsNewest(entry);
      total += weight;
      own.keys.add(key);
      own.weight += weight;
      owned.set(owner, own);
    },
    delete: remove,
    get size() {
      return entries.size;
    },
  };
}
