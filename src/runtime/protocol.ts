import type {
  ModelAbilities,
  ModelErrorKind,
  ModelEvent,
  ModelMessage,
  ModelRequest,
  ToolCall,
  ToolDescription,
  UsageOfCall,
} from "../models/engine.ts";
import type { ToolResult } from "../tools/tool.ts";

/**
 * The messages between the host and an instance's worker, the only way in or out. They are JSON text: the same worker
 * could run across a socket, and text crosses threads in less than half the time of a structured clone (measured: 22 µs
 * against 58 for a run with 200 turns). What is sent in one go is one text of several lines, since waking the other thread
 * costs as much as what it is told. A change that an older worker would misread increments the number.
 */
export const PROTOCOL_VERSION = 11;

/** Collects the lines that are sent before anything else runs, and posts them as one text. */
export function createOutbox(post: (lines: string) => void): (line: string) => void {
  let lines: string[] = [];
  function flush(): void {
    const text = lines.join("\n");
    lines = [];
    post(text);
  }
  return (line) => {
    if (lines.push(line) === 1) queueMicrotask(flush);
  };
}

/** The messages in one text: JSON has no line breaks of its own. */
export const linesOf = (text: string): string[] => text.split("\n");

export type HostToWorker =
  | { type: "run"; run: RunInput }
  | { type: "cancel"; runId: string }
  | { type: "model.events"; callId: number; events: ModelEvent[] }
  /** With the answer's last events, so that a short answer is one message. */
  | { type: "model.end"; callId: number; events: ModelEvent[]; error: ModelFailure | null }
  | ({ type: "tool.result"; callId: number } & ToolResult)
  /** The call has no result until its run is resumed. */
  | { type: "tool.waits"; callId: number }
  | { type: "tool.weighed"; callId: number; together: boolean }
  | { type: "ping" };

export type WorkerToHost =
  | { type: "ready"; protocol: number }
  | { type: "run.events"; runId: string; events: LoopEvent[] }
  /** For the log: what nothing expected has gone wrong in the run. */
  | { type: "run.fault"; runId: string; stack: string }
  /**
   * The host adds the account, the instance, the model, and the tools that the run is offered; and after the first message
   * the turns that it has kept, by their places.
   */
  | {
      type: "model.call";
      callId: number;
      runId: string;
      purpose: Purpose;
      messages: ModelMessage[];
      kept: PlaceRange[];
    }
  | { type: "model.cancel"; callId: number }
  | { type: "tool.call"; callId: number; runId: string; call: ToolCall }
  | { type: "tool.cancel"; callId: number }
  /** Whether these calls may run at the same time. */
  | { type: "tool.weigh"; callId: number; calls: ToolCall[] }
  | { type: "pong" };

/** What a model call of a run is for: its answer, or a summary of older messages. */
export type Purpose = "answer" | "summary";

/** What a run may ask of each of its answers. */
export type AnswerLimits = Pick<ModelRequest, "maxTokens" | "temperature" | "stop" | "output">;

/** A `ModelError` on its way through the port. */
export interface ModelFailure {
  kind: ModelErrorKind | "internal";
  message: string;
  overflow?: { promptTokens: number; limitTokens: number };
  retryAt?: number;
}

/**
 * Everything that a run needs, read when the run starts; a later change affects the next run. It contains no more than
 * the model's prompt can hold (prompt-room.ts).
 */
export interface RunInput {
  runId: string;
  agentName: string;
  /** The prompt's files that exist. The prompt mentions some of those that do not. */
  files: { name: string; text: string }[];
  skills: { name: string; description: string; instructions: string | null }[];
  /** Installed, but not among `skills` because there is no room. */
  moreSkills: number;
  /** Whether the model has a tool that reads a skill's text when it is needed. */
  readsSkills: boolean;
  /** Functions of whoever asked. An answer that calls one ends the run: it is not for Roost to make such calls. */
  functions?: ToolDescription[];
  /** What whoever asked wants besides the persona. */
  instructions?: string;
  limits?: AnswerLimits;
  model: ModelAbilities;
  /** Passages of the agent's memory about the message to answer, for a model that cannot search it. */
  memories?: string[];
  /** Turns before these that only the host has. */
  kept?: KeptTurns;
  /** Oldest first; the last is the message to answer. */
  conversation: Turn[];
  /** Messages before these that are not in the summary either. */
  earlier: number;
  /** What stands for the conversation's oldest messages. */
  summary?: Summary;
  /** What is to be summarised before the first answer. */
  compaction?: Compaction;
  /** Steps whose tools this run had begun to call before it was interrupted or had to wait. */
  journal: JournalStep[];
  /** True if clients have already been shown the journal's texts: after a wait. After a crash they are shown again. */
  journalShown?: boolean;
  /** True if the first model call was counted with the start of the run. */
  firstStepCounted?: boolean;
}

/** A summary of a conversation's oldest messages. */
export interface Summary {
  text: string;
  /** What was said word for word: names of files, ids, decisions, open questions. */
  items: string[];
  /** How many messages it stands for. */
  messages: number;
  /** Whether a stranger may have written a part of it (docs/contract/runtime.md, Taint). */
  isTainted: boolean;
}

/** Older messages that a new summary is to stand for, together with what the last summary stands for. */
export interface Compaction {
  /** Their texts, oldest first, in parts of which the model can read one at a time. */
  parts: string[];
  /** How many messages they are. */
  messages: number;
  isTainted: boolean;
  /** The longest summary. */
  maxTokens: number;
  /** Which of the run's turns, by place, are shown with the summary, and how many earlier messages are then left out. */
  still: number[];
  earlier: number;
  /** What the conversation takes in a prompt without the new summary: the last one, these messages, and the rest. */
  tokensBefore: number;
  /** The rest alone. */
  tokensOfRest: number;
}

/**
 * The turns of a long conversation stay with the host: they would cross twice between the threads only to be put into the
 * request as they are. The worker knows their places among the run's turns, and what each takes of a prompt, in tokens.
 */
export interface KeptTurns {
  places: PlaceRange[];
  tokens: number[];
}

/** Places from one up to another, which is not among them. */
export interface PlaceRange {
  from: number;
  to: number;
}

export interface Turn {
  role: "user" | "assistant";
  text: string;
  /** Of a user's turn: data URLs. */
  images?: string[];
  /** Of an assistant's turn: the functions that it called, with what they returned. */
  calls?: MadeCall[];
  /** Of an assistant's turn: the tools it called before its text, step by step, with what it said then. */
  steps?: PastStep[];
}

export interface MadeCall {
  call: ToolCall;
  result: string;
}

export interface PastStep {
  text: string;
  calls: MadeCall[];
}

/** One model call's answer: its text and the tools it asked for. */
export interface JournalStep {
  text: string;
  calls: JournalCall[];
}

/** Without a result, it has not been made, or not since it may go ahead. Calls are started in order. */
export interface JournalCall extends ToolCall {
  result: ToolResult | null;
  /** See `ToolContext`. */
  goAhead?: string;
}

/** With `budget_exceeded` comes `retryAt`: when the day or month ends, in milliseconds since 1970. */
type FailureCode =
  | "model_error"
  | "output_invalid"
  | "loop_detected"
  | "budget_exceeded"
  | "forbidden"
  | "internal_error";

export type RunOutcome =
  | { kind: "completed"; finishReason: "stop" | "length" }
  | { kind: "failed"; code: FailureCode; message: string; retryAt?: number }
  | { kind: "cancelled" };

/** How the loop ends. A run that waits has not ended: it is resumed later, from its journal. */
export type LoopOutcome = RunOutcome | { kind: "waiting" };

/** Everything that can happen in a run, as the loop reports it. `ended` comes once, last. */
export type LoopEvent =
  | { type: "step" }
  | { type: "delta"; text: string }
  /** `step` counts from 1; `following` are the calls after the first of its step, which a crash must not lose. */
  | { type: "tool.started"; step: number; toolCallId: string; name: string; input: string; following: ToolCall[] }
  | { type: "tool.completed"; toolCallId: string; name: string; output: string; isError: boolean }
  | ({ type: "usage" } & UsageOfCall)
  /** The older messages have been summarised; or why they could not be. */
  | { type: "compacted"; text: string; items: string[] }
  | { type: "compaction.failed"; reason: string }
  /** The functions that the answer calls, which ends it. */
  | { type: "asked"; calls: ToolCall[] }
  | { type: "ended"; outcome: LoopOutcome };
