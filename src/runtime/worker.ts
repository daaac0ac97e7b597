import { ModelError, type ModelEvent } from "../models/engine.ts";
import type { ToolResult } from "../tools/tool.ts";
import { type LoopParts, runAgent } from "./agent-loop.ts";
import type { HostToWorker, LoopEvent, ModelFailure, RunInput, WorkerToHost } from "./protocol.ts";
import { createOutbox, linesOf, PROTOCOL_VERSION } from "./protocol.ts";

declare const self: Worker & { onmessage: ((event: MessageEvent<string>) => void) | null };

/**
 * Runs one instance's agents. It has no handles: everything it needs, it asks the host for through its port
 * (ARCHITECTURE.md, Processes).
 */
const runs = new Map<string, AbortController>();
const modelCalls = new Map<number, ModelStream>();
const toolCalls = new Map<number, (reply: ToolResult | "waits") => void>();
const weighings = new Map<number, (together: boolean) => void>();
let calls = 0;

const MAX_STACK_CHARACTERS = 4_000;

const post = createOutbox((lines) => self.postMessage(lines));
const send = (message: WorkerToHost) => post(JSON.stringify(message));

self.onmessage = ({ data }) => {
  for (const line of linesOf(data)) receive(JSON.parse(line) as HostToWorker);
};

function receive(message: HostToWorker): void {
  switch (message.type) {
    case "run":
      void work(message.run);
      break;
    case "cancel":
      runs.get(message.runId)?.abort();
      break;
    case "model.events":
      modelCalls.get(message.callId)?.push(message.events);
      break;
    case "model.end":
      modelCalls.get(message.callId)?.end(message.events, message.error);
      break;
    case "tool.result":
      toolCalls.get(message.callId)?.(message);
      break;
    case "tool.waits":
      toolCalls.get(message.callId)?.("waits");
      break;
    case "tool.weighed":
      weighings.get(message.callId)?.(message.together);
      break;
    case "ping":
      send({ type: "pong" });
  }
}
send({ type: "ready", protocol: PROTOCOL_VERSION });

async function work(run: RunInput): Promise<void> {
  const { runId } = run;
  const abort = new AbortController();
  runs.set(runId, abort);
  // The events of one event loop turn are sent together.
  let waiting: LoopEvent[] = [];
  let isDue = false;
  const flush = () => {
    isDue = false;
    if (waiting.length === 0) return;
    send({ type: "run.events", runId, events: waiting });
    waiting = [];
  };
  const parts: LoopParts = {
    streamModel(messages, signal, purpose, kept) {
      // A call whose result the log lacks counts as interrupted after a restart.
      if (waiting.some(({ type }) => type === "tool.completed")) flush();
      return callModel({ runId, purpose, messages, kept }, signal);
    },
    callTool(call, signal) {
      // The host makes the call only once its start is in the log.
      flush();
      return ask(toolCalls, (callId) => ({ type: "tool.call", callId, runId, call }), signal);
    },
    onFault: (error) => send({ type: "run.fault", runId, stack: stackOf(error) }),
    mayRunTogether: (calls, signal) => ask(weighings, (callId) => ({ type: "tool.weigh", callId, calls }), signal),
    signal: abort.signal,
  };
  for await (const event of runAgent(run, parts)) {
    waiting.push(event);
    if (event.type === "ended") flush();
    // A model call's usage is sent with the event that follows it.
    else if (event.type !== "usage" && !isDue) {
      isDue = true;
      setImmediate(flush);
    }
  }
  // If the run was started again meanwhile, the new attempt has the same id.
  if (runs.get(runId) === abort) runs.delete(runId);
}

const stackOf = (error: unknown): string =>
  String((error instanceof Error && error.stack) || error).slice(0, MAX_STACK_CHARACTERS);

/** The stream of one model call, fed from the port. */
class ModelStream {
  private batches: ModelEvent[][] = [];
  private ended: { error: ModelFailure | null } | null = null;
  private wake: () => void = () => {};

  push(events: ModelEvent[]): void {
    this.batches.push(events);
    this.wake();
  }
  end(events: ModelEvent[], error: ModelFailure | null): void {
    if (events.length > 0) this.batches.push(events);
    this.ended = { error };
    this.wake();
  }
  async *read(signal: AbortSignal): AsyncGenerator<ModelEvent[]> {
    const onAbort = () => this.wake();
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      for (;;) {
        signal.throwIfAborted();
        const batch = this.batches.shift();
        if (batch) yield batch;
        else if (this.ended) break;
        else await new Promise<void>((resolve) => (this.wake = resolve));
      }
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
    const { error } = this.ended;
    if (!error) return;
    if (error.kind === "internal") throw new Error(error.message);
    const { kind, message, overflow, retryAt } = error;
    throw new ModelError(kind, message, { ...(overflow && { overflow }), ...(retryAt !== undefined && { retryAt }) });
  }
}

async function* callModel(
  asked: Omit<Extract<WorkerToHost, { type: "model.call" }>, "type" | "callId">,
  signal: AbortSignal,
): AsyncGenerator<ModelEvent[]> {
  const callId = ++calls;
  const stream = new ModelStream();
  modelCalls.set(callId, stream);
  send({ type: "model.call", callId, ...asked });
  try {
    yield* stream.read(signal);
  } finally {
    modelCalls.delete(callId);
    if (signal.aborted) send({ type: "model.cancel", callId });
  }
}

/** Asks the host something about tools, and waits for its reply or the run's cancel. */
async function ask<T>(
  waiting: Map<number, (reply: T) => void>,
  question: (callId: number) => WorkerToHost,
  signal: AbortSignal,
): Promise<T> {
  signal.throwIfAborted();
  const callId = ++calls;
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const onAbort = () => {
    send({ type: "tool.cancel", callId });
    reject(signal.reason);
  };
  waiting.set(callId, resolve);
  signal.addEventListener("abort", onAbort, { once: true });
  send(question(callId));
  try {
    return await promise;
  } finally {
    waiting.delete(callId);
    signal.removeEventListener("abort", onAbort);
  }
}
