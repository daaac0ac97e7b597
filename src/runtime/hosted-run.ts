import type { MessagePart, ModelMessage, ToolCall, ToolDescription } from "../models/engine.ts";
import type { Durability } from "../storage/store.ts";
import type { Wait } from "../tools/tool.ts";
import type { RunTrace } from "../traces/traces.ts";
import type { RunTally } from "./model-call.ts";
import { lastingAsMade, messagesAsMade } from "./named-call.ts";
import { messagesOf } from "./prompt.ts";
import type { JournalCall, LoopEvent, PlaceRange, RunInput, Turn } from "./protocol.ts";

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
  turnMessages: TurnMessages;
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

/** A run's turns as messages of requests: the same objects in every request, so that what is made of them can be kept. */
export interface TurnMessages {
  /** One for each turn, or none at all; null for a turn that is made anew for each request. */
  each: readonly (MessagePart | null)[];
  /** The same again, `TURNS_TOGETHER` turns in one array; the first array begins with the turn at the place `first`. */
  together: readonly (readonly ModelMessage[] | null)[];
  first: number;
}
export const NO_MESSAGES: TurnMessages = { each: [], together: [], first: 0 };
/** So many that a long conversation is few arrays; what is left over at either end is given one by one. */
export const TURNS_TOGETHER = 8;

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
  const kept = { places: [{ from: 0, to: count }], tokens: turnTokens.slice(0, count) };
  return { ...input, kept, conversation: input.conversation.slice(count) };
}

/**
 * A prompt's messages, with the turns at these places after the first. Calls are as a model would have made them that is
 * offered these tools.
 */
export function withKept(
  prompt: readonly ModelMessage[],
  places: readonly PlaceRange[],
  { input, turnMessages }: HostedRun,
  tools: readonly ToolDescription[],
): readonly MessagePart[] {
  const asked = messagesAsMade(prompt, tools);
  if (places.length === 0) return asked;
  const asMade = lastingAsMade(tools);
  const { each, together, first } = turnMessages;
  const parts: MessagePart[] = asked.slice(0, 1);
  for (const { from, to } of places) {
    for (let place = from; place < to; ) {
      const several = place + TURNS_TOGETHER <= to ? together[(place - first) / TURNS_TOGETHER] : null;
      const one = each[place];
      if (several) parts.push(asMade(several));
      else if (one) parts.push(asMade(one));
      else parts.push(...messagesAsMade(messagesOf(input.conversation[place] as Turn), tools));
      place += several ? TURNS_TOGETHER : 1;
    }
  }
  parts.push(...asked.slice(1));
  return parts;
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
