/**
 * An answer of the small model, judged while it is being written. Its beginning is held back until it has been judged:
 * a bad one is written anew, so nobody sees it. Later, what may become a fault is held back until it has not, and sampled
 * anew if it has. An answer that its limit cuts ends with a whole sentence.
 */
import type { Generation, GenerationOptions, Turn } from "./generation.ts";
import { type Fault, type Guard, lastWholeSentence } from "./guards.ts";
import { introduces } from "./introduction.ts";
import type { LengthWish } from "./length-wish.ts";
import { chooseToken } from "./sampling.ts";
import { possibleStart } from "./text-stream.ts";
import { sentenceEnds, wordsOf } from "./words.ts";

export interface GuardedOptions extends GenerationOptions {
  guard: Guard;
  wish: LengthWish;
  /** What is tried to begin with, one after the other and round again; one without tokens leaves it to the model. */
  openings: readonly (readonly number[])[];
  /** How near the text is to what was asked, from -1 to 1, and how near it has to be. */
  nearness(text: string): Promise<number>;
  nearEnough: number;
  /** Tokens of the name that follows "My name is", with its space; none where the agent has not been told one. */
  name: readonly number[];
}

/** Prompt tokens of one turn, as of any generation. */
const CHUNK_TOKENS = 128;
/**
 * Tokens of one turn while nothing has been shown: half the time of such a chunk. Whoever reads on already waits for it
 * unseen, and whoever waits for first words is served before that.
 */
const HIDDEN_STEPS = 8;
/** A beginning without an end of its sentence is judged at this length. */
const LOOK_AHEAD_TOKENS = 32;
/** One that is near enough already is shown at these: nobody waits for the end of its sentence. */
const EARLY_LOOKS = [8, 16];
/** Beginnings that are written at most; each with an opening that was tried before is warmer. */
const BEGINNINGS = 4;
const WARMER = [0, 0.3, 0.45, 0.6, 0.7];
/** Times that a later part is written anew. */
const REPAIRS = 4;
/** Half a sentence may still turn away: it is shown if it is nearer by this. */
const NEARER_EARLY = 0.05;
/** Half a sentence may still come to the subject, unless it is as far as this. */
const FAR_EARLY = 0.1;
/** A later sentence that is less near than this has left the subject: the answer has ended before it. */
const DRIFTED = 0.1;
/** Words of such a sentence that tell, and of an answer that may end. */
const SENTENCE_WORDS = 8;
/** The last part of the tokens, in which only whole sentences are shown. */
const CLOSING = 0.75;

interface Draft {
  opening: readonly number[];
  tokens: number[];
  fault: Fault | null;
  nearness: number;
}

export function createGuardedGeneration(options: GuardedOptions): Generation {
  const { prompt, slot, stepper, tokenizer, guard, wish, maxTokens, nearEnough } = options;
  let answer: number[] = [];
  let opening: readonly number[] = [];
  /** How much of the text there is after each token. */
  let lengths: number[] = [];
  let text = "";
  let shown = 0;
  let begun = false;
  const drafts: Draft[] = [];
  let repairs = 0;
  /** What the best beginning has wrong: it is not asked of it again. */
  let forgiven: Fault | null = null;

  async function feed(): Promise<Float32Array> {
    const done = slot.tokens.length;
    const next = [...prompt.slice(done), ...answer.slice(Math.max(0, done - prompt.length))].slice(0, CHUNK_TOKENS);
    const logits = await stepper.step(slot.index, done, next);
    for (const token of next) slot.tokens.push(token);
    return logits;
  }

  function setAnswer(tokens: number[]): void {
    answer = tokens;
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    let length = 0;
    text = "";
    lengths = tokens.map((token) => {
      text += decoder.decode(tokenizer.bytesOf(token), { stream: true });
      length = text.length;
      return length;
    });
    // What the slot holds beyond is forgotten; the last token is run again, for its logits.
    const common = commonTokens(slot.tokens.slice(prompt.length), tokens);
    slot.tokens.length = Math.min(slot.tokens.length, prompt.length + Math.min(common, tokens.length - 1));
  }

  /** Tokens that led astray, by where in the answer. */
  const banned = new Map<number, Set<number>>();

  function ban(at: number, tokens: readonly number[]): void {
    const astray = tokens[at];
    if (astray !== undefined) banned.set(at, (banned.get(at) ?? new Set()).add(astray));
  }

  /** After "My name is" a small model makes a name up: there it has its own. */
  function withName(tokens: readonly number[]): number[] {
    const written = new TextDecoder().decode(Uint8Array.from(tokens.flatMap((token) => [...tokenizer.bytesOf(token)])));
    return introduces(written) ? [...tokens, ...options.name] : [...tokens];
  }

  /** The drafts that began like this one. */
  const alike = () => drafts.filter((draft) => draft.opening === opening);

  // An opening of its own makes a beginning another one, without more chance in its words.
  const temperature = () => options.sampling.temperature + (WARMER[begun ? repairs : alike().length] ?? 0.7);

  function show(until: number): string {
    const from = shown;
    shown = Math.max(shown, until);
    return text.slice(from, shown);
  }

  /** The text as far as it can be the answer: up to a stop, or the sentence that was wished to be the last. */
  function endOfAnswer(): number | null {
    const stops = options.stop.map((stop) => text.indexOf(stop)).filter((at) => at >= 0);
    const ends = sentenceEnds(text).filter((end) => text.slice(0, end).trim() !== "");
    // More has to follow: "3." may become "3.5".
    const last = ends.filter((end) => end < text.length).at(wish.sentences - 1);
    const places = [...stops, ...(ends.length >= wish.sentences && last !== undefined ? [last] : [])];
    return places.length === 0 ? null : Math.min(...places);
  }

  /** More words than were wished, and the sentence has not ended. */
  const isTooLong = () => wish.words < wordsOf(text.slice(0, sentenceEnds(text)[0] ?? text.length)).length;

  /** The beginning that there is to judge: its sentence, or what there is at the end; null where more has to come. */
  function wholeBeginning(ended: boolean): string | null {
    const end = sentenceEnds(text).find((at) => at < text.length && wordsOf(text.slice(0, at)).length >= 3);
    if (end !== undefined) return text.slice(0, end);
    return ended || answer.length >= Math.min(LOOK_AHEAD_TOKENS, maxTokens) ? text : null;
  }

  /** Where the sentence begins that has not been judged yet; its words are not shown before. */
  let unsettled = 0;

  /** The place before a sentence that has left the subject, or how far the text may be shown. */
  async function judgeLater(ended: boolean): Promise<{ stop: boolean; until: number }> {
    const ends = sentenceEnds(text);
    for (;;) {
      const from = ends.find((end) => end > unsettled);
      if (from === undefined) return { stop: false, until: text.length };
      const next = ends.find((end) => end > from);
      const sentence = wordsOf(text.slice(from, next));
      if (next === undefined && !ended && sentence.length < SENTENCE_WORDS) return { stop: false, until: from };
      const isEnough = wordsOf(text.slice(0, from)).length >= SENTENCE_WORDS;
      if (isEnough && sentence.length > 0 && (await options.nearness(text.slice(from, next))) < DRIFTED) {
        return { stop: true, until: from };
      }
      unsettled = from;
    }
  }

  /** Judges half a sentence. One that is to have few words is known when it has ended. */
  async function lookEarly(): Promise<boolean> {
    if (!EARLY_LOOKS.includes(answer.length) || Number.isFinite(wish.words) || guard.mayFail(text)) return false;
    const nearness = await options.nearness(text);
    if (nearness >= nearEnough + NEARER_EARLY) return true;
    return nearness < FAR_EARLY && reject(null, nearness);
  }

  /** True once there is a beginning to go on from. */
  async function judgeBeginning(beginning: string, found: Fault | null): Promise<boolean> {
    const fault = found ?? guard.faultOfBeginning(beginning);
    const nearness = fault === null ? await options.nearness(beginning) : -1;
    return (fault === null && nearness >= nearEnough) || reject(fault, nearness);
  }

  function begin(): void {
    opening = options.openings[drafts.length % options.openings.length] ?? [];
    // The same next word leads to the same sentence.
    banned.clear();
    for (const { tokens } of alike()) ban(opening.length, tokens);
    setAnswer(withName(opening));
  }

  /** Begins anew; true where it was the last time, and the best beginning is the one to go on from. */
  function reject(fault: Fault | null, nearness: number): boolean {
    drafts.push({ opening, tokens: answer, fault, nearness });
    if (drafts.length < BEGINNINGS) {
      begin();
      return false;
    }
    const best = drafts.reduce((a, b) => (b.nearness > a.nearness ? b : a));
    forgiven = best.fault;
    setAnswer(best.tokens);
    return true;
  }

  /** Runs a chunk of the prompt, or writes a token. */
  async function takeStep(): Promise<Turn> {
    const logits = await feed();
    if (slot.tokens.length < prompt.length + answer.length) return { text: "" };
    const sampling = { ...options.sampling, temperature: temperature() };
    for (const token of banned.get(answer.length) ?? []) logits[token] = Number.NEGATIVE_INFINITY;
    const token = chooseToken(logits, new Set(answer), sampling, options.random);
    const ended = token === tokenizer.endOfTurn;
    if (!ended) setAnswer(withName([...answer, token]));

    const found = guard.faultIn(text) ?? (isTooLong() ? "length" : null);
    const fault = found === forgiven ? null : found;
    if (!begun) {
      const beginning = fault === null ? wholeBeginning(ended) : text;
      const before = answer;
      const goesOn = beginning === null ? await lookEarly() : await judgeBeginning(beginning, fault);
      if (!goesOn) return { text: "" };
      begun = true;
      // Another draft was taken up again: it goes on from where it was judged.
      if (answer !== before) return { text: "" };
    } else if (fault !== null) {
      if (repairs < REPAIRS) {
        repairs++;
        // A token of which a part was shown stays.
        const kept = lengths.findIndex((length) => length >= shown) + 1;
        if (kept > 0 && kept < answer.length) {
          ban(kept, answer);
          setAnswer(answer.slice(0, kept));
          return { text: "" };
        }
      }
      return { text: "", reason: "stop" };
    }

    const later = Number.isFinite(wish.sentences) ? await judgeLater(ended) : null;
    if (later?.stop === true) return { text: show(later.until), reason: "stop" };
    const end = endOfAnswer();
    if (end !== null) return { text: show(end), reason: "stop" };
    if (ended) return { text: show(text.length), reason: "stop" };
    if (answer.length >= maxTokens) {
      const whole = lastWholeSentence(text);
      return { text: show(whole > 0 ? whole : text.length), reason: "length" };
    }
    const safe =
      answer.length > CLOSING * maxTokens
        ? lastWholeSentence(text)
        : Math.min(
            later?.until ?? text.length,
            guard.safeLength(text),
            text.length - possibleStart(text, options.stop),
          );
    return { text: show(safe) };
  }

  begin();
  return {
    completionTokens: () => answer.length,
    async takeTurn() {
      for (let steps = 1; ; steps++) {
        const turn = await takeStep();
        const isReading = slot.tokens.length < prompt.length;
        if (begun || turn.reason !== undefined || isReading || steps === HIDDEN_STEPS) return turn;
      }
    },
  };
}

function commonTokens(a: readonly number[], b: readonly number[]): number {
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at++;
  return at;
}
