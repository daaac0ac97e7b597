import { createPlaces } from "./places.ts";
import { createWaitingLine } from "./waiting-line.ts";

/** Works of many, of which each has a share. */
export interface FairLanes {
  /** Does the work when its turn comes; false, at once and without doing it, where its owner has too many waiting. */
  enter(owner: string, work: () => Promise<void>): boolean;
}

export interface FairLaneLimits {
  /** Works that run at once, of all. */
  count: number;
  /** Of one owner, so that a lane is free while few have much to do. */
  ofOwner: number;
  /** Works of one owner that wait. */
  waiting: number;
}

/**
 * Lets works run side by side, the owners in turn: who has a hundred waiting and who has one are served alternately.
 * Works must not reject.
 */
export function createFairLanes({ count, ofOwner, waiting }: FairLaneLimits): FairLanes {
  // A lane is soon free again: none is kept free for who comes next.
  const lanes = createPlaces({ total: count, each: ofOwner, share: Number.POSITIVE_INFINITY });
  const line = createWaitingLine<() => Promise<void>>();

  async function run(owner: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } finally {
      lanes.give(owner);
      serve();
    }
  }

  function serve(): void {
    line.serve((work, owner) => {
      if (lanes.take(owner) !== "taken") return "not this owner";
      void run(owner, work);
      return "taken";
    });
  }

  return {
    enter(owner, work) {
      if (line.length(owner) >= waiting) return false;
      line.add(owner, work);
      serve();
      return true;
    },
  };
}
