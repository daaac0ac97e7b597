/** How long a kind of work may hold one turn of the event loop: what is beyond it leaves others their turn first. */
export interface TurnTime {
  isLeft(): boolean;
  /** Does the work, and counts the time that it took. */
  spend<T>(work: () => T): T;
}

export function createTurnTime(mostMs: number): TurnTime {
  let spentMs = 0;
  let counting = false;
  return {
    isLeft: () => spentMs < mostMs,
    spend(work) {
      const began = performance.now();
      try {
        return work();
      } finally {
        spentMs += performance.now() - began;
        if (!counting) {
          counting = true;
          setImmediate(() => {
            counting = false;
            spentMs = 0;
          });
        }
      }
    },
  };
}
