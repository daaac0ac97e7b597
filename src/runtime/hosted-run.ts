import type { MessageRange, ModelMessage, ToolCall, ToolDescription } from "../models/engine.ts";
import type { Durability } from "../storage/store.ts";
import type { Wait } from "../tools/tool.ts";
import type { RunTrace } from "../traces/traces.ts";
import type { RunTally } from "./model-call.ts";
import { messagesAsMade } from "./named-call.ts";
import { messagesOf } from "./prompt.ts";
import type { JournalCall, LoopEvent, RunInput, Turn } from "./protocol.ts";

/** A run as it is passed to the host: what the worker needs, and what stays on the host's side. */
export interface HostedRun {
  agentId: string;
  conversationId: string;
  /** `local:…` or `openai:…`: the first that answers is taken. */
  models: readonly string[];
  /** Offered to the model, if it can call them. */
  tools: readonly ToolDescription[];
  input: RunInput;
  /** What each turn of its conversation takes of a prompt, in tokens. */
  turnTokens: number[];
  /** What each turn is in a request, if it is the same object in every request; else null. Empty if none is. */
  turnMessages: readonly (ModelMessage | null)[];
  /** Whether its prompt holds what a stranger may have written (docs/contract/runtime.md, Taint). */
  isTainted: boolean;
  /** False where nobody can be asked for an approval. */
  mayAsk: boolean;
  /** Set where it may call only the tools of these names, whatever its agent may. */
  onlyTools?: readonly string[] | undefined;
  /** Searches the agent's memory, where the model cannot; what is found becomes the input's `memories`. */
  recall?: () => Promise<string[]>;
  /** Notes that it is tainted from now on; resolves when that is committed, or the run was cancelled. */
  taint(): Promise<void>;
  /**
   * Receives the run's events in order; resolves when they are committed. `full` if a call that changes something
   * outside is about to be made. `waits` are the waiting calls, used if the run ends as `waiting`.
   */
  sink(events: LoopEvent[], durability: Durability, waits: readonly WaitingCall[]): Promise<void>;
}

/** A call exactly as it was made, its input as it would be executed, and what it waits for. */
export interface WaitingCall {
  call: ToolCall;
  input: unknown;
  /** The version of what it changes, as it is now. */
  basis: string | null;
  waitsFor: Wait;
}

/**
 * A run while the host has it. Which calls wait, and which may go ahead, is recorded here and not left to the worker.
 */
export interface HeldRun {
  run: HostedRun;
  /** The commit of the events reported last. */
  committed: Promise<void>;
  isTainted: boolean;
  waits: WaitingCall[];
  /** Calls of the journal that have not been made, each to be made once. Some were allowed to go ahead. */
  missing: JournalCall[];
  tally: RunTally;
  /** Null without a collector. */
  trace: RunTrace | null;
}

/** Without the texts that only the worker needs: they would fill the host's memory while the run goes on. */
const withoutTexts = (input: RunInput): RunInput => ({
  ...input,
  files: [],
  skills: [],
  conversation: keptTurns(input),
  journal: [],
});

/** The turns that stay with the host: all but the last, of a full prompt. */
const keptTurns = ({ model, conversation }: RunInput): Turn[] =>
  model.prompt === "short" ? [] : conversation.slice(0, -1);

export const holdRun = (run: HostedRun, trace: RunTrace | null): HeldRun => ({
  run: { ...run, input: withoutTexts(run.input) },
  committed: Promise.resolve(),
  isTainted: run.isTainted,
  waits: [],
  missing: run.input.journal.flatMap(({ calls }) => calls).filter(({ result }) => result === null),
  tally: { isCounted: run.input.journal.length > 0 },
  trace,
});

/** Returns what the call waited for, if it is exactly one that may go ahead and has not been made since. */
export function takeGoAhead({ missing }: HeldRun, { id, name, input }: ToolCall): string | undefined {
  const at = missing.findIndex((call) => call.id === id && call.name === name && call.input === input);
  return at < 0 ? undefined : missing.splice(at, 1)[0]?.goAhead;
}

/** What the worker is told: the texts of the turns that do not stay with the host, and the places of those that do. */
function forWorker({ input, turnTokens }: HostedRun): RunInput {
  const count = keptTurns(input).length;
  if (count === 0) return input;
  const kept = { places: Array.from({ length: count }, (_, at) => at), tokens: turnTokens.slice(0, count) };
  return { ...input, kept, conversation: input.conversation.slice(count) };
}

/**
 * A prompt's messages, with the turns at these places after the first. Calls are as a model would have made them that is
 * offered these tools. `lasting` are the ranges of messages that later requests have too.
 */
export function withKept(
  prompt: readonly ModelMessage[],
  places: readonly number[],
  { input, turnMessages }: HostedRun,
  tools: readonly ToolDescription[],
): { messages: readonly ModelMessage[]; lasting: readonly MessageRange[] } {
  const asked = messagesAsMade(prompt, tools);
  if (places.length === 0) return { messages: asked, lasting: [] };
  const messages = asked.slice(0, 1);
  const lasting: MessageRange[] = [];
  for (const place of places) {
    const same = turnMessages[place];
    const from = messages.length;
    const range = lasting.at(-1);
    if (!same) messages.push(...messagesAsMade(messagesOf(input.conversation[place] as Turn), tools));
    else if (range?.to === from) range.to = messages.push(same);
    else lasting.push({ from, to: messages.push(same) });
  }
  messages.push(...asked.slice(1));
  return { messages, lasting };
}

/** Sends a run's input: at once, or with what was found in the agent's memory for it. If that fails, it goes without. */
export function passOn(run: HostedRun, send: (input: RunInput) => void): void {
  const { recall } = run;
  const input = forWorker(run);
  if (recall === undefined) send(input);
  else {
    const found = recall().catch((): string[] => []);
    void found.then((memories) => send(memories.length === 0 ? input : { ...input, memories }));
  }
}
