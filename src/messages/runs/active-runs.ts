import type { Run } from "../schema.ts";
import { newProgress, type Progress } from "./progress.ts";

/** Runs in progress in an agent; in a conversation there is one (docs/contract/api.md, Conversations). */
export const MAX_AT_ONCE = 4;

/** A run that has a place. */
export interface ActiveRun {
  run: Run;
  progress: Progress;
  /** `stalled`: a commit failed, and memory is ahead of the log; the run is to be started again from there. */
  state: "live" | "stalled" | "over";
}

/** `text` is what is shown of it already. */
export const newActive = (run: Run, text = ""): ActiveRun => ({ run, progress: newProgress(run, text), state: "live" });

export interface NextRun {
  run: Run;
  /** Whether another one of the agent's may run beside it. */
  hasMore: boolean;
  /** Whether it is the only one that waits for this agent. */
  isOnly: boolean;
}

type Place = Pick<Run, "agentId" | "conversationId">;

/** The runs in progress, one for each conversation at most. */
export interface ActiveRuns {
  add(one: ActiveRun): void;
  /** Returns false if it is not there (any longer). */
  remove(one: ActiveRun): boolean;
  /** The one in progress in this run's conversation. */
  of(place: Place): ActiveRun | undefined;
  /** Of an agent's runs in turn, the first whose conversation has none in progress. */
  next(agentId: string, inTurn: (agentId: string) => Run[]): NextRun | undefined;
  /** Of an agent. */
  count(agentId: string): number;
  all(): ActiveRun[];
}

export function createActiveRuns(): ActiveRuns {
  /** By agent, then by conversation. */
  const agents = new Map<string, Map<string, ActiveRun>>();
  const of = ({ agentId, conversationId }: Place) => agents.get(agentId)?.get(conversationId);
  const count = (agentId: string) => agents.get(agentId)?.size ?? 0;
  return {
    add(one) {
      const { agentId, conversationId } = one.run;
      const own = agents.get(agentId) ?? new Map<string, ActiveRun>();
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
      // One that waits keeps its conversation's turn, but takes none of the agent's places.
      const ready = [...first.values()].filter(({ status }) => status !== "waiting");
      const [run] = ready;
      return run && { run, hasMore: room > 1 && ready.length > 1, isOnly: waiting === 1 };
    },
    count,
    all: () => [...agents.values()].flatMap((own) => [...own.values()]),
  };
}
