/** How long a kind of work may hold one turn of the event loop; the rest of it should wait for the next turn. */
export interface TurnBudget {
  hasTime(): boolean;
  /** Runs `work`, counting its time. */
  spend<T>(work: () => T): T;
}

export function createTurnBudget(maxMs: number): TurnBudget {
  let spentMs = 0;
  let counting = false;
  return {
    hasTime: () => spentMs < maxMs,
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
