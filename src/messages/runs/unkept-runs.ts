import type { Agent } from "../../agents/schema.ts";
import type { Instance } from "../../instances/schema.ts";
import type { Clock } from "../../lib/clock.ts";
import { newId } from "../../lib/id.ts";
import type { Log } from "../../lib/log.ts";
import type { Host } from "../../runtime/host.ts";
import type { HostedRun } from "../../runtime/hosted-run.ts";
import type { TurnOutline } from "../../runtime/prompt-room.ts";
import type { LoopEvent, LoopOutcome, RunInput } from "../../runtime/protocol.ts";
import type { CallLog } from "../../usage/call-log.ts";
import type { Run } from "../schema.ts";
import { type ActiveRun, type ActiveRuns, idsOf, newActive } from "./active-runs.ts";
import { BROKEN } from "./ending.ts";
import { NEW_RUN } from "./new-runs.ts";
import type { RunQueue } from "./run-queue.ts";

/** What an agent is asked by a caller that keeps the conversation itself. */
export interface Asked {
  /** Oldest first. */
  turns: TurnOutline[];
  /** Whether a stranger may have written a part of them. */
  isTainted: boolean;
  extras: Pick<RunInput, "functions" | "instructions" | "limits">;
}

/** Receives what happens in an unkept run; `ended` is the last event, and comes exactly once. */
export type UnkeptListener = (event: LoopEvent | Begun | { type: "tainted" }) => void;
type Begun = { type: "queued"; runId: string } | { type: "started"; model: string };

/**
 * Runs whose conversation their caller keeps (docs/contract/api.md, OpenAI-compatible surface). They take turns and places
 * like all others, but are written nowhere and end with the host, and nobody can be asked in them.
 */
export interface UnkeptRuns {
  /** Queues one. Returns how to cancel it: its `ended` then comes at once, unless it has come. */
  queue(instance: Instance, agent: Agent, asked: Asked, listener: UnkeptListener): () => void;
  /** The agent's unfinished runs, the kept ones and these, in the order in which they came. */
  among(agentId: string, kept: Run[]): Run[];
  /** Starts one that has a place. Undefined if the run is none of these, false if its instance is not running. */
  start(run: Run): boolean | undefined;
  /** Cancels those of an agent, or of all the instance's agents. */
  cancelOf(whose: { instanceId: string } | { agentId: string }): void;
}

export interface UnkeptRunParts {
  clock: Clock;
  log: Log;
  host: Pick<Host, "run" | "release" | "cancel">;
  /** Where the model calls of runs wait to be written. */
  callLog: Pick<CallLog, "writeOf" | "writeSoon">;
  /** Null if the instance is not running. */
  prepareUnkept(run: Run, asked: Asked): Omit<HostedRun, "sink" | "taint"> | null;
}

interface Held {
  run: Run;
  asked: Asked;
  listener: UnkeptListener;
  /** Set once it has a place. */
  current?: ActiveRun;
}

const CANCELLED: LoopOutcome = { kind: "cancelled" };

export function createUnkeptRuns(
  { clock, log, host, callLog, prepareUnkept }: UnkeptRunParts,
  active: ActiveRuns,
  queue: Pick<RunQueue, "add" | "startNext">,
): UnkeptRuns {
  /** By agent, then by run. */
  const held = new Map<string, Map<string, Held>>();
  const find = ({ agentId, runId }: Run) => held.get(agentId)?.get(runId);

  /** After it, the agent's next run may start. */
  function end(one: Held, outcome: LoopOutcome): void {
    const { run, current, listener } = one;
    const { agentId, instanceId, runId } = run;
    const own = held.get(agentId);
    if (!own?.delete(runId)) return;
    if (own.size === 0) held.delete(agentId);
    if (current) active.remove(current);
    listener({ type: "ended", outcome });
    queue.startNext(agentId, instanceId);
  }

  function cancel(one: Held): void {
    if (find(one.run) !== one) return;
    if (one.current) host.cancel(one.run.instanceId, one.run.runId);
    end(one, CANCELLED);
  }

  async function receive(one: Held, batch: LoopEvent[]): Promise<void> {
    callLog.writeSoon(one.run.runId);
    for (const event of batch) {
      if (find(one.run) !== one) return;
      if (event.type === "ended") end(one, event.outcome);
      else one.listener(event);
    }
  }

  return {
    queue({ instanceId, accountId, stops }, { agentId }, asked, listener) {
      // Its conversation is its own, and exists nowhere else.
      const ids = { runId: newId("run"), messageId: newId("msg"), conversationId: newId("conv") };
      const origin = { originType: "openai", originId: null, firstEventId: 0 } as const;
      const run: Run = { ...NEW_RUN, ...ids, ...origin, agentId, instanceId, stops, createdAt: clock.now() };
      const one: Held = { run, asked, listener };
      held.set(agentId, (held.get(agentId) ?? new Map<string, Held>()).set(run.runId, one));
      listener({ type: "queued", runId: run.runId });
      queue.add(agentId, accountId);
      return () => cancel(one);
    },
    among(agentId, kept) {
      const own = [...(held.get(agentId)?.values() ?? [])].map(({ run }) => run);
      const all: Run[] = [];
      let at = 0;
      // Not sorted: where the host's clock was set back, kept ones would change places.
      for (const run of kept) {
        for (let next = own[at]; next && next.createdAt < run.createdAt; next = own[++at]) all.push(next);
        all.push(run);
      }
      return [...all, ...own.slice(at)];
    },
    start(run) {
      const one = find(run);
      if (one === undefined) return undefined;
      const { instanceId } = run;
      try {
        const prepared = prepareUnkept(run, one.asked);
        if (prepared === null) {
          host.release(instanceId);
          end(one, CANCELLED);
          return false;
        }
        one.current = newActive(run);
        active.add(one.current);
        one.listener({ type: "started", model: prepared.models[0] ?? "" });
        // Nothing of it is written, so a tool has to wait for no commit.
        const taint = async () => one.listener({ type: "tainted" });
        host.run(instanceId, { ...prepared, taint, sink: (batch) => receive(one, batch) });
        if (prepared.isTainted) one.listener({ type: "tainted" });
      } catch (err) {
        host.release(instanceId);
        log.error({ err, ...idsOf(run) }, "a run could not be started");
        end(one, BROKEN);
      }
      return true;
    },
    cancelOf(whose) {
      const all = [...held.values()].flatMap((own) => [...own.values()]);
      const isOf = ({ run }: Held) =>
        "agentId" in whose ? run.agentId === whose.agentId : run.instanceId === whose.instanceId;
      for (const one of all.filter(isOf)) cancel(one);
    },
  };
}
