/** Which older messages of a conversation are summarised, and what becomes of the summary. */
import type { Clock } from "../../lib/clock.ts";
import type { ModelAbilities } from "../../models/engine.ts";
import { NOT_SHORTER, summaryOf } from "../../runtime/compaction.ts";
import { cut } from "../../runtime/prompt-room.ts";
import type { Compaction, LoopEvent, PastStep } from "../../runtime/protocol.ts";
import { tokensWith } from "../../runtime/summary.ts";
import { reserveOf, tokensOf, tokensOfMessage, tokensOfTurn } from "../../runtime/tokens.ts";
import type { AgentEvent } from "../events/event.ts";
import { readPage } from "../history-page.ts";
import type { MessageQueries } from "../queries.ts";
import type { Conversation, Message, StoredSummary } from "../schema.ts";
import { asSummary, type Summaries } from "../summaries.ts";
import type { StepQueries } from "./past-steps.ts";
import type { PastMessage } from "./turn-list.ts";
import { type RunOfPrompt, WINDOW_MESSAGES } from "./window.ts";

/** A model with a smaller context, or one that follows only a short prompt, cannot summarise. */
const MIN_CONTEXT_TOKENS = 4_096;
/**
 * The messages that stay take at most this share of the conversation's room, and are at most this share of those that a
 * prompt considers, so that the next summary is not soon.
 */
const KEPT_SHARE = 1 / 2;
const SUMMARY_SHARE = 1 / 8;
const MAX_SUMMARY_TOKENS = 2_000;
const MIN_SUMMARY_TOKENS = 128;
/** What a part that is summarised leaves of the context for instructions. */
const INSTRUCTION_TOKENS = 600;
/** Model calls of one compaction, and the characters of all of them: the rest is summarised with a later message. */
const MAX_PARTS = 6;
const MAX_CHARACTERS = 400_000;
/**
 * Messages that a summary has still to take in. Of a conversation that was long before it was ever summarised, as after an
 * import, the oldest are left out: each of its next messages would pay for `MAX_PARTS` calls until all are read.
 */
const MAX_BACKLOG = 5_000;
/** Of one message, and of a tool's input or result. */
const MAX_MESSAGE = 12_000;
const MAX_CALL = 600;
/** Of the name of whoever asks, in characters. */
const MAX_NAME = 100;
const PAGE = 100;
/** After a failure, so many messages more are waited for, then twice as many, up to `MAX_PAUSE`. */
const PAUSE = 16;
const MAX_PAUSE = 256;

/** Whether a model with these abilities can summarise a conversation. */
export const summarises = ({ prompt, contextTokens }: ModelAbilities): boolean =>
  prompt === "full" && contextTokens >= MIN_CONTEXT_TOKENS;

export type CompactionOutcome = Extract<LoopEvent, { type: "compacted" | "compaction.failed" }>;

export interface PlannedCompaction {
  input: Compaction;
  /** Writes the outcome, and returns what is reported of it. Call it in a transaction. */
  settle(outcome: CompactionOutcome): AgentEvent;
}

export interface CompactionNeed {
  run: RunOfPrompt;
  conversation: Conversation;
  /** The last summary, which the new one replaces. */
  summary: StoredSummary | undefined;
  summaryTokens: number;
  /** The newest messages, up to the one to answer, and what each takes. */
  turns: readonly PastMessage[];
  tokens: readonly number[];
  /** Where those begin that the prompt shows without a new summary. */
  start: number;
  /** Messages that are neither among these nor in the summary. */
  before: number;
  /** The tokens that the conversation may take, and those of the whole context. */
  room: number;
  contextTokens: number;
  withSteps: boolean;
}

export interface Compacting {
  /** Null if there is nothing to summarise, or it has failed too recently. */
  plan(need: CompactionNeed): PlannedCompaction | null;
}

export interface CompactingParts {
  clock: Clock;
  queries: Pick<MessageQueries, "page" | "sizes" | "message" | "first" | "placeBefore">;
  steps: Pick<StepQueries, "of">;
  summaries: Pick<Summaries, "add" | "setFailures" | "of">;
  findConversation(conversationId: string): Conversation | undefined;
}

export function createCompacting({ clock, queries, steps, summaries, findConversation }: CompactingParts): Compacting {
  /** The oldest messages after the last summary and before `end`, in parts that the model can read one at a time. */
  function sourceOf({ conversation, summary, withSteps }: CompactionNeed, end: number, partTokens: number): Source {
    const source: Source = { parts: [], rows: [], tokens: 0, isTainted: false };
    let part: string[] = [];
    let left = partTokens;
    let characters = 0;
    const close = () => {
      if (part.length > 0) source.parts.push(part.join("\n\n"));
      part = [];
      left = partTokens;
    };
    const { conversationId } = conversation;
    const done = summary?.toSeq ?? 0;
    // Numbers are given to all conversations together: there are at most as many messages between two of them.
    const leftOut = end - done > MAX_BACKLOG ? queries.placeBefore(conversationId, end, MAX_BACKLOG) : 0;
    for (const row of rowsFrom(conversationId, Math.max(done, leftOut), end)) {
      const turn = row.role === "agent" && withSteps ? steps.of(row.messageId, row.text) : null;
      const text = fitted(toldAs(row, turn?.text ?? row.text, turn?.steps ?? []), partTokens);
      const tokens = tokensOf(text) + 1;
      if (tokens > left) close();
      if (source.parts.length === MAX_PARTS || characters + text.length > MAX_CHARACTERS) break;
      left -= tokens;
      characters += text.length;
      part.push(text);
      source.rows.push({ messageSeq: row.messageSeq, messageId: row.messageId });
      source.tokens += turn ? tokensOfTurn(turn) : tokensOfMessage(row.tokens);
      source.isTainted ||= row.tainted;
    }
    close();
    return source;
  }

  /** The messages between these two, oldest first. */
  function* rowsFrom(conversationId: string, from: number, end: number): Generator<Message> {
    for (let after = from, isEnd = false; !isEnd; ) {
      const { rows, hasMore } = readPage(queries, conversationId, "asc", after, PAGE);
      for (const row of rows) {
        if (row.messageSeq >= end) return;
        after = row.messageSeq;
        yield row;
      }
      isEnd = !hasMore;
    }
  }

  /** Until many messages more have come, or those that could not be summarised have reached the end of their life. */
  function isPaused({ conversationId, compactionFailures, compactionFailedAt }: Conversation): boolean {
    if (compactionFailures === 0) return false;
    const more = messagesToWait(compactionFailures);
    if (queries.placeBefore(conversationId, Number.MAX_SAFE_INTEGER, more - 1) > compactionFailedAt) return false;
    return (queries.first(conversationId)?.messageSeq ?? 0) <= compactionFailedAt;
  }

  return {
    plan(need) {
      const { run, conversation, summary, summaryTokens, turns, tokens, start, room, contextTokens } = need;
      const { conversationId, compactionFailures } = conversation;
      if (isPaused(conversation)) return null;
      const from = startOfKept(turns, tokens, room * KEPT_SHARE);
      if (from === 0 && need.before === 0) return null;
      const end = Math.min(...turns.slice(from).map(({ messageSeq }) => messageSeq));
      // What was left out for good, of a conversation that was long before its first summary, is not looked for again.
      if (queries.placeBefore(conversationId, end, 0) <= (summary?.toSeq ?? 0)) return null;
      const maxTokens = Math.max(MIN_SUMMARY_TOKENS, Math.min(MAX_SUMMARY_TOKENS, Math.floor(room * SUMMARY_SHARE)));
      const partTokens = contextTokens - reserveOf(contextTokens) - 3 * maxTokens - INSTRUCTION_TOKENS;
      const source = sourceOf(need, end, partTokens);
      const [first, last] = [source.rows[0], source.rows.at(-1)];
      if (first === undefined || last === undefined) return null;
      // There may be more than is summarised at once.
      const left = [...turns.keys()].filter((at) => (turns[at]?.messageSeq ?? 0) > last.messageSeq);
      const missing = left.length < turns.length ? 0 : Math.max(0, need.before - source.rows.length);
      const still = left.filter((at) => at >= start);
      const rest = still.reduce((all, at) => all + (tokens[at] ?? 0), 0);
      const input: Compaction = {
        parts: source.parts,
        messages: source.rows.length,
        isTainted: source.isTainted,
        maxTokens,
        still: still.map((at) => at - start),
        earlier: missing + left.length - still.length,
        tokensBefore: summaryTokens + source.tokens + rest,
        tokensOfRest: rest,
      };
      const before = summary && asSummary(summary);

      function fail(reason: string): AgentEvent {
        const now = findConversation(conversationId);
        const newest = queries.placeBefore(conversationId, Number.MAX_SAFE_INTEGER, 0);
        summaries.setFailures(conversationId, (now?.compactionFailures ?? 0) + 1, newest);
        return { type: "context.compaction_failed", runId: run.runId, reason };
      }

      return {
        input,
        settle(outcome) {
          if (outcome.type === "compaction.failed") return fail(outcome.reason);
          if (!queries.message(first.messageId) || !queries.message(last.messageId)) return fail(DELETED);
          if (summary && !summaries.of(conversationId).some(({ toSeq }) => toSeq === summary.toSeq))
            return fail(DELETED);
          const made = summaryOf(before, input, outcome.text, outcome.items);
          const tokensAfter = tokensWith(made, input);
          if (tokensAfter === null) return fail(NOT_SHORTER);
          summaries.add({
            conversationId,
            agentId: run.agentId,
            fromSeq: summary?.fromSeq ?? first.messageSeq,
            toSeq: last.messageSeq,
            text: made.text,
            items: made.items,
            messages: made.messages,
            tainted: made.isTainted,
            createdAt: clock.now(),
          });
          if (compactionFailures > 0) summaries.setFailures(conversationId, 0, 0);
          return {
            type: "context.compacted",
            runId: run.runId,
            fromMessageId: first.messageId,
            toMessageId: last.messageId,
            tokensBefore: input.tokensBefore,
            tokensAfter,
          };
        },
      };
    },
  };
}

const DELETED = "messages that it stands for were deleted meanwhile";

interface Source {
  parts: string[];
  rows: Pick<Message, "messageSeq" | "messageId">[];
  /** What the messages take in a prompt. */
  tokens: number;
  isTainted: boolean;
}

const messagesToWait = (failures: number): number => Math.min(MAX_PAUSE, PAUSE * 2 ** (failures - 1));

/**
 * Where the messages begin that stay: as many of the newest as take at most `room`, half a window at most, and so that no
 * earlier message comes after them in the conversation. The message to answer always stays.
 */
function startOfKept(turns: readonly PastMessage[], tokens: readonly number[], room: number): number {
  let left = room;
  let start = turns.length - 1;
  left -= tokens[start] ?? 0;
  const first = Math.max(0, turns.length - WINDOW_MESSAGES * KEPT_SHARE);
  while (start > first && left >= (tokens[start - 1] ?? 0)) left -= tokens[--start] ?? 0;
  for (let newestBefore = Math.max(0, ...turns.slice(0, start).map(({ messageSeq }) => messageSeq)); ; start++) {
    const one = turns[start];
    if (one === undefined) return turns.length - 1;
    const oldestAfter = Math.min(...turns.slice(start).map(({ messageSeq }) => messageSeq));
    if (newestBefore < oldestAfter) return start;
    newestBefore = Math.max(newestBefore, one.messageSeq);
  }
}

/** A text cut to so many tokens, visibly. */
function fitted(text: string, tokens: number): string {
  const own = tokensOf(text);
  return own <= tokens ? text : cut(text, Math.floor((text.length * tokens) / own));
}

/** Who asks, in words: a summary that took a schedule's words for a person's would tell later prompts so. */
function askerOf({ originType, agentId, senderId, senderName }: Message): string {
  const name = cut(senderName.replaceAll(/\s+/g, " "), MAX_NAME);
  switch (originType) {
    case "schedule":
      return `The schedule "${name}", no person`;
    case "trigger":
      return `The trigger "${name}", no person`;
    case "heartbeat":
      return "The heartbeat, no person";
    case "agent":
      return senderId === agentId ? "Yourself, for a part of your task" : `The agent "${name}", no person`;
    default:
      return "Person";
  }
}

/** A message as the summariser reads it. */
function toldAs(row: Message, text: string, steps: readonly PastStep[]): string {
  if (row.role === "user") return `${askerOf(row)}: ${cut(text, MAX_MESSAGE)}`;
  const calls = steps.flatMap((step) =>
    step.calls.map(
      ({ call, result }) => `(called ${call.name} ${cut(call.input, MAX_CALL)} → ${cut(result, MAX_CALL)})`,
    ),
  );
  return ["Assistant:", ...calls, cut(text, MAX_MESSAGE)].join("\n");
}
