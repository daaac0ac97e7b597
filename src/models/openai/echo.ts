/** Shorter quotes say nothing of a conversation, and would blot out a server's ordinary words. */
const LEAST = 12;
const STEP = 4;

/**
 * A server's words with "…" for what they repeat of the prompt: they go into the operator's log, which holds no message's
 * text. `words` are short; repetitions of 15 characters and more are found, in one search of the prompt for every four.
 */
export function withoutEchoes(words: string, prompt: readonly string[]): string {
  const text = oneLine(prompt.join("\n"));
  let shown = "";
  let from = 0;
  for (let at = 0; at + LEAST <= words.length; at += STEP) {
    if (at < from || !text.includes(words.slice(at, at + LEAST))) continue;
    let [start, end] = [at, at + LEAST];
    while (start > from && text.includes(words.slice(start - 1, end))) start--;
    while (end < words.length && text.includes(words.slice(start, end + 1))) end++;
    shown += `${words.slice(from, start)}…`;
    from = end;
  }
  return shown + words.slice(from);
}

/** White space and control characters as one space each. */
export const oneLine = (text: string): string => text.replace(/[\s\p{C}]+/gu, " ").trim();
