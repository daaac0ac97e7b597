import type { FairTurns } from "./fair-turns.ts";

/** To be called within long work: returns what to await before going on, if it has held the thread long enough. */
export type Pause = () => Promise<void> | undefined;

/** How long a slice may hold the thread. */
const SLICE_MS = 1;

/** For work of one owner on the main thread, in slices that count as its time. Nothing may be awaited within a slice. */
export function createPause(turns: Pick<FairTurns, "enter" | "spent">, owner: string): Pause {
  let beganMs = performance.now();
  return () => {
    const tookMs = performance.now() - beganMs;
    if (tookMs < SLICE_MS) return undefined;
    turns.spent(owner, tookMs);
    return goOn();
  };

  async function goOn(): Promise<void> {
    await (turns.enter(owner) ?? new Promise((resolve) => setImmediate(resolve)));
    beganMs = performance.now();
  }
}
