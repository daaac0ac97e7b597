/**
 * Which models are loaded: as many as fit into a budget of memory. Where one more does not fit, those that nobody uses are
 * unloaded, the least recently used first; if all are in use, the request waits.
 */
import { createFairQueue } from "../../lib/fair-queue.ts";

/** Something that can be loaded. Another `version` of the same name takes its place. */
export interface Wanted {
  name: string;
  version: string;
  bytes: number;
}

export interface Held<T> {
  value: T;
  /** Call it once the request is done. */
  leave(): void;
}

export interface Places<T> {
  /**
   * Resolves once there is room; owners that wait take turns. The model's `bytes` must not exceed the budget. Throws the
   * signal's reason, and what `open` throws.
   */
  take(wanted: Wanted, owner: string, signal: AbortSignal): Promise<Held<T>>;
  close(): Promise<void>;
}

interface Place<T> extends Wanted {
  value: T;
  users: number;
  usedAt: number;
}

interface Waiting<T> {
  wanted: Wanted;
  signal: AbortSignal;
  resolve(held: Held<T>): void;
  reject(error: unknown): void;
}

export interface PlacesOptions<T> {
  budgetBytes: number;
  open(wanted: Wanted): T;
  /** Whether it takes memory now: what is idle for long ends by itself. */
  isLoaded(value: T): boolean;
  close(value: T): Promise<void>;
}

export function createPlaces<T>({ budgetBytes, open, isLoaded, close }: PlacesOptions<T>): Places<T> {
  const places = new Map<string, Place<T>>();
  const queue = createFairQueue<Waiting<T>>();
  let uses = 0;

  function drop(place: Place<T>): void {
    places.delete(place.name);
    void close(place.value);
  }

  /** Null if there is no room now. */
  function placeFor(wanted: Wanted): Place<T> | null {
    for (const place of [...places.values()]) {
      const isOld = place.name === wanted.name && place.version !== wanted.version;
      if (place.users === 0 && (isOld || !isLoaded(place.value))) drop(place);
    }
    const found = places.get(wanted.name);
    if (found !== undefined) return found.version === wanted.version ? found : null;
    const used = () => [...places.values()].reduce((sum, { bytes }) => sum + bytes, 0);
    while (used() + wanted.bytes > budgetBytes) {
      const idle = [...places.values()].filter(({ users }) => users === 0);
      const victim = idle.reduce<Place<T> | undefined>((a, b) => (a && a.usedAt <= b.usedAt ? a : b), undefined);
      if (victim === undefined) return null;
      drop(victim);
    }
    const place = { ...wanted, value: open(wanted), users: 0, usedAt: 0 };
    places.set(wanted.name, place);
    return place;
  }

  function hold(place: Place<T>): Held<T> {
    place.users++;
    place.usedAt = ++uses;
    let left = false;
    const leave = () => {
      if (left) return;
      left = true;
      place.users--;
      serve();
    };
    return { value: place.value, leave };
  }

  function serve(): void {
    let blocked = false;
    queue.serve(({ wanted, signal, resolve, reject }) => {
      if (signal.aborted) return "taken";
      try {
        // Who waits for room is not overtaken: others could keep the memory in use for ever.
        const place = blocked ? null : placeFor(wanted);
        if (place === null) {
          blocked = true;
          return "skip owner";
        }
        resolve(hold(place));
      } catch (error) {
        // Such as a model that was removed meanwhile: whoever is served here need not be who waits for it.
        reject(error);
      }
      return "taken";
    });
  }

  return {
    take(wanted, owner, signal) {
      signal.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<Held<T>>();
      const onAbort = () => {
        reject(signal.reason);
        serve(); // takes it out of the queue
      };
      signal.addEventListener("abort", onAbort, { once: true });
      queue.add(owner, { wanted, signal, resolve, reject });
      serve();
      return promise.finally(() => signal.removeEventListener("abort", onAbort));
    },
    async close() {
      const all = [...places.values()];
      places.clear();
      await Promise.all(all.map(({ value }) => close(value)));
    },
  };
}
