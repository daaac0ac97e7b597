/** What a prompt shows of its conversation: its newest messages, and a summary in the place of older ones. */
import type { ModelAbilities } from "../../models/engine.ts";
import { startOfWindow } from "../../runtime/prompt-room.ts";
import type { RunInput } from "../../runtime/protocol.ts";
import { summaryText } from "../../runtime/summary.ts";
import { tokensOf } from "../../runtime/tokens.ts";
import type { Conversation, StoredSummary } from "../schema.ts";
import { asSummary, type Summaries } from "../summaries.ts";
import { type Compacting, type PlannedCompaction, summarises } from "./compacting.ts";
import { type PromptTurns, type Size, TurnList } from "./turn-list.ts";
import type { RunOfPrompt, Windows } from "./window.ts";

/** The conversation's part of a run's prompt. */
export interface ConversationPart extends PromptTurns, Pick<RunInput, "earlier" | "summary"> {
  /** What is to be summarised first, and what happens with the outcome. */
  compaction: PlannedCompaction | null;
}

export interface HistoryParts {
  windows: Pick<Windows, "read">;
  summaries: Pick<Summaries, "of">;
  findConversation(conversationId: string): Conversation | undefined;
  compacting: Compacting;
}

/** How much of the conversation's room a summary may take. */
const MOST_OF_ROOM = 1 / 3;

/** Chooses a conversation's part of a prompt, so that it takes at most `room` tokens. */
export type ReadHistory = (run: RunOfPrompt, room: number, model: ModelAbilities) => ConversationPart;

export const createHistory =
  ({ windows, summaries, findConversation, compacting }: HistoryParts): ReadHistory =>
  (run, room, model) => {
    const conversation = findConversation(run.conversationId);
    const withSteps = model.tools === true && model.prompt === "full";
    const tokensIn = (size: Size) => (withSteps ? size.tokensWithSteps : size.tokens);
    const textTokens = (one: StoredSummary) => tokensOf(summaryText(asSummary(one)));
    // One that was made for a much larger model would leave no room.
    const usable = summaries.of(run.conversationId).filter((one) => textTokens(one) <= room * MOST_OF_ROOM);
    let summary: StoredSummary | undefined;
    let summaryTokens = 0;
    let turns = new TurnList();
    let before = 0;
    let all = 0;
    // The summary that stands for the fewest messages and leaves room for the others; else the latest.
    for (const one of [undefined, ...usable.toReversed()]) {
      const recent = windows.read(run, one?.toSeq ?? 0);
      summary = one;
      summaryTokens = one ? textTokens(one) : 0;
      turns = recent.turns;
      before = Math.max(0, (conversation?.messageCount ?? 0) - (one?.messages ?? 0) - recent.seen);
      all = tokensIn(turns);
      if (before === 0 && summaryTokens + all <= room) break;
    }
    const fits = before === 0 && summaryTokens + all <= room;
    const tokens = fits ? [] : turns.all.map(tokensIn);
    const start = fits ? 0 : startOfWindow(tokens, room - summaryTokens, before);
    const compaction =
      fits || run.messageId === "" || !conversation || !summarises(model)
        ? null
        : compacting.plan({
            ...{ run, conversation, summary, summaryTokens, turns: turns.all, tokens, start, before, room, withSteps },
            contextTokens: model.contextTokens,
          });
    const part = turns.from(start, withSteps);
    return {
      ...part,
      earlier: before + start,
      ...(summary && { summary: asSummary(summary) }),
      compaction,
      isTainted: part.isTainted || summary?.tainted === true || compaction?.input.isTainted === true,
    };
  };
