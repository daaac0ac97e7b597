/** What a prompt shows of its conversation: its newest messages, and a summary in the place of older ones. */
import type { ModelAbilities } from "../../models/engine.ts";
import { startOfWindow } from "../../runtime/prompt-room.ts";
import type { RunInput } from "../../runtime/protocol.ts";
import { summaryText } from "../../runtime/summary.ts";
import { tokensOf } from "../../runtime/tokens.ts";
import type { Conversation, StoredSummary } from "../schema.ts";
import { asSummary, type Summaries } from "../summaries.ts";
import { type Compacting, type PlannedCompaction, summarises } from "./compacting.ts";
import type { PromptTurns } from "./turn-list.ts";
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
    const textTokens = (one: StoredSummary) => tokensOf(summaryText(asSummary(one)));
    // One that was made for a much larger model would leave no room.
    const usable = summaries.of(run.conversationId).filter((one) => textTokens(one) <= room * MOST_OF_ROOM);
    const messagesAfter = windows.read(run);
    const shownWith = (summary?: StoredSummary) => {
      const { turns, seen } = messagesAfter(summary?.toSeq ?? 0);
      const summaryTokens = summary ? textTokens(summary) : 0;
      const before = Math.max(0, (conversation?.messageCount ?? 0) - (summary?.messages ?? 0) - seen);
      const fits = before === 0 && summaryTokens + turns.allTokens(withSteps) <= room;
      return { summary, summaryTokens, turns, before, fits };
    };
    // The summary that stands for the fewest messages and leaves room for the others; else the latest.
    let shown = shownWith();
    for (const one of usable.toReversed()) {
      if (shown.fits) break;
      shown = shownWith(one);
    }
    const { summary, summaryTokens, turns, before, fits } = shown;
    const tokens = fits ? [] : turns.tokens(withSteps);
    const start = fits ? 0 : startOfWindow(tokens, room - summaryTokens, before);
    const compaction =
      fits || run.messageId === "" || !conversation || !summarises(model)
        ? null
        : compacting.plan({
            ...{ run, conversation, summary, summaryTokens, tokens, start, before, room, withSteps },
            turns: turns.all(),
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
