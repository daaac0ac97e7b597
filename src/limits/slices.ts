import { createFairTurns, type FairTurns } from "./fair-turns.ts";

/** Does a short part of long work, now or when its owner's turn has come. What is awaited between parts does not count. */
export type InSlices = <T>(part: () => T) => Promise<T>;

/** How long parts may hold the thread together. */
const SLICE_MS = 1;

/**
 * Turns of what is done in slices, one slice of an account in each. They are not those of agents, who are charged more
 * than the time that they take: beside them, work of many slices would take minutes.
 */
export const createSliceTurns = (): FairTurns => createFairTurns({ maxMs: SLICE_MS });

/** For all that is done for one purpose of one owner: many short parts are as long as one that is cut. */
export function createSlices(
  turns: Pick<FairTurns, "enter" | "spent">,
  owner: string,
  now = () => performance.now(),
): InSlices {
  /** What the slice in progress has taken so far. */
  let tookMs = 0;
  return async (part) => {
    const turn = tookMs === 0 ? turns.enter(owner) : null;
    if (turn) await turn;
    const beganMs = now();
    try {
      return part();
    } finally {
      tookMs += now() - beganMs;
      if (tookMs >= SLICE_MS) {
        turns.spent(owner, tookMs);
        tookMs = 0;
      }
    }
  };
}
