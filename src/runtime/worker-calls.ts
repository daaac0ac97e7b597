import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { createFairTurns, type FairTurns } from "../limits/fair-turns.ts";
import type { ModelEvent, ToolDescription } from "../models/engine.ts";
import { callTool, changesOutside } from "../tools/policy.ts";
import type { PolicyPorts } from "../tools/ports.ts";
import type { ToolboxOf } from "../tools/toolboxes.ts";
import { type HeldRun, type HostedRun, takeGoAhead, withKept } from "./hosted-run.ts";
import type { CallModel } from "./model-call.ts";
import { failureOf } from "./model-failure.ts";
import type { AnswerLimits, LoopEvent, ModelFailure, Purpose, WorkerToHost } from "./protocol.ts";
import type { WorkerHandle } from "./worker-handle.ts";

export interface WorkerCallParts {
  clock: Clock;
  log: Log;
  toolboxOf: ToolboxOf;
  policy: PolicyPorts;
  callModel: CallModel;
}

/**
 * What a call of a tool is charged besides the tool itself: its events, their commits and its worker's thread take less, but
 * others wait for the processor, the disk and the collection of garbage too. With this, an agent that calls tools without
 * end makes about sixty calls a second while others do something.
 */
const CALL_MS = 6;
/** The same for each character of its input, which crosses threads, is written in events, and becomes garbage. */
const CHARACTER_MS = 1 / 8_192;
/** What a call of a model is charged: its prompt is written and its answer read outside of turns. */
const MODEL_CALL_MS = 1;

/**
 * Turns of the accounts' agents. Of one account's, while others wait: a few messages of a worker in a turn, and a third of the
 * time, of which what they do besides is taken too. While nobody waits, and for who does little, more in a turn: one costs as
 * much as a quarter of a message.
 */
export const createAgentTurns = (): FairTurns => createFairTurns({ maxMs: 0.25, aloneMs: 2, share: 0.35 });

/** What the model gets of a call where the host itself failed, whatever the tool has done by then. */
const FAILED_CALL = {
  output: "the call failed inside the host, and may have been made: look whether it was before you repeat it",
  isError: true,
} as const;

/** What the run asks of a model call besides its messages. A summary is text of a limited length, made without tools. */
function askedFor({ input, tools }: HostedRun, purpose: Purpose): { limits?: AnswerLimits; tools: ToolDescription[] } {
  const { limits, functions = [], compaction } = input;
  if (purpose === "summary") return { limits: { maxTokens: compaction?.maxTokens ?? 1 }, tools: [] };
  return { ...(limits && { limits }), tools: [...tools, ...functions] };
}

/** The part of an instance that its worker's calls need. */
export interface CallingInstance {
  instanceId: string;
  accountId: string;
  worker: Pick<WorkerHandle, "send">;
  runs: Map<string, HeldRun>;
  /** Calls in progress. */
  calls: Map<number, { runId: string; abort: AbortController }>;
}

/** Whether one of these events is the start of a call that changes something outside. */
export const actsOutside = (toolboxOf: ToolboxOf, instanceId: string, events: readonly LoopEvent[]): boolean =>
  events.some((event) => event.type === "tool.started" && changesOutside(toolboxOf(instanceId), event));

/** Makes the calls of models and tools that workers ask for. Those of tools wait for their account's turn. */
export function createWorkerCalls(parts: WorkerCallParts, turns: FairTurns) {
  const { clock, log, toolboxOf, policy, callModel } = parts;
  return {
    /** Logs what has gone wrong in a run, or its summary, in the worker. */
    noteFault(
      { instanceId, accountId, runs }: CallingInstance,
      { runId, stack }: Extract<WorkerToHost, { type: "run.fault" }>,
    ): void {
      const agentId = runs.get(runId)?.run.agentId;
      if (agentId === undefined) return;
      log.error({ accountId, instanceId, agentId, runId, stack }, "a run has met an unexpected fault in its worker");
    },

    async callModel(
      { instanceId, accountId, worker, runs, calls }: CallingInstance,
      { callId, runId, purpose, messages, kept }: Extract<WorkerToHost, { type: "model.call" }>,
    ): Promise<void> {
      const held = runs.get(runId);
      if (!held) return;
      const { run, tally, trace } = held;
      const abort = new AbortController();
      calls.set(callId, { runId, abort });
      const { agentId, models } = run;
      const { limits, tools } = askedFor(run, purpose);
      turns.spend(accountId, () => {}, MODEL_CALL_MS);
      let last: ModelEvent[] = [];
      let error: ModelFailure | null = null;
      try {
        const asked = {
          ...limits,
          models,
          messages: withKept(messages, kept, run, tools),
          tools,
          purpose,
          accountId,
          instanceId,
          agentId,
          runId,
          tally,
          trace,
        } as const;
        for await (const events of callModel(asked, abort.signal)) {
          if (events.at(-1)?.type === "finish") last = events;
          else worker.send({ type: "model.events", callId, events });
        }
      } catch (thrown) {
        if (!abort.signal.aborted) error = failureOf(thrown, log, { accountId, instanceId, agentId, runId, models });
      } finally {
        calls.delete(callId);
      }
      worker.send({ type: "model.end", callId, events: last, error });
    },

    async callTool(
      { instanceId, accountId, worker, runs, calls }: CallingInstance,
      { callId, runId, call }: Extract<WorkerToHost, { type: "tool.call" }>,
    ): Promise<void> {
      const held = runs.get(runId);
      if (!held) return;
      const abort = new AbortController();
      const { signal } = abort;
      calls.set(callId, { runId, abort });
      const { agentId, conversationId, mayAsk, onlyTools } = held.run;
      let trace: ReturnType<NonNullable<HeldRun["trace"]>["tool"]> | undefined;
      try {
        // A tool acts only once its start is in the log, so that nothing is done twice after a crash.
        await held.committed;
        const turn = turns.enter(accountId);
        if (turn) await turn;
        // Cancelled meanwhile, or the log could not be written.
        if (signal.aborted) return;
        const context = {
          instanceId,
          agentId,
          conversationId,
          runId,
          isTainted: held.isTainted,
          onlyTools,
          clock,
          goAhead: takeGoAhead(held, call),
          mayAsk,
          waiting: held.waits.length,
          signal,
        };
        const toolbox = toolboxOf(instanceId);
        trace = held.trace?.tool({ ...call, name: toolbox.find(call.name)?.name ?? "unknown" });
        const besidesMs = CALL_MS + call.input.length * CHARACTER_MS;
        const reply = await turns.spend(accountId, () => callTool(toolbox, call, context, policy), besidesMs);
        trace?.end("waitsFor" in reply ? { output: null, isError: false } : reply);
        if ("waitsFor" in reply) {
          held.waits.push({ call, ...reply });
          worker.send({ type: "tool.waits", callId });
          return;
        }
        if (reply.isUntrusted && !held.isTainted) {
          // Before the model sees what a stranger wrote, the run is known for it.
          held.isTainted = true;
          await held.run.taint();
        }
        const { output, isError } = reply;
        worker.send({ type: "tool.result", callId, output, isError });
      } catch (err) {
        // Such as a database that cannot be read.
        log.error({ err, accountId, instanceId, agentId, runId }, "a call of a tool failed unexpectedly");
        trace?.end(FAILED_CALL);
        worker.send({ type: "tool.result", callId, ...FAILED_CALL });
      } finally {
        calls.delete(callId);
      }
    },
  };
}
