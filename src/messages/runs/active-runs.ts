import type { Run } from "../schema.ts";
import { newProgress, type Progress } from "./progress.ts";

/** Runs of one agent that may be in progress; a conversation has one at most (docs/contract/api.md, Conversations). */
export const MAX_RUNS_AT_ONCE = 4;

/** A run that has a place, and so is in progress. */
export interface ActiveRun {
  run: Run;
  progress: Progress;
  /** Whose turn its commits take; found with the first, if it is not known. */
  accountId?: string;
  /** `stalled`: a commit failed, so memory is ahead of the log; the run will be started again from the log. */
  state: "live" | "stalled" | "over";
}

/** `text` is what clients have already been shown of it. */
export const newActive = (run: Run, text = ""): ActiveRun => ({ run, progress: newProgress(run, text), state: "live" });

/** For the log. */
export const idsOf = ({ instanceId, agentId, runId }: Run) => ({ instanceId, agentId, runId });

export interface NextRun {
  run: Run;
  /** Whether another one of the agent's may run beside it. */
  hasMore: boolean;
  /** Whether it is the only one that waits for this agent. */
  isOnly: boolean;
}

type Place = Pick<Run, "agentId" | "conversationId">;

/** The runs in progress, at most one for each conversation. */
export interface ActiveRuns {
  add(one: ActiveRun): void;
  /** Returns false if it is not, or no longer, among them. */
  remove(one: ActiveRun): boolean;
  /** The one in progress in this run's conversation. */
  of(place: Place): ActiveRun | undefined;
  /** The first of an agent's runs in turn whose conversation has none in progress. */
  next(agentId: string, inTurn: (agentId: string) => Run[]): NextRun | undefined;
  /** How many the agent has. */
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
      const room = MAX_RUNS_AT_ONCE - count(agentId);
      if (room <= 0) return undefined;
      const first = new Map<string, Run>();
      let waiting = 0;
      for (const run of inTurn(agentId)) {
        const current = of(run);
        if (current?.run.runId !== run.runId) waiting++;
        if (current === undefined && !first.has(run.conversationId)) first.set(run.conversationId, run);
      }
      // A waiting run keeps its conversation's turn, but takes none of the agent's places.
      const ready = [...first.values()].filter(({ status }) => status !== "waiting");
      // A person's message comes before what is queued for another run: copies may take all places for minutes.
      const run = ready.find(({ status, originType }) => status !== "queued" || originType !== "agent") ?? ready[0];
      return run && { run, hasMore: room > 1 && ready.length > 1, isOnly: waiting === 1 };
    },
    count,
    all: () => [...agents.values()].flatMap((own) => [...own.values()]),
  };
}
