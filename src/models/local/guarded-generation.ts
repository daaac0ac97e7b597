/**
 * An answer of the small model, checked while it is being written. Its beginning is held back until it has been
 * checked, and a bad one is written again and never shown. Later, text that may become a fault is held back, and
 * sampled again if it does. An answer that reaches its limit ends with a complete sentence.
 */
import { lastWholeSentence, sentenceEnds, wordsOf } from "../../lib/words.ts";
import { breaksOff, closingOf, endOfAnswer, endsTooSoon } from "./ending.ts";
import { CHUNK_TOKENS, type Generation, type GenerationOptions, type Turn } from "./generation.ts";
import type { Fault, Guard } from "./guards.ts";
import { commonTokens, type Guide } from "./guidance.ts";
import { introduces } from "./introduction.ts";
import type { LengthWish } from "./length-wish.ts";
import { mayFollow } from "./openings.ts";
import { chooseToken } from "./sampling.ts";
import { possibleStart } from "./text-stream.ts";

export interface GuardedOptions extends GenerationOptions {
  guard: Guard;
  wish: LengthWish;
  /** Beginnings to try, in turn; an empty one leaves the beginning to the model. */
  openings: readonly (readonly number[])[];
  /** How close in meaning the text is to the question, from -1 to 1; a beginning needs `nearEnough`. */
  nearness(text: string): Promise<number>;
  nearEnough: number;
  /** How close one of the first beginnings is to be; at least `nearEnough`. */
  nearWanted: number;
  /** Changes the model's logits before a token is chosen, given the answer so far. */
  guide: Guide;
  /** What the first sentence goes on with where it would end without having listed anything; null if it may end. */
  continuation: ((sentence: string) => readonly number[]) | null;
  /** Tokens of the name that follows "My name is", with the space before it; empty if the agent has no name. */
  name: readonly number[];
}

/**
 * Tokens of one turn while nothing has been shown; they take about as long as such a chunk. Readers of other answers do
 * not notice the wait, and this answer's first words come sooner.
 */
const HIDDEN_STEPS = 16;
/** A beginning whose sentence has not ended is checked at this length. */
const LOOK_AHEAD_TOKENS = 32;
/** At these lengths, one that is close enough already is shown without waiting for the end of its sentence. */
const EARLY_LOOKS = [5, 8, 12, 16];
/** At these lengths, one that is far from the question is given up. */
const LATER_LOOKS = [8, 16];
/** How many beginnings are tried, and how many if few words were asked for: most are too long, and all are short. */
const BEGINNINGS = 8;
const SHORT_BEGINNINGS = 12;
/** After so many beginnings, the closest is used if it is close enough, though not as close as wanted. */
const KEEN_BEGINNINGS = 4;
/** If an opening was tried before, the temperature is higher. */
const WARMER = [0, 0.3, 0.45, 0.6, 0.7];
/** How often later parts are written again; more often while half a sentence is shown: an answer must not end there. */
const [REPAIRS, REPAIRS_IN_SENTENCE] = [4, 16];
/** Half a sentence may still move away from the subject: it is shown if it is closer by this margin. */
const NEARER_EARLY = 0.05;
/** Half a sentence may still come to the subject, unless it is less close than this. */
const FAR_EARLY = 0.1;
/** A later sentence that is less close than this has left the subject: the answer ends before it. */
const DRIFTED = 0.1;
/** A sentence with fewer words cannot be judged, and an answer with fewer words does not end. */
const SENTENCE_WORDS = 8;
/** After this part of the tokens, only whole sentences are shown. */
const CLOSING = 0.75;
/** "I like music, but I don't": such a turn may become a fault, so it is shown with its whole sentence. */
const TURN = /,? but\b[^.!?\n]*$|,\s*$/i;
/** A sentence of one part: it has listed nothing. */
const ONE_PART = /^[^,;:.!?\n]{12,}[.!]\s*$/;

interface Draft {
  opening: readonly number[];
  tokens: number[];
  fault: Fault | null;
  nearness: number;
}

export function createGuardedGeneration(options: GuardedOptions): Generation {
  const { prompt, slot, stepper, tokenizer, guard, wish, maxTokens, nearEnough, nearWanted } = options;
  let answer: number[] = [];
  let opening: readonly number[] = [];
  /** The length of the text after each token. */
  let lengths: number[] = [];
  let text = "";
  let shown = 0;
  let begun = false;
  const drafts: Draft[] = [];
  let repairs = 0;
  /** The fault of the best beginning, if that had to be used: it is ignored from then on. */
  let forgiven: Fault | null = null;
  /** Said instead of an answer. */
  let instead: string | null = null;

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
    // Other rows of the slot are discarded; the last token runs again, for its logits.
    const common = commonTokens(slot.tokens.slice(prompt.length), tokens);
    slot.tokens.length = Math.min(slot.tokens.length, prompt.length + Math.min(common, tokens.length - 1));
  }

  /** Tokens that led to a fault, by their position in the answer. */
  const banned = new Map<number, Set<number>>();

  function ban(at: number, tokens: readonly number[]): void {
    const astray = tokens[at];
    if (astray !== undefined) banned.set(at, (banned.get(at) ?? new Set()).add(astray));
  }

  const textOf = (tokens: readonly number[]): string =>
    new TextDecoder().decode(Uint8Array.from(tokens.flatMap((token) => [...tokenizer.bytesOf(token)])));

  /** After "My name is", a small model makes up a name, so the right one is inserted. */
  function withName(tokens: readonly number[]): number[] {
    return introduces(textOf(tokens)) ? [...tokens, ...options.name] : [...tokens];
  }

  /** The answer with its next token, or with the continuation in the place of the end of its first sentence. */
  function extended(token: number): number[] {
    if (options.continuation === null || !ONE_PART.test(text + textOf([token]))) return withName([...answer, token]);
    return [...answer, ...options.continuation(text)];
  }

  /** The drafts that began like this one. */
  const alike = () => drafts.filter((draft) => draft.opening === opening);

  // A beginning with an opening of its own differs anyway, so it needs no higher temperature.
  const temperature = () => options.sampling.temperature + (WARMER[begun ? repairs : alike().length] ?? 0.7);

  function show(until: number): string {
    const from = shown;
    shown = Math.max(shown, until);
    return text.slice(from, shown);
  }

  /** The rest of the answer, with what it lacks at its end. */
  function showLast(until: number): string {
    const { length } = text.slice(0, until).trimEnd();
    const closing = shown <= length ? closingOf(text.slice(0, length)) : "";
    return closing === "" ? show(until) : show(length) + closing;
  }

  /** Whether there are more words than were asked for, and the sentence has not ended. */
  const isTooLong = () => wish.words < wordsOf(text.slice(0, sentenceEnds(text)[0] ?? text.length)).length;

  /** The beginning to check: its first sentence, or the whole text at the end; null while more must come. */
  function wholeBeginning(ended: boolean): string | null {
    const end = sentenceEnds(text).find((at) => at < text.length && wordsOf(text.slice(0, at)).length >= 3);
    if (end !== undefined) return text.slice(0, end);
    return ended || answer.length >= Math.min(LOOK_AHEAD_TOKENS, maxTokens) ? text : null;
  }

  /** Where the first unchecked sentence begins. Only checked sentences are shown. */
  let unsettled = 0;

  /** How far the text may be shown; `stop` if the sentence after that place has left the subject. */
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

  /** Checks half a sentence. If few words were asked for, this waits for the end of the sentence. */
  async function lookEarly(): Promise<boolean> {
    if (!EARLY_LOOKS.includes(answer.length) || Number.isFinite(wish.words) || guard.mayFail(text)) return false;
    const nearness = await options.nearness(text);
    if (nearness >= nearWanted + NEARER_EARLY) return true;
    return nearness < FAR_EARLY && LATER_LOOKS.includes(answer.length) && reject(null, nearness);
  }

  /** True once there is a beginning to continue. */
  async function judgeBeginning(beginning: string, found: Fault | null): Promise<boolean> {
    const fault = found ?? guard.faultOfBeginning(beginning);
    // If all fail, the best of those that only evade the question is used.
    const nearness = fault === null || fault === "evasion" ? await options.nearness(beginning) : -1;
    return (fault === null && nearness >= nearWanted) || reject(fault, nearness);
  }

  function begin(): void {
    opening = options.openings[drafts.length % options.openings.length] ?? [];
    // The same next word leads to the same sentence.
    banned.clear();
    for (const { tokens } of alike()) ban(opening.length, tokens);
    setAnswer(withName(opening));
  }

  /** Begins again. Returns true after the last attempt, when the best beginning is continued. */
  function reject(fault: Fault | null, nearness: number): boolean {
    drafts.push({ opening, tokens: answer, fault, nearness: nearness - (fault === null ? 0 : 1) });
    const best = drafts.reduce((a, b) => (b.nearness > a.nearness ? b : a));
    const isEnough = drafts.length >= KEEN_BEGINNINGS && best.nearness >= nearEnough;
    if (!isEnough && drafts.length < (Number.isFinite(wish.words) ? SHORT_BEGINNINGS : BEGINNINGS)) {
      begin();
      return false;
    }
    forgiven = best.fault;
    instead = forgiven === null ? null : guard.insteadOf(forgiven);
    setAnswer(best.tokens);
    return true;
  }

  /** Runs a chunk of the prompt, or writes a token. */
  async function takeStep(): Promise<Turn> {
    const fed = await feed();
    if (slot.tokens.length < prompt.length + answer.length) return { text: "" };
    for (const token of banned.get(answer.length) ?? []) fed[token] = Number.NEGATIVE_INFINITY;
    const logits = await options.guide(fed, answer);
    const sampling = { ...options.sampling, temperature: temperature() };
    const token = chooseToken(logits, new Set(answer), sampling, options.random);
    const ended = tokenizer.ends.has(token);
    if (!mayFollow(text, textOf([token])) || (ended && endsTooSoon(text, wish))) {
      ban(answer.length, [...answer, token]);
      setAnswer(answer);
      return { text: "" };
    }
    if (!ended) setAnswer(extended(token));

    const found = guard.faultIn(text) ?? (isTooLong() ? "length" : null);
    const fault = found === forgiven ? null : found;
    if (!begun) {
      const beginning = fault === null ? wholeBeginning(ended) : text;
      const before = answer;
      const isAccepted = beginning === null ? await lookEarly() : await judgeBeginning(beginning, fault);
      if (!isAccepted) return { text: "" };
      begun = true;
      if (instead !== null) return { text: instead, reason: "stop" };
      // An earlier draft was chosen: it continues from where it was checked.
      if (answer !== before) return { text: "" };
    } else if (fault !== null) {
      if (repairs < (breaksOff(text.slice(0, shown)) ? REPAIRS_IN_SENTENCE : REPAIRS)) {
        repairs++;
        // A token stays if a part of it was shown.
        const kept = lengths.findIndex((length) => length >= shown) + 1;
        if (kept > 0 && kept < answer.length) {
          ban(kept, answer);
          setAnswer(answer.slice(0, kept));
          return { text: "" };
        }
      }
      return { text: shown > 0 && TURN.exec(text.slice(shown))?.index === 0 ? "." : "", reason: "stop" };
    }

    const later = Number.isFinite(wish.sentences) && wish.items === 0 ? await judgeLater(ended) : null;
    if (later?.stop === true) return { text: show(later.until), reason: "stop" };
    const end = endOfAnswer(text, options.stop, wish);
    if (end !== null) return { text: showLast(end), reason: "stop" };
    if (ended) return { text: showLast(text.length), reason: "stop" };
    if (answer.length >= maxTokens) {
      const whole = lastWholeSentence(text);
      return { text: showLast(whole > 0 ? whole : text.length), reason: "length" };
    }
    const safe =
      answer.length > CLOSING * maxTokens
        ? lastWholeSentence(text)
        : Math.min(
            later?.until ?? text.length,
            guard.safeLength(text),
            TURN.exec(text)?.index ?? text.length,
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
