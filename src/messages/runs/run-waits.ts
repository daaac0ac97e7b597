import type { EndedRun } from "./ending.ts";

/** Somebody's wait for the end of a run. */
export interface RunWait {
  ended: Promise<EndedRun>;
  /** Waits no longer: `ended` rejects with this reason, unless the run has ended. */
  leave(reason?: unknown): void;
}

export interface RunWaits {
  add(runId: string): RunWait;
  has(runId: string): boolean;
  tell(runId: string, ended: EndedRun): void;
  /** Of a run whose transaction has failed: it does not end. */
  forget(runId: string): void;
}

export function createRunWaits(): RunWaits {
  const waits = new Map<string, Set<(ended: EndedRun) => void>>();
  return {
    add(runId) {
      const { promise, resolve, reject } = Promise.withResolvers<EndedRun>();
      const own = waits.get(runId) ?? new Set();
      waits.set(runId, own.add(resolve));
      return {
        ended: promise,
        leave(reason) {
          own.delete(resolve);
          if (own.size === 0) waits.delete(runId);
          reject(reason);
        },
      };
    },
    has: (runId) => waits.has(runId),
    tell(runId, ended) {
      for (const resolve of waits.get(runId) ?? []) resolve(ended);
      waits.delete(runId);
    },
    forget: (runId) => void waits.delete(runId),
  };
}
