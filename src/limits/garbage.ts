import { fullGC } from "bun:jsc";
import { isOutOfFiles } from "../lib/system-error.ts";

/**
 * Left alone, the collector lets the main thread's heap grow to three times what is in use before it looks at what has
 * survived once: the texts of an agent that writes without end lie there by tens of megabytes. This collects them earlier.
 */
export interface GarbageWatch {
  /** Collects if the heap has grown by more than it may since the last time. Returns whether it did. */
  look(): boolean;
  stop(): void;
}

export interface GarbageOptions {
  /** Bytes of the heap, what is no longer in use included. */
  size?: () => number;
  /** Holds the thread for a millisecond for every two or three MiB in use. */
  collect?: () => void;
  everyMs?: number;
}

const MIB = 1024 * 1024;
/** How much more there may be than was in use when it was last collected. */
const MAX_GROWTH = 32 * MIB;
/** A larger heap is left to the collector, which pauses only briefly, whatever the size. */
const MAX_IN_USE = 64 * MIB;
const EVERY_MS = 250;

/** `heapSize` of "bun:jsc" says nearly the same, but goes through every block of the heap: a millisecond and more under load. */
const heapUsed = (): number => process.memoryUsage().heapUsed;

export function watchGarbage({
  size = heapUsed,
  collect = fullGC,
  everyMs = EVERY_MS,
}: GarbageOptions = {}): GarbageWatch {
  let inUse = Number.POSITIVE_INFINITY;
  function look(): boolean {
    try {
      return collectIfGrown();
    } catch (error) {
      // The size is read from a file. There will be one again.
      if (isOutOfFiles(error)) return false;
      throw error;
    }
  }
  function collectIfGrown(): boolean {
    const before = size();
    inUse = Math.min(inUse, before);
    if (inUse > MAX_IN_USE || before < inUse + MAX_GROWTH) return false;
    collect();
    inUse = size();
    return true;
  }
  const timer = setInterval(look, everyMs);
  timer.unref();
  return { look, stop: () => clearInterval(timer) };
}
