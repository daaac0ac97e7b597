import type { FinishReason, ModelEvent, ModelMessage, ToolCall } from "../models/engine.ts";
import { ModelError } from "../models/engine.ts";
import { buildPrompt, shrinkPrompt, toMessages } from "./prompt.ts";
import type { JournalStep, LoopEvent, ModelCall, RunInput, RunOutcome } from "./protocol.ts";

export const MOST_STEPS = 20;
const RUN_LIMIT_MS = 10 * 60_000;
/** How often a prompt is cut down for a model that says it is too long. */
const MOST_SHRINKS = 4;

export type StreamModel = (call: ModelCall, signal: AbortSignal) => AsyncIterable<ModelEvent[]>;
export type CallTool = (call: ToolCall, signal: AbortSignal) => Promise<{ output: string; isError: boolean }>;

/** What a run reaches the world through. */
export interface LoopParts {
  streamModel: StreamModel;
  callTool: CallTool;
  /** Cancels the run. */
  signal: AbortSignal;
  limitMs?: number;
}

/**
 * One run of an agent: prompt → model → text and tool calls → tools → again, until the model answers with text alone,
 * a limit, a failure or a cancel. It tells everything as events and never throws.
 */
export async function* runAgent(run: RunInput, parts: LoopParts): AsyncGenerator<LoopEvent> {
  const { signal, limitMs = RUN_LIMIT_MS } = parts;
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), limitMs);
  const either = AbortSignal.any([signal, late.signal]);
  try {
    yield { type: "ended", outcome: yield* steps(run, { ...parts, signal: either }) };
  } catch (error) {
    yield { type: "ended", outcome: outcomeOf(error, signal, late.signal.aborted ? limitMs : null) };
  } finally {
    clearTimeout(timer);
  }
}

function outcomeOf(error: unknown, cancelled: AbortSignal, overMs: number | null): RunOutcome {
  if (cancelled.aborted) return { kind: "cancelled" };
  if (overMs !== null) {
    return { kind: "failed", code: "model_error", message: `the run took longer than ${overMs / 60_000} minutes` };
  }
  if (error instanceof ModelError) return { kind: "failed", code: "model_error", message: error.message };
  return { kind: "failed", code: "internal_error", message: "the agent's run broke; the host's log tells why" };
}

async function* steps(
  run: RunInput,
  { streamModel, callTool, signal }: LoopParts,
): AsyncGenerator<LoopEvent, RunOutcome> {
  const done: ModelMessage[] = [];
  yield* replay(run.journal, done);
  let shrinks = 0;
  let current = buildPrompt(run);
  for (let step = run.journal.length; step < MOST_STEPS; step++) {
    yield { type: "step" };
    let answer: StepAnswer;
    try {
      answer = yield* oneStep(streamModel({ messages: [...toMessages(current), ...done], tools: run.tools }, signal));
    } catch (error) {
      const overflow = error instanceof ModelError ? error.overflow : undefined;
      if (!overflow || ++shrinks > MOST_SHRINKS) throw error;
      current = shrinkPrompt(current, overflow.limitTokens / overflow.promptTokens);
      step--;
      continue;
    }
    signal.throwIfAborted();
    if (answer.calls.length === 0) {
      return { kind: "completed", finishReason: answer.finish === "length" ? "length" : "stop" };
    }
    done.push({ role: "assistant", content: answer.text, toolCalls: answer.calls });
    yield* runTools(answer.calls, callTool, signal, done);
  }
  return { kind: "failed", code: "model_error", message: `the agent did not come to an answer in ${MOST_STEPS} steps` };
}

/** Steps that were completed before a crash: their text is told again, their tools are not called again. */
function* replay(journal: JournalStep[], done: ModelMessage[]): Generator<LoopEvent> {
  for (const { text, calls } of journal) {
    if (text !== "") yield { type: "delta", text };
    const toolCalls = calls.map(({ id, name, input }) => ({ id, name, input }));
    done.push({ role: "assistant", content: text, toolCalls });
    for (const { id, output } of calls) done.push({ role: "tool", toolCallId: id, content: output });
  }
}

interface StepAnswer {
  text: string;
  calls: ToolCall[];
  finish: FinishReason;
}

async function* oneStep(stream: AsyncIterable<ModelEvent[]>): AsyncGenerator<LoopEvent, StepAnswer> {
  const answer: StepAnswer = { text: "", calls: [], finish: "stop" };
  for await (const batch of stream) {
    let delta = "";
    for (const event of batch) {
      switch (event.type) {
        case "text":
          delta += event.text;
          break;
        case "tool_call":
          answer.calls.push(event.call);
          break;
        case "usage":
          yield {
            type: "usage",
            usage: { promptTokens: event.promptTokens, completionTokens: event.completionTokens },
          };
          break;
        case "finish":
          answer.finish = event.reason;
      }
    }
    if (delta !== "") {
      answer.text += delta;
      yield { type: "delta", text: delta };
    }
  }
  return answer;
}

/** Started is told before the call and completed after it, so that a crash between the two is known as such. */
async function* runTools(
  calls: ToolCall[],
  callTool: CallTool,
  signal: AbortSignal,
  done: ModelMessage[],
): AsyncGenerator<LoopEvent> {
  for (const call of calls) {
    signal.throwIfAborted();
    yield { type: "tool.started", toolCallId: call.id, name: call.name, input: call.input };
    const { output, isError } = await callTool(call, signal);
    yield { type: "tool.completed", toolCallId: call.id, name: call.name, output, isError };
    done.push({ role: "tool", toolCallId: call.id, content: output });
  }
}
