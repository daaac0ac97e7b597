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
export function createFairLanes(limits: FairLaneLimits): FairLanes {
  /** Those with something to wait for, the longest unserved first. */
  const queues = new Map<string, (() => Promise<void>)[]>();
  const running = new Map<string, number>();
  let busy = 0;

  async function run(owner: string, work: () => Promise<void>): Promise<void> {
    busy += 1;
    running.set(owner, (running.get(owner) ?? 0) + 1);
    try {
      await work();
    } finally {
      busy -= 1;
      const left = (running.get(owner) ?? 1) - 1;
      if (left === 0) running.delete(owner);
      else running.set(owner, left);
      serveNext();
    }
  }

  function serveNext(): void {
    for (const [owner, queue] of queues) {
      if (busy >= limits.count) return;
      if ((running.get(owner) ?? 0) >= limits.ofOwner) continue;
      const work = queue.shift();
      queues.delete(owner);
      if (queue.length > 0) queues.set(owner, queue);
      if (work !== undefined) void run(owner, work);
    }
  }

  return {
    enter(owner, work) {
      const queue = queues.get(owner) ?? [];
      if (queue.length >= limits.waiting) return false;
      queue.push(work);
      queues.set(owner, queue);
      serveNext();
      return true;
    },
  };
}
