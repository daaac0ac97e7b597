import type { Run } from "../schema.ts";
import type { NextRun } from "./run-queue.ts";

/** Runs in progress in an agent; in a conversation there is one (docs/contract/api.md, Conversations). */
export const MAX_AT_ONCE = 4;

type Place = Pick<Run, "agentId" | "conversationId">;

/** The runs in progress, one for each conversation at most. */
export interface ActiveRuns<T extends { run: Run }> {
  add(one: T): void;
  /** False where it is not there any more. */
  remove(one: T): boolean;
  /** The one in progress in this run's conversation. */
  of(place: Place): T | undefined;
  /** Of an agent's runs in turn, the first whose conversation has none in progress. */
  next(agentId: string, inTurn: (agentId: string) => Run[]): NextRun | undefined;
  /** Of an agent. */
  count(agentId: string): number;
  all(): T[];
}

export function createActiveRuns<T extends { run: Run }>(): ActiveRuns<T> {
  /** By agent, then by conversation. */
  const agents = new Map<string, Map<string, T>>();
  const of = ({ agentId, conversationId }: Place) => agents.get(agentId)?.get(conversationId);
  const count = (agentId: string) => agents.get(agentId)?.size ?? 0;
  return {
    add(one) {
      const { agentId, conversationId } = one.run;
      const own = agents.get(agentId) ?? new Map<string, T>();
      agents.set(agentId, own.set(conversationId, one));
    },
    remove(one) {
      const { agentId, conversationId } = one.run;
      const own = agents.get(agentId);
      if (own?.get(conversationId) !== one) return false;
      own.delete(conversationId);
      if (own.size === 0) agents.delete(agentId);
      return true;
    },
    of,
    next(agentId, inTurn) {
      const room = MAX_AT_ONCE - count(agentId);
      if (room <= 0) return undefined;
      const first = new Map<string, Run>();
      let waiting = 0;
      for (const run of inTurn(agentId)) {
        const current = of(run);
        if (current?.run.runId !== run.runId) waiting++;
        if (current === undefined && !first.has(run.conversationId)) first.set(run.conversationId, run);
      }
      const [run] = first.values();
      return run && { run, hasMore: room > 1 && first.size > 1, isOnly: waiting === 1 };
    },
    count,
    all: () => [...agents.values()].flatMap((own) => [...own.values()]),
  };
}
