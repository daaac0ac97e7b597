/** Shorter matches reveal nothing, and would remove a server's ordinary words. */
const MIN_LENGTH = 12;
const STEP = 4;

/**
 * Replaces the parts of a server's error that repeat the prompt by "…", because the operator's log must not contain
 * message text. `prompt` is on one line. `words` must be short: it finds repetitions of 15 characters or more, with one
 * search of the prompt for every four characters.
 */
export function withoutEchoes(words: string, prompt: string): string {
  const shown = withoutParts(words, prompt);
  // Some repeat it as JSON.
  const plain = oneLine(withoutEscapes(words));
  const shownOfPlain = withoutParts(plain, prompt);
  return shownOfPlain !== plain && shownOfPlain.length < shown.length ? shownOfPlain : shown;
}

const withoutEscapes = (json: string): string =>
  json.replace(/\\(["\\/bfnrt]|u[\da-fA-F]{4})/g, (found) => JSON.parse(`"${found}"`));

function withoutParts(words: string, text: string): string {
  let shown = "";
  let from = 0;
  for (let at = 0; at + MIN_LENGTH <= words.length; at += STEP) {
    if (at < from || !text.includes(words.slice(at, at + MIN_LENGTH))) continue;
    let [start, end] = [at, at + MIN_LENGTH];
    while (start > from && text.includes(words.slice(start - 1, end))) start--;
    while (end < words.length && text.includes(words.slice(start, end + 1))) end++;
    shown += `${words.slice(from, start)}…`;
    from = end;
  }
  return shown + words.slice(from);
}

/** Collapses white space and control characters to single spaces. */
export const oneLine = (text: string): string => text.replace(/[\s\p{C}]+/gu, " ").trim();
