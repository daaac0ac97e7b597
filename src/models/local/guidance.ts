/**
 * Keeps an answer on its question: each token is chosen for how much likelier the question makes it. A second slot runs
 * the same prompt with another message in its place, and what is likely after any message counts for less
 * (classifier-free guidance, arXiv 2306.17806). It costs a second step for each token.
 */
import { asksForOtherLanguage, type Language } from "../../lib/language.ts";
import { asksAboutWorld, asksForCode, asksForCorrection, asksForJoke } from "../../lib/questions.ts";
import { isGreeting } from "./openings.ts";
import type { Slot } from "./prefix-cache.ts";
import type { ChatMessage } from "./protocol.ts";
import type { Stepper } from "./stepper.ts";

/** How strongly the question counts; 0 would leave the model's own choice. At 1, it recites what it knows of a word. */
const STRENGTH = 0.5;
/** Tokens whose logits are this far below the best one are not considered: what no message makes likely is noise. */
const WITHIN = 3;
/** What a longer text says next depends on its own words. */
const GUIDED_TOKENS = 64;
/** The second slot stays small. The first conversation's prompt has 60 to 250 tokens. */
const MAX_PROMPT_TOKENS = 320;
/** The other message: it asks for nothing. */
const OTHER_MESSAGE = "Hello.";

/** The same conversation, but for its last message. */
export const withOtherMessage = (messages: readonly ChatMessage[]): ChatMessage[] => [
  ...messages.slice(0, -1),
  { role: "user", content: OTHER_MESSAGE },
];

/**
 * A greeting asks for no more than the other message, whose language would count in any other conversation. A translation
 * is often of a greeting: with guidance, "Bonjour" is what is likely after any message. What a question makes likelier is
 * seldom what is true: with guidance, water boils at 1.802 degrees, code loses the marks that it stands between, and a correction its words.
 */
export const wantsGuidance = (question: string, language: Language): boolean =>
  language === "en" &&
  ![isGreeting, asksForOtherLanguage, asksAboutWorld, asksForCode, asksForCorrection, asksForJoke].some((unguided) =>
    unguided(question),
  );

export interface GuidanceOptions {
  stepper: Stepper;
  /** The slot and the prompt of the answer. */
  slot: Slot;
  prompt: readonly number[];
  /** A slot of the guidance's own. */
  otherSlot: number;
  /** The prompt with the other message; not asked for if the answer's is long. */
  otherPrompt(): readonly number[];
}

/** Returns the logits to choose from, given the model's own and the answer so far; both are left as they are. */
export type Guide = (logits: Float32Array, answer: readonly number[]) => Promise<Float32Array>;

export function createGuidance({ stepper, slot, prompt, otherSlot, otherPrompt }: GuidanceOptions): Guide {
  /** The tokens whose rows the other slot has. */
  let rows: readonly number[] = [];
  let otherTokens: readonly number[] | undefined;

  function begin(): readonly number[] {
    const tokens = otherPrompt();
    const same = commonTokens(tokens, prompt);
    stepper.copyRows(slot.index, otherSlot, same);
    rows = tokens.slice(0, same);
    return tokens;
  }

  return async (logits, answer) => {
    if (prompt.length > MAX_PROMPT_TOKENS || answer.length > GUIDED_TOKENS) return logits;
    const own = logits.slice(); // the next step writes over them
    otherTokens ??= begin();
    const wanted = [...otherTokens, ...answer];
    const done = Math.min(commonTokens(rows, wanted), wanted.length - 1);
    const other = await stepper.step(otherSlot, done, wanted.slice(done));
    rows = wanted;
    if (answer.length === GUIDED_TOKENS) {
      stepper.discard(otherSlot);
      rows = []; // the end of the answer may be written again
    }
    let most = Number.NEGATIVE_INFINITY;
    for (const value of own) most = Math.max(most, value);
    for (let token = 0; token < own.length; token++) {
      const value = own[token] as number;
      own[token] =
        value < most - WITHIN ? Number.NEGATIVE_INFINITY : value + STRENGTH * (value - (other[token] as number));
    }
    return own;
  };
}

/** How many tokens two lists begin with in common. */
export function commonTokens(a: readonly number[], b: readonly number[]): number {
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at++;
  return at;
}
