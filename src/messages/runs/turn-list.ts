import type { ModelMessage } from "../../models/engine.ts";
import type { Turn } from "../../runtime/protocol.ts";

/** What a prompt counts, with and without the steps before the texts of answers. */
export interface Size {
  tokens: number;
  tokensWithSteps: number;
}

/** A message of a conversation, in the order in which messages were answered. */
export interface PastMessage extends Size {
  messageSeq: number;
  tainted: boolean;
  /** As every prompt shows it, and what that is in a request; null if it is to be read, because it is long or has steps. */
  plain: { turn: Turn; message: ModelMessage } | null;
  /** Reads a long text, and steps, only now. */
  read(withSteps: boolean): Turn;
}

/** What a prompt takes of a conversation. */
export interface PromptTurns {
  conversation: Turn[];
  /** What each turn takes. */
  turnTokens: number[];
  /** What each turn is in a request, if it is the same object in every request; else null. */
  turnMessages: (ModelMessage | null)[];
  /** Whether a stranger may have written a part of them. */
  isTainted: boolean;
}

/**
 * A conversation's turns, to which more are added. What prompts take of each is kept side by side: to look at each turn
 * of a long conversation takes longer than all the rest of a prompt, since most are no longer in the processor's caches.
 */
export class TurnList implements Size {
  readonly all: PastMessage[] = [];
  tokens = 0;
  tokensWithSteps = 0;
  readonly #plain: (Turn | null)[] = [];
  readonly #messages: (ModelMessage | null)[] = [];
  readonly #tokens: number[] = [];
  readonly #tokensWithSteps: number[] = [];
  readonly #toRead: number[] = [];
  #lastTainted = -1;

  add(turn: PastMessage): void {
    const { tokens, tokensWithSteps, plain, tainted } = turn;
    const at = this.all.push(turn) - 1;
    this.tokens += tokens;
    this.tokensWithSteps += tokensWithSteps;
    this.#plain.push(plain?.turn ?? null);
    this.#messages.push(plain?.message ?? null);
    this.#tokens.push(tokens);
    this.#tokensWithSteps.push(tokensWithSteps);
    if (plain === null) this.#toRead.push(at);
    if (tainted) this.#lastTainted = at;
  }

  /** Those from `start` to the last. */
  from(start: number, withSteps: boolean): PromptTurns {
    const conversation = this.#plain.slice(start);
    for (const at of this.#toRead) if (at >= start) conversation[at - start] = this.all[at]?.read(withSteps) ?? null;
    return {
      conversation: conversation as Turn[],
      turnTokens: (withSteps ? this.#tokensWithSteps : this.#tokens).slice(start),
      turnMessages: this.#messages.slice(start),
      isTainted: this.#lastTainted >= start,
    };
  }
}
