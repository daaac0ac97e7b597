export interface FairCache<V> {
  get(key: string): V | undefined;
  /** Keeps it for its owner, as the newest. */
  set(owner: string, key: string, value: V): void;
  delete(key: string): void;
  readonly size: number;
}

interface Entry<V> {
  owner: string;
  key: string;
  value: V;
  newer: Entry<V> | null;
  older: Entry<V> | null;
}

/**
 * Remembers `most` things, the longest unused going first, and no more than `mostOfOne` of one owner: who fills it makes
 * room among what is their own, and never throws everybody else out.
 */
export function createFairCache<V>(most: number, mostOfOne: number): FairCache<V> {
  const entries = new Map<string, Entry<V>>();
  /** The keys of each owner, in the order they were set. */
  const owned = new Map<string, Set<string>>();
  // A chain by last use. A Map that is emptied from its front is slow to find its front: 40 µs at 10,000 entries.
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
    const keys = owned.get(entry.owner);
    keys?.delete(entry.key);
    if (keys?.size === 0) owned.delete(entry.owner);
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
      const own = owned.get(owner);
      if (own && own.size >= mostOfOne) remove(own.keys().next().value);
      else if (entries.size >= most) remove(oldest?.key);
      const entry = { owner, key, value, newer: null, older: null };
      entries.set(key, entry);
      linkAsNewest(entry);
      owned.set(owner, (owned.get(owner) ?? new Set()).add(key));
    },
    delete: remove,
    get size() {
      return entries.size;
    },
  };
}
