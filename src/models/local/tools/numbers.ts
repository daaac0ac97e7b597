/** How people write numbers and ask what they make, as sources of regular expressions for texts in lower or upper case. */
import { wordsOf } from "../../../lib/words.ts";

const UNITS =
  "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(
    " ",
  );
const TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split(" ");
const WORD = [...TENS.map((ten) => `${ten}(?:[- ](?:${UNITS.slice(1, 10).join("|")}))?`), ...UNITS.toReversed()].join(
  "|",
);
export const DIGITS = "\\d{1,3}(?:,\\d{3})+(?:\\.\\d+)?|\\d+(?:\\.\\d+)?";
export const NUMBER = `(?:${DIGITS}|${WORD})`;
/** Of a number below zero. With a space, a dash begins an item of a list. */
export const BELOW_ZERO = "(?:[-−](?=\\d)|(?:minus|negative) )";

/** Nothing but this may stand before what is to be calculated: what a person says there may change it. */
export const ASKING =
  "^[\\s\"'“‘]*(?:(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|thanks|thank you)(?: \\p{L}+(?=[,!.]))?|please|so|and|ok|okay|now|(?:can|could|will|would) you|tell me|do you know)[,.!:]*\\s+)*" +
  "(?:(?<asking>what(?:['’]?s| is| are| does| do)?|how (?:much|many|far|long|tall|hot|cold|heavy|fast) (?:is|are|does|do|makes?)|calculate|compute|work out|solve|convert|change|turn)\\s+)?";
/** And nothing but this after it. An exclamation mark after digits may be a factorial. */
export const ASKED =
  "(?: (?:equals?|equal to|makes?|gives?|is|are))?(?:,? (?:please|thanks|thank you|for me))*(?:[\\s=?.\"'”’]|(?<!\\d\\s*)!)*$";

const MAX_DIGITS = 12;

/** As code, "1000", "7" and "21" for "1,000", "007" and "twenty-one". */
export function numberOf(text: string): string {
  if (/\d/.test(text)) return String(Number(text.replaceAll(",", "")));
  const sum = wordsOf(text.replaceAll("-", " ")).reduce((total, word) => {
    const ten = TENS.indexOf(word);
    return total + (ten < 0 ? UNITS.indexOf(word) : 10 * (ten + 2));
  }, 0);
  return String(sum);
}

/** Whether all numbers of the code are short. One in scientific notation has more digits than it shows. */
export const isShort = (code: string): boolean =>
  !/\de/.test(code) && (code.match(/[\d.]+/g) ?? []).every((number) => number.length <= MAX_DIGITS);
