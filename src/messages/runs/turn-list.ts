import type { ModelMessage } from "../../models/engine.ts";
import { TURNS_TOGETHER, type TurnMessages } from "../../runtime/hosted-run.ts";
import type { Turn } from "../../runtime/protocol.ts";

/** A message of a conversation, as prompts show it. */
export interface PastMessage {
  messageSeq: number;
  /** The message that it answers; null if it answers none. */
  askedSeq: number | null;
  /** What a prompt counts for it, without and with the steps before its text. */
  tokens: number;
  tokensWithSteps: number;
  tainted: boolean;
  /** As every prompt shows it, and what that is in a request; null if it is to be read. */
  turn: Turn | null;
  message: ModelMessage | null;
  /** Reads a long text, and steps, only now. */
  read: ((withSteps: boolean) => Turn) | null;
}

/** What a prompt takes of a conversation. */
export interface PromptTurns {
  conversation: Turn[];
  /** What each turn takes. */
  turnTokens: number[];
  turnMessages: TurnMessages;
  /** Whether a stranger may have written a part of them. */
  isTainted: boolean;
}

/** Turns of a list that follow each other. To be used before more are added to it. */
export interface Turns {
  all(): PastMessage[];
  /** What each takes of a prompt, and all together. */
  tokens(withSteps: boolean): number[];
  allTokens(withSteps: boolean): number;
  /** Those from the one at this place to the last. */
  from(place: number, withSteps: boolean): PromptTurns;
}

/**
 * A conversation's messages, each answer after what it answers. What prompts take of each is kept side by side: to look at
 * each message of a long conversation takes longer than all the rest of a prompt, since most are no longer in the
 * processor's caches.
 */
export class TurnList {
  readonly #all: PastMessage[] = [];
  readonly #seqs: number[] = [];
  readonly #tokens: number[] = [];
  readonly #tokensWithSteps: number[] = [];
  readonly #tainted: boolean[] = [];
  readonly #turns: (Turn | null)[] = [];
  readonly #messages: (ModelMessage | null)[] = [];
  /** Of `TURNS_TOGETHER` turns each; null where one of them is to be read. */
  readonly #together: (readonly ModelMessage[] | null)[] = [];

  /** Adds one that is newer than all others: after what it answers, if that is among them, or else at the end. */
  add(one: PastMessage): void {
    const asked = one.askedSeq === null ? -1 : this.#seqs.lastIndexOf(one.askedSeq);
    const at = asked < 0 ? this.#all.length : asked + 1;
    insert(this.#all, at, one);
    insert(this.#seqs, at, one.messageSeq);
    insert(this.#tokens, at, one.tokens);
    insert(this.#tokensWithSteps, at, one.tokensWithSteps);
    insert(this.#tainted, at, one.tainted);
    insert(this.#turns, at, one.turn);
    insert(this.#messages, at, one.message);
    this.#together.length = Math.min(this.#together.length, Math.floor(at / TURNS_TOGETHER));
  }

  /** Whether a message with this number is among them. */
  has(messageSeq: number): boolean {
    return this.#seqs.includes(messageSeq);
  }

  /** A list of the newer messages alone. */
  newerThan(messageSeq: number): TurnList {
    const list = new TurnList();
    const newer = this.#all.filter((one) => one.messageSeq > messageSeq);
    for (const one of newer.sort((a, b) => a.messageSeq - b.messageSeq)) list.add(one);
    return list;
  }

  /** The turns after one message, up to another, or to the last one. As they are in a list of the newer messages alone. */
  after(messageSeq: number, last: number | null): Turns {
    const start = this.#startAfter(messageSeq);
    if (start === null) return this.newerThan(messageSeq).after(messageSeq, last);
    const end = last === null ? this.#all.length : this.#seqs.lastIndexOf(last) + 1;
    const tokens = (withSteps: boolean) => (withSteps ? this.#tokensWithSteps : this.#tokens);
    return {
      all: () => this.#all.slice(start, end),
      tokens: (withSteps) => tokens(withSteps).slice(start, end),
      allTokens: (withSteps) => sumOf(tokens(withSteps), start, end),
      from: (place, withSteps) => this.#between(start + place, end, withSteps),
    };
  }

  /** Null if they do not follow each other, or if an answer would be at another place without the older messages. */
  #startAfter(messageSeq: number): number | null {
    const seqs = this.#seqs;
    let start = seqs.length;
    while (start > 0 && Number(seqs[start - 1]) > messageSeq) start--;
    for (let at = 0; at < start; at++) if (Number(seqs[at]) > messageSeq) return null;
    const isAnswer = start > 0 && start < seqs.length && this.#all[start]?.askedSeq === seqs[start - 1];
    return isAnswer && Number(seqs[start + 1]) < Number(seqs[start]) ? null : start;
  }

  #between(start: number, end: number, withSteps: boolean): PromptTurns {
    const read = (turn: Turn | null, at: number) => turn ?? this.#all[start + at]?.read?.(withSteps);
    const turns = this.#turns.slice(start, end);
    return {
      conversation: (turns.includes(null) ? turns.map(read) : turns) as Turn[],
      turnTokens: (withSteps ? this.#tokensWithSteps : this.#tokens).slice(start, end),
      turnMessages: this.#messagesBetween(start, end),
      isTainted: this.#tainted.slice(start, end).includes(true),
    };
  }

  #messagesBetween(start: number, end: number): TurnMessages {
    const [from, to] = [Math.ceil(start / TURNS_TOGETHER), Math.floor(end / TURNS_TOGETHER)];
    for (let at = this.#together.length; at < to; at++) {
      const several = this.#messages.slice(at * TURNS_TOGETHER, (at + 1) * TURNS_TOGETHER);
      this.#together.push(several.includes(null) ? null : (several as ModelMessage[]));
    }
    const together = this.#together.slice(from, to);
    return { each: this.#messages.slice(start, end), together, first: from * TURNS_TOGETHER - start };
  }
}

/** Mostly at the end, where `splice` takes several times as long. */
function insert<T>(list: T[], at: number, one: T): void {
  if (at === list.length) list.push(one);
  else list.splice(at, 0, one);
}

function sumOf(numbers: readonly number[], start: number, end: number): number {
  let sum = 0;
  for (let at = start; at < end; at++) sum += Number(numbers[at]);
  return sum;
}
