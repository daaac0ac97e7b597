import type { FinishReason, ModelEvent } from "../models/engine.ts";
import { ModelError } from "../models/engine.ts";
import { compact, type StreamModel } from "./compaction.ts";
import { namedCall } from "./named-call.ts";
import { createOutputCheck, MAX_REPAIRS } from "./output-check.ts";
import { buildPrompt, shrinkPrompt, toMessages } from "./prompt.ts";
import type { JournalStep, LoopEvent, LoopOutcome, RunInput, RunOutcome } from "./protocol.ts";
import { createShownText, type ShownText } from "./shown-text.ts";
import { type CallParts, makeCalls } from "./step-calls.ts";
import { createTranscript, LoopDetected } from "./transcript.ts";

export const MAX_STEPS = 20;
const RUN_LIMIT_MS = 10 * 60_000;
/** How often a prompt is shortened for a model that rejects it as too long. */
const MAX_SHRINKS = 4;

/** How a run calls models and tools. */
export interface LoopParts extends CallParts {
  streamModel: StreamModel;
  /** Takes what nothing expected to the host's log: the run's end says only that it is there. */
  onFault(error: unknown): void;
  limitMs?: number;
}

/**
 * One run of an agent: summary of older messages, if they do not fit → prompt → model → text and tool calls → tools →
 * again, until the model answers with text alone, a call waits, a limit is reached, something fails or the run is
 * cancelled. It reports everything as events and never throws.
 */
export async function* runAgent(run: RunInput, parts: LoopParts): AsyncGenerator<LoopEvent> {
  const { signal, limitMs = RUN_LIMIT_MS } = parts;
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), limitMs);
  const either = AbortSignal.any([signal, late.signal]);
  try {
    yield { type: "ended", outcome: yield* steps(run, { ...parts, signal: either }) };
  } catch (error) {
    const outcome = knownOutcome(error, signal, late.signal.aborted ? limitMs : null);
    if (outcome === null) parts.onFault(error);
    yield { type: "ended", outcome: outcome ?? UNEXPECTED };
  } finally {
    clearTimeout(timer);
  }
}

const UNEXPECTED: RunOutcome = {
  kind: "failed",
  code: "internal_error",
  message: "the agent's run failed unexpectedly; the cause is in the host's log",
};

/** Null for an error that nothing expected. */
function knownOutcome(error: unknown, cancelled: AbortSignal, overMs: number | null): RunOutcome | null {
  if (cancelled.aborted) return { kind: "cancelled" };
  if (overMs !== null) {
    return { kind: "failed", code: "model_error", message: `the run took longer than ${overMs / 60_000} minutes` };
  }
  if (error instanceof ModelError) return failureOf(error);
  if (error instanceof LoopDetected) return { kind: "failed", code: "loop_detected", message: error.message };
  return null;
}

function failureOf({ kind, message, retryAt }: ModelError): RunOutcome {
  if (kind === "budget_exceeded" || kind === "forbidden") {
    return { kind: "failed", code: kind, message, ...(retryAt !== undefined && { retryAt }) };
  }
  return { kind: "failed", code: "model_error", message };
}

async function* steps(run: RunInput, parts: LoopParts): AsyncGenerator<LoopEvent, LoopOutcome> {
  const { streamModel, signal } = parts;
  const { limits = {}, functions = [] } = run;
  const transcript = createTranscript(run.model.contextTokens);
  const check = limits.output && createOutputCheck(limits.output);
  // Of an answer that is checked, nothing is shown before.
  const shown = check ? null : createShownText();
  let repairs = 0;
  // Journaled steps are not repeated, but after a crash their text is shown again.
  for (const [at, step] of run.journal.entries()) {
    if (shown && step.text !== "" && !run.journalShown) yield { type: "delta", text: step.text };
    shown?.end(step.text);
    if (yield* makeCalls(at + 1, step, parts, transcript)) return { kind: "waiting" };
  }
  const ownId = createCallIds(run.journal);
  let shrinks = 0;
  let current = buildPrompt(yield* compact(run, parts));
  let isCounted = run.firstStepCounted ?? false;
  let step = run.journal.length + 1;
  while (step <= MAX_STEPS) {
    if (!isCounted) yield { type: "step" };
    isCounted = false;
    let answer: StepAnswer;
    try {
      const messages = [...toMessages(current), ...transcript.messages];
      answer = yield* oneStep(streamModel(messages, signal, "answer", current.kept.places), shown);
      for (const call of answer.calls) call.id = ownId(call.id, step);
    } catch (error) {
      const overflow = error instanceof ModelError ? error.overflow : undefined;
      if (!overflow || ++shrinks > MAX_SHRINKS) throw error;
      current = shrinkPrompt(current, overflow.limitTokens / overflow.promptTokens);
      continue;
    }
    signal.throwIfAborted();
    const finishReason = answer.finish === "length" ? "length" : "stop";
    const asked = answer.calls.filter(({ name }) => functions.some((one) => one.name === name));
    if (asked.length > 0) {
      // Its other calls are not made: whoever asked goes on without them, and they would be made again.
      yield { type: "asked", calls: asked };
      return { kind: "completed", finishReason };
    }
    if (answer.calls.length > 0) {
      if (yield* makeCalls(step, answer, parts, transcript)) return { kind: "waiting" };
      shown?.end(answer.text);
      step++;
      continue;
    }
    const fault = check?.(answer.text) ?? null;
    if (fault === null) {
      if (check) yield { type: "delta", text: answer.text };
      return { kind: "completed", finishReason };
    }
    if (repairs++ === MAX_REPAIRS) return invalidOutput(fault);
    transcript.addFault(answer.text, fault);
  }
  return { kind: "failed", code: "model_error", message: `the agent did not reach an answer in ${MAX_STEPS} steps` };
}

const invalidOutput = (fault: string): RunOutcome => ({
  kind: "failed",
  code: "output_invalid",
  message: `the model did not answer in the form that was asked for: ${fault}; ask in other words, simplify the schema, or give the agent a stronger model`,
});

/** Servers number the calls of each answer anew. Whoever follows a run tells its calls apart by their ids. */
function createCallIds(journal: readonly JournalStep[]): (id: string, step: number) => string {
  const taken = new Set(journal.flatMap(({ calls }) => calls.map(({ id }) => id)));
  return (id, step) => {
    let own = id;
    while (taken.has(own)) own = `${own}_${step}`;
    taken.add(own);
    return own;
  };
}

interface StepAnswer extends JournalStep {
  finish: FinishReason;
}

/** `shown` is null while it is not known whether the text may be shown. */
async function* oneStep(
  stream: AsyncIterable<ModelEvent[]>,
  shown: ShownText | null,
): AsyncGenerator<LoopEvent, StepAnswer> {
  const answer: StepAnswer = { text: "", calls: [], finish: "stop" };
  for await (const batch of stream) {
    let delta = "";
    for (const event of batch) {
      switch (event.type) {
        case "text":
          delta += event.text;
          break;
        case "tool_call":
          answer.calls.push({ ...namedCall(event.call), result: null });
          break;
        case "usage":
          yield event;
          break;
        case "finish":
          answer.finish = event.reason;
      }
    }
    if (delta !== "") {
      const text = shown?.add(delta) ?? delta;
      answer.text += text;
      if (shown && text !== "") yield { type: "delta", text };
    }
  }
  return answer;
}
