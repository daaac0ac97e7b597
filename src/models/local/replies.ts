/**
 * How an answer begins, from the question's own words: asked "Where do you live?", one says "I live", and asked "What
 * should I wear?", "You could wear". Left alone, a small model speaks of living, and praises clothes in general.
 */

/** A form of question, and how its answer begins, with words of the question in the places of `$1` and `$2`. */
type Form = readonly [asked: RegExp, reply: string];

const ABOUT_ITSELF: readonly Form[] = [
  [/\bwhat(?: is|['’]s) your (?!name\b)(\p{L}+(?: \p{L}+)?)\W*$/iu, "My $1 is"],
  [/\bhow (was|is) your (\p{L}+)\W*$/iu, "My $2 $1"],
  [/\b(?:tell (?:me|us)(?: something| more)? about|describe) your (?!self\b)(\p{L}+)\W*$/iu, "My $1"],
  [/\bwhat do you do (?:all|the whole|every) day\W*$/iu, "I spend my days"],
  [/\bwhat do you do ((?:at|in|on|after|before|during) \p{L}+(?: \p{L}+)?)\W*$/iu, "$1, I"],
  [/\bwhere were you (born|made|raised)\b/iu, "I was $1"],
  [/\bwhere are you from\b/iu, "I am from"],
  [/\bwhat do you think (?:of|about)\b/iu, "I think that"],
  [/\b(?:where|what|when) do you (?!do\b|think\b|know\b|mean\b|want\b|recommend\b|suggest\b)(\p{L}+)\b/iu, "I $1"],
];

const ADVICE: readonly Form[] = [
  [/\bwhere (?:should|can|could) (?:i|we) go\b/iu, "You could go to"],
  [/\bwhat (?:should|can|could) (?:i|we) (?!do\b|say\b|know\b|expect\b)(\p{L}+)\b/iu, "You could $1"],
];

/** The beginning of an answer about the agent; null where the question has none of these forms. */
export const replyAboutItself = (question: string): string | null => replyIn(ABOUT_ITSELF, question);

/** The beginning of advice; null where the question has none of these forms. */
export const adviceTo = (question: string): string | null => replyIn(ADVICE, question);

function replyIn(forms: readonly Form[], question: string): string | null {
  for (const [asked, reply] of forms) {
    const found = asked.exec(question);
    if (found === null) continue;
    const text = reply.replace(/\$(\d)/g, (_, place: string) => found[Number(place)]?.toLowerCase() ?? "");
    return text.slice(0, 1).toUpperCase() + text.slice(1);
  }
  return null;
}
