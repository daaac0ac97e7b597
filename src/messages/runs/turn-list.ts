import type { MessagePart, ModelMessage } from "../../models/engine.ts";
import { NO_MESSAGES, TURNS_TOGETHER, type TurnMessages } from "../../runtime/hosted-run.ts";
import { messagesOf } from "../../runtime/prompt.ts";
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
  /** Null for a long text, and one with steps, which are read once a prompt shows them. */
  turn: Turn | null;
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

/** Of a message, besides its text. */
const MESSAGE_BYTES = 320;

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
  /** What the turns are in requests. */
  readonly #messages: (MessagePart | null)[] = [];
  /** Of `TURNS_TOGETHER` turns each, once they have been read. */
  readonly #together: (readonly ModelMessage[] | null)[] = [];
  #characters = 0;
  #hasSteps = false;
  /** Before this place, nothing is kept of what is read only when it is shown. */
  #firstRead = 0;

  /** The memory that it takes, about: its texts are kept twice, also as requests have them. */
  get bytes(): number {
    return this.#all.length * MESSAGE_BYTES + 2 * this.#characters;
  }

  /** Adds one that is newer than all others: after what it answers, if that is among them, or else at the end. */
  add(one: PastMessage, kept?: { turn: Turn; message: MessagePart }): void {
    const asked = one.askedSeq === null ? -1 : this.#seqs.lastIndexOf(one.askedSeq);
    const at = asked < 0 ? this.#all.length : asked + 1;
    insert(this.#all, at, one);
    insert(this.#seqs, at, one.messageSeq);
    insert(this.#tokens, at, one.tokens);
    insert(this.#tokensWithSteps, at, one.tokensWithSteps);
    insert(this.#tainted, at, one.tainted);
    insert(this.#turns, at, null);
    insert(this.#messages, at, null);
    this.#together.length = Math.min(this.#together.length, Math.floor(at / TURNS_TOGETHER));
    this.#hasSteps ||= hasSteps(one);
    if (kept) this.#keep(at, kept.turn, kept.message);
    else if (one.turn) this.#keep(at, one.turn);
  }

  #keep(at: number, turn: Turn, message = partOf(messagesOf(turn))): void {
    this.#turns[at] = turn;
    this.#messages[at] = message;
    this.#characters += charactersOf(turn);
  }

  /** Whether a message with this number is among them. */
  has(messageSeq: number): boolean {
    return this.#seqs.includes(messageSeq);
  }

  /** A list of the newer messages alone. */
  newerThan(messageSeq: number): TurnList {
    const list = new TurnList();
    const newer = [...this.#all.entries()].filter(([, one]) => one.messageSeq > messageSeq);
    for (const [at, one] of newer.sort(([, a], [, b]) => a.messageSeq - b.messageSeq)) {
      const [turn, message] = [this.#turns[at], this.#messages[at]];
      list.add(one, turn && message ? { turn, message } : undefined);
    }
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
      from: (place, withSteps) => ({
        ...this.#shown(start + place, end, withSteps),
        turnTokens: tokens(withSteps).slice(start + place, end),
        isTainted: this.#tainted.slice(start + place, end).includes(true),
      }),
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

  #shown(start: number, end: number, withSteps: boolean): Pick<PromptTurns, "conversation" | "turnMessages"> {
    const isAsKept = withSteps || !this.#hasSteps;
    this.#forgetBefore(start);
    for (let at = this.#turns.indexOf(null, start); at >= 0 && at < end; at = this.#turns.indexOf(null, at + 1)) {
      const one = this.#all[at] as PastMessage;
      if (!isAsKept && hasSteps(one)) continue;
      const turn = one.read?.(withSteps);
      if (turn) this.#keep(at, turn);
    }
    const each = this.#messages.slice(start, end);
    const conversation = this.#turns.slice(start, end) as Turn[];
    if (isAsKept) return { conversation, turnMessages: { each, ...this.#togetherBetween(start, end) } };
    // A model without tools is shown the texts of a conversation in which another one has used some.
    for (const [at, one] of this.#all.slice(start, end).entries()) {
      if (!hasSteps(one) || one.read === null) continue;
      conversation[at] = one.read(false);
      each[at] = null;
    }
    return { conversation, turnMessages: { ...NO_MESSAGES, each } };
  }

  /** Gives up what was read of messages that prompts show no longer. */
  #forgetBefore(start: number): void {
    for (let at = this.#firstRead; at < start; at++) {
      const turn = this.#turns[at];
      if (!turn || this.#all[at]?.read === null) continue;
      this.#characters -= charactersOf(turn);
      this.#turns[at] = this.#messages[at] = null;
      this.#together[Math.floor(at / TURNS_TOGETHER)] = null;
    }
    this.#firstRead = start;
  }

  #togetherBetween(start: number, end: number): Pick<TurnMessages, "together" | "first"> {
    const [from, to] = [Math.ceil(start / TURNS_TOGETHER), Math.floor(end / TURNS_TOGETHER)];
    while (this.#together.length < to) this.#together.push(null);
    for (let at = from; at < to; at++) {
      this.#together[at] ??= this.#messages
        .slice(at * TURNS_TOGETHER, (at + 1) * TURNS_TOGETHER)
        .flat() as ModelMessage[];
    }
    return { together: this.#together.slice(from, to), first: from * TURNS_TOGETHER - start };
  }
}

const partOf = (messages: ModelMessage[]): MessagePart => (messages.length === 1 && messages[0]) || messages;

const hasSteps = ({ tokens, tokensWithSteps }: PastMessage): boolean => tokens !== tokensWithSteps;

function charactersOf({ text, steps = [] }: Turn): number {
  let sum = text.length;
  for (const step of steps) {
    sum += step.text.length;
    for (const { call, result } of step.calls) sum += call.name.length + call.input.length + result.length;
  }
  return sum;
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
