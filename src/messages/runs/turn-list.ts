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
}

/** Reads a message as prompts show it. */
export type ReadTurn = (messageSeq: number, withSteps: boolean) => Turn;

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

/** Of a message, and of its turn besides the text. */
const [MESSAGE_BYTES, TURN_BYTES] = [140, 150];

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
  /** With their steps. Null until a prompt shows them. */
  readonly #turns: (Turn | null)[] = [];
  /** What the turns are in requests. */
  readonly #messages: (MessagePart | null)[] = [];
  /** Of `TURNS_TOGETHER` turns each, once a prompt shows them. */
  readonly #together: (readonly ModelMessage[] | null)[] = [];
  readonly #read: ReadTurn;
  #hasSteps = false;
  /** No turns are kept before this place. */
  #firstKept = 0;
  #turnBytes = 0;

  constructor(read: ReadTurn) {
    this.#read = read;
  }

  /** The memory that it takes, about. */
  get bytes(): number {
    return this.#all.length * MESSAGE_BYTES + this.#turnBytes;
  }

  /**
   * Adds one that is newer than all others: after what it answers, if that is among them, or else at the end. Its turn is
   * given if it has been read, and what that is in requests if that has been made.
   */
  add(one: PastMessage, turn: Turn | null = null, message?: MessagePart | null): void {
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
    this.#firstKept = Math.min(this.#firstKept, at);
    this.#hasSteps ||= hasSteps(one);
    if (turn) this.#keep(at, turn, message);
  }

  #keep(at: number, turn: Turn, message: MessagePart | null = null): void {
    this.#turns[at] = turn;
    this.#messages[at] = message ?? partOf(messagesOf(turn));
    this.#turnBytes += bytesOf(turn);
  }

  /** Whether a message with this number is among them. */
  has(messageSeq: number): boolean {
    return this.#seqs.includes(messageSeq);
  }

  /** A list of the newer messages alone. */
  newerThan(messageSeq: number): TurnList {
    const list = new TurnList(this.#read);
    const newer = [...this.#all.entries()].filter(([, one]) => one.messageSeq > messageSeq);
    newer.sort(([, a], [, b]) => a.messageSeq - b.messageSeq);
    for (const [at, one] of newer) list.add(one, this.#turns[at], this.#messages[at]);
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
      if (isAsKept || !hasSteps(one)) this.#keep(at, this.#read(one.messageSeq, hasSteps(one)));
    }
    const each = this.#messages.slice(start, end);
    const conversation = this.#turns.slice(start, end) as Turn[];
    if (isAsKept) return { conversation, turnMessages: { each, ...this.#togetherBetween(start, end) } };
    // A model without tools is shown the texts of a conversation in which another one has used some.
    for (const [at, one] of this.#all.slice(start, end).entries()) {
      if (!hasSteps(one)) continue;
      conversation[at] = this.#read(one.messageSeq, false);
      each[at] = null;
    }
    return { conversation, turnMessages: { ...NO_MESSAGES, each } };
  }

  /** Gives up turns that prompts show no longer. */
  #forgetBefore(start: number): void {
    for (let at = this.#firstKept; at < start; at++) {
      const turn = this.#turns[at];
      if (!turn) continue;
      this.#turnBytes -= bytesOf(turn);
      this.#turns[at] = this.#messages[at] = null;
      if (at / TURNS_TOGETHER < this.#together.length) this.#together[Math.floor(at / TURNS_TOGETHER)] = null;
    }
    this.#firstKept = start;
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

/** Its texts are kept twice, also as requests have them. */
function bytesOf({ text, steps = [] }: Turn): number {
  let bytes = TURN_BYTES + 2 * text.length;
  for (const step of steps) {
    bytes += TURN_BYTES + 2 * step.text.length;
    for (const { call, result } of step.calls) bytes += TURN_BYTES + 2 * (call.input.length + result.length);
  }
  return bytes;
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
