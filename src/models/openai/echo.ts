import { partsIn } from "../../lib/parts-in.ts";

/** Shorter matches reveal nothing, and would remove a server's ordinary words. */
const MIN_LENGTH = 12;

/**
 * Replaces the parts of a server's error that repeat the prompt by "…", because the operator's log must not contain
 * message text. `prompt` is on one line.
 */
export function withoutEchoes(words: string, prompt: string): string {
  const shown = withoutParts(words, prompt);
  // Some repeat it as JSON.
  const plain = oneLine(withoutEscapes(words));
  if (plain === words) return shown;
  const shownOfPlain = withoutParts(plain, prompt);
  return shownOfPlain !== plain && shownOfPlain.length < shown.length ? shownOfPlain : shown;
}

const withoutEscapes = (json: string): string =>
  json.replace(/\\(["\\/bfnrt]|u[\da-fA-F]{4})/g, (found) => JSON.parse(`"${found}"`));

function withoutParts(words: string, text: string): string {
  const count = Math.max(0, words.length - MIN_LENGTH + 1);
  const parts = Array.from({ length: count }, (_, at) => words.slice(at, at + MIN_LENGTH));
  let shown = "";
  let from = 0;
  for (const [at, isRepeated] of partsIn(text, parts).entries()) {
    if (!isRepeated) continue;
    // What is repeated without a gap is one repetition.
    if (at === 0 || at > from) shown += `${words.slice(from, at)}…`;
    from = at + MIN_LENGTH;
  }
  return shown + words.slice(from);
}

/** Collapses white space and control characters to single spaces. */
export const oneLine = (text: string): string => text.replace(/[\s\p{C}]+/gu, " ").trim();
