/** What the rest of the server tells about its work. Without a collector there is nobody to tell: then it is null. */
export interface Traces {
  /** A request to the API begins. `traceparent` is what its sender calls its own trace. */
  request(request: { method: string; route: string; requestId: string; traceparent: string | null }): RequestTrace;
  /** A run begins, or goes on after it has waited. */
  run(run: TracedRun): RunTrace;
  /** Spans so far, by what came of them. */
  figures(): { sent: number; dropped: number };
  /** Sends what is left, for a moment. Never rejects. */
  close(): Promise<void>;
}

export interface RequestTrace {
  /** It has caused this run, which may go on long after the answer. */
  caused(runId: string): void;
  /** `error` is the code of a failure of the host. */
  end(answer: { status: number; accountId: string | null; runId: string | null; error: string | null }): void;
}

export interface TracedRun {
  runId: string;
  accountId: string;
  instanceId: string;
  agentId: string;
  conversationId: string;
  /** `local:…` or `openai:…`. */
  model: string;
}

export interface RunTrace {
  model(call: TracedModelCall): ModelTrace;
  tool(call: { id: string; name: string; input: string }): ToolTrace;
  /** How it has ended: `completed`, `waiting`, `cancelled`, `interrupted`, or the code of its failure. */
  end(outcome: string, isFailure: boolean): void;
}

export interface TracedModelCall {
  /** One after the other; some together. */
  messages: readonly (TracedMessage | readonly TracedMessage[])[];
  maxTokens?: number | undefined;
  temperature?: number | undefined;
}

/** A message of a prompt, of which only the words count. */
export interface TracedMessage {
  role: string;
  content: string;
  toolCalls?: readonly { id: string; name: string; input: string }[];
  toolCallId?: string;
}

export interface ModelTrace {
  /** For the operator's own model server; absent if this trace is not recorded. */
  traceparent: string | undefined;
  end(answer: ModelAnswer): void;
}

/** What came of a model call. */
export interface ModelAnswer {
  text: string;
  toolCalls: readonly { id: string; name: string; input: string }[];
  promptTokens: number | null;
  completionTokens: number | null;
  /** Why it ended; null if it did not come to its end. */
  finish: string | null;
  /** What the server calls the model that has answered. */
  model: string | null;
  /** Where it was made; null on this host, and before it was sent. */
  server: { address: string; port?: number } | null;
  /** Until its first text or call; null without any. */
  firstMs: number | null;
  /** The kind of its failure. */
  error: string | null;
}

export interface ToolTrace {
  /** `output` is null for a call that waits. */
  end(outcome: { output: string | null; isError: boolean }): void;
}
