import type { EndedRun } from "../messages/runs/ending.ts";
import type { Runs } from "../messages/runs/runs.ts";
import { isUnfinished, waitsForPerson } from "../messages/schema.ts";

/** A run as a model is told of it. */
export interface RunView {
  runId: string;
  conversationId: string;
  status: string;
  answer: string | null;
  approvalId: string | null;
  error: { code: string; message: string } | null;
}

export interface RunViews {
  /** Throws `not_found`. */
  of(agentId: string, runId: string): Promise<RunView>;
  /** Resolves once the run has ended, waits for a person, or the signal has fired. Throws `not_found`. */
  settled(agentId: string, runId: string, signal: AbortSignal): Promise<void>;
}

export function createRunViews(runs: Pick<Runs, "get" | "waitFor" | "listen">): RunViews {
  /** Those who want to know when a run waits for a person. */
  const waiting = new Map<string, Set<() => void>>();
  runs.listen({
    waiting(run) {
      if (!waitsForPerson(run)) return;
      for (const tell of waiting.get(run.runId) ?? []) tell();
    },
  });
  return {
    async of(agentId, runId) {
      const run = runs.get(agentId, runId);
      const ended: EndedRun | null = isUnfinished(run) ? null : await runs.waitFor(runId).ended;
      const now = ended?.run ?? run;
      const { conversationId, status, waitingId, errorCode, errorMessage } = now;
      return {
        ...{ runId, conversationId, status },
        answer: ended?.reply?.message ?? null,
        approvalId: waitsForPerson(now) ? waitingId : null,
        error: errorCode === null ? null : { code: errorCode, message: errorMessage ?? "" },
      };
    },
    async settled(agentId, runId, signal) {
      // It may wait already: then nobody will tell of it.
      if (signal.aborted || waitsForPerson(runs.get(agentId, runId))) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const done = () => resolve();
      const end = runs.waitFor(runId);
      const own = waiting.get(runId) ?? new Set();
      waiting.set(runId, own.add(done));
      signal.addEventListener("abort", done, { once: true });
      end.ended.then(done, done);
      await promise;
      end.leave();
      own.delete(done);
      if (own.size === 0) waiting.delete(runId);
    },
  };
}
