import type { ModelEvent } from "../models/engine.ts";
import type { ModelAnswer, RunTrace, TracedModelCall, Traces } from "../traces/traces.ts";
import { type HeldRun, type HostedRun, holdRun } from "./hosted-run.ts";
import type { LoopOutcome } from "./protocol.ts";

/** One model call, for the metrics. */
export interface ModelCallFigures {
  model: string;
  seconds: number;
  /** Until its first text or call; null without any. */
  firstSeconds: number | null;
  promptTokens: number | null;
  completionTokens: number | null;
  /** The kind of its failure, `cancelled`, or null. */
  error: string | null;
}

/** `interrupted`: the host, its worker or its instance has stopped; the run may go on later. */
type Ending = LoopOutcome | { kind: "interrupted" };

/** Counts and traces the runs that the host has. */
export interface RunWatch {
  begin(whose: { accountId: string; instanceId: string }, run: HostedRun): HeldRun;
  /** Once for each run. */
  end(held: HeldRun, ending: Ending): void;
  /** How often runs have ended, by how. */
  ended(): ReadonlyMap<Ending["kind"], number>;
}

export function createRunWatch(traces: Pick<Traces, "run"> | null): RunWatch {
  const ended = new Map<Ending["kind"], number>();
  return {
    begin({ accountId, instanceId }, run) {
      const { agentId, conversationId, models } = run;
      const model = models[0] ?? "";
      const { runId } = run.input;
      return holdRun(run, traces?.run({ runId, accountId, instanceId, agentId, conversationId, model }) ?? null);
    },
    end({ trace }, ending) {
      ended.set(ending.kind, (ended.get(ending.kind) ?? 0) + 1);
      trace?.end(ending.kind === "failed" ? ending.code : ending.kind, ending.kind === "failed");
    },
    ended: () => ended,
  };
}

/** A model call while it is made. */
export interface WatchedModelCall {
  traceparent: string | undefined;
  sentTo(server: ModelAnswer["server"]): void;
  saw(events: readonly ModelEvent[]): void;
  end(error: string | null): void;
}

export function watchModelCall(
  trace: RunTrace | null,
  { model, ...call }: TracedModelCall & { model: string },
  report: (call: ModelCallFigures) => void,
): WatchedModelCall {
  const startedMs = performance.now();
  const traced = trace?.model(call);
  let text = "";
  const toolCalls: ModelAnswer["toolCalls"][number][] = [];
  const answer: Omit<ModelAnswer, "text" | "toolCalls" | "error"> = {
    ...{ promptTokens: null, completionTokens: null, finish: null, model: null, firstMs: null, server: null },
  };
  return {
    traceparent: traced?.traceparent,
    sentTo(server) {
      answer.server = server;
    },
    saw(events) {
      for (const event of events) {
        if (event.type === "usage") {
          answer.promptTokens = event.promptTokens;
          answer.completionTokens = event.completionTokens;
        } else if (event.type === "finish") {
          answer.finish = event.reason;
          answer.model = event.model ?? null;
        } else {
          answer.firstMs ??= performance.now() - startedMs;
          if (traced === undefined) continue;
          if (event.type === "text") text += event.text;
          else toolCalls.push(event.call);
        }
      }
    },
    end(error) {
      const { firstMs, promptTokens, completionTokens } = answer;
      const seconds = (performance.now() - startedMs) / 1000;
      const firstSeconds = firstMs === null ? null : firstMs / 1000;
      report({ model, seconds, firstSeconds, promptTokens, completionTokens, error });
      traced?.end({ ...answer, text, toolCalls, error });
    },
  };
}
