import { createWaitingLine } from "./waiting-line.ts";

/**
 * Everybody's requests are answered on one thread. What one account asks at once may take a share of a turn of its event
 * loop; the rest of it waits for the next turns, and whoever else asks meanwhile is answered before.
 */
export interface TurnShares {
  /** Null where the owner may go on at once; else resolves in a later turn, in the order of asking. */
  enter(owner: string): Promise<void> | null;
  /** Does the work, and counts the time that it takes. */
  spend<T>(owner: string, work: () => T): T;
}

export interface TurnShareParts {
  /** Of one owner in one turn, in milliseconds. What is begun is finished. */
  mostMs: number;
  now?(): number;
  nextTurn?(then: () => void): void;
}

export function createTurnShares({
  mostMs,
  now = () => performance.now(),
  nextTurn = setImmediate,
}: TurnShareParts): TurnShares {
  /** In this turn. */
  const spentMs = new Map<string, number>();
  /** Of each owner that has spent or waits: the time that its latest work took. */
  const latestMs = new Map<string, number>();
  const line = createWaitingLine<() => void>();
  let counting = false;

  function count(): void {
    if (counting) return;
    counting = true;
    nextTurn(begin);
  }

  function begin(): void {
    counting = false;
    spentMs.clear();
    for (const owner of latestMs.keys()) if (line.length(owner) === 0) latestMs.delete(owner);
    serve();
    if (!line.isEmpty()) count();
  }

  /** As many of each owner as seem to fit into its share: what they take is known only when they are done. */
  function serve(): void {
    const left = new Map<string, number>();
    line.serve((go, owner) => {
      const leftMs = left.get(owner) ?? mostMs;
      if (leftMs <= 0) return "not this owner";
      left.set(owner, leftMs - (latestMs.get(owner) ?? mostMs));
      go();
      return "taken";
    });
  }

  return {
    enter(owner) {
      if (line.length(owner) === 0 && (spentMs.get(owner) ?? 0) < mostMs) return null;
      const { promise, resolve } = Promise.withResolvers<void>();
      line.add(owner, resolve);
      count();
      return promise;
    },
    spend(owner, work) {
      const began = now();
      try {
        return work();
      } finally {
        const took = now() - began;
        spentMs.set(owner, (spentMs.get(owner) ?? 0) + took);
        latestMs.set(owner, took);
        count();
      }
    },
  };
}
