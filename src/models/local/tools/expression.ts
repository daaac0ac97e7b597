/** Which calculations a message can mean: all that its own numbers allow. The model chooses between them (choose.ts). */
import { wordsOf } from "../../../lib/words.ts";

const UNITS =
  "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(
    " ",
  );
const TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split(" ");
const WORD = [...TENS.map((ten) => `${ten}(?:[- ](?:${UNITS.slice(1, 10).join("|")}))?`), ...UNITS.toReversed()].join(
  "|",
);
const DIGITS = "\\d{1,3}(?:,\\d{3})+(?:\\.\\d+)?|\\d+(?:\\.\\d+)?";
/** "5th", "3D" and the parts of "10:30" are no numbers to calculate with. */
const NUMBER = new RegExp(`(?<![\\w.:])(?:${DIGITS}|${WORD})(?![\\w:]|\\.\\d|-\\p{L})`, "giu");
const PERCENT_OF = new RegExp(
  `(${DIGITS}|${WORD})\\s*(?:%|per ?cent)\\s+of\\s+\\D{0,12}?(${DIGITS}|${WORD})(?![\\w:])`,
  "iu",
);
/** Written with signs. */
const SIGNS = /\(*\s*\d[\d.,]*\s*\)*(?:\s*[-+*/×÷·x]\s*\(*\s*\d[\d.,]*\s*\)*)+/i;
/** What numbers alone do not say. */
const BEYOND =
  /%|\bper ?cent|\b(?:squared?|cubed?|roots?|powers?|half|halves|third|quarter|dozen|hundred|thousand|million|billion|average|tax|interest)\b|\d\s*[:^²³]/iu;
/** "Two or three": a guess, and "2 to 3": a range. */
const EITHER = new RegExp(`(?:${DIGITS}|${WORD}) (?:or|to|till|until) (?:${DIGITS}|${WORD})(?!\\w)`, "iu");
/** "How many are left?" after two numbers asks for what is between them. */
const LESS = /\b(?:left|remain(?:s|ing)?|lost|loses?|ate|eats?|spent|spends?|gave|gives? away)\b/i;
/** No calculations. */
const NAMES = /(?<!\d)(?:9 ?[/-] ?11|24 ?\/ ?7|50 ?\/ ?50)(?!\d)/;
const MAX_NUMBERS = 4;
const MAX_DIGITS = 12;
/** In UTF-16 code units: a longer message says more than a sum. */
const MAX_SUM = 100;
const SIGN_NAMES = ["*", "+", "-", "/"];

/** As code, each different; empty if the message has no numbers to calculate with. */
export function calculationsIn(message: string): readonly string[] {
  const numbers = [...message.matchAll(NUMBER)].map(([found]) => numberOf(found));
  // One in scientific notation has more digits than it shows.
  const isTooLong = (number: string) => number.length > MAX_DIGITS || number.includes("e");
  if (numbers.length < 2 || numbers.length > MAX_NUMBERS || numbers.some(isTooLong)) return [];
  const percent = PERCENT_OF.exec(message);
  if (percent !== null) {
    return numbers.length === 2 ? [`${numberOf(percent[1] ?? "")} / 100 * ${numberOf(percent[2] ?? "")}`] : [];
  }
  if (BEYOND.test(message) || EITHER.test(message) || NAMES.test(message)) return [];
  if (numbers.length === 2 && LESS.test(message)) return [numbers.join(" - ")];
  const signs = SIGNS.exec(message)?.[0];
  if (signs !== undefined) return fromSigns(signs, numbers.length);
  return fromNumbers(numbers);
}

/** The signs are the person's own, so there is nothing to choose. Empty unless all the message's numbers are among them. */
function fromSigns(text: string, count: number): readonly string[] {
  const code = text
    .replace(/[×·x]/gi, "*")
    .replaceAll("÷", "/")
    .replace(/\d[\d.,]*/g, (number) => numberOf(number.replace(/[.,]+$/, "")))
    .replace(/\s*([-+*/])\s*/g, " $1 ")
    .replace(/\(\s+/g, "(")
    .replace(/\s+\)/g, ")")
    .trim();
  const isBalanced = code.replace(/[^(]/g, "").length === code.replace(/[^)]/g, "").length;
  return isBalanced && code.match(/\d+(?:\.\d+)?/g)?.length === count ? [code] : [];
}

/** In the order in which they are said; two numbers also the other way round: "subtract 7 from 20". */
function fromNumbers(numbers: readonly string[]): readonly string[] {
  const [first = "", ...others] = numbers;
  const inOrder = others.reduce<string[]>(
    (before, number) => before.flatMap((code) => SIGN_NAMES.map((sign) => `${code} ${sign} ${number}`)),
    [first],
  );
  const turned = numbers.length === 2 ? [`${numbers[1]} - ${first}`, `${numbers[1]} / ${first}`] : [];
  return [...new Set([...inOrder, ...turned])];
}

/** The number as code: "1,000", "007", "twenty-one". */
function numberOf(text: string): string {
  if (/\d/.test(text)) return String(Number(text.replaceAll(",", "")));
  const sum = wordsOf(text.replaceAll("-", " ")).reduce((total, word) => {
    const ten = TENS.indexOf(word);
    return total + (ten < 0 ? UNITS.indexOf(word) : 10 * (ten + 2));
  }, 0);
  return String(sum);
}

const N = `(?:${DIGITS}|${WORD})`;
const EACH_NUMBER = new RegExp(N, "giu");
const BETWEEN = "plus|minus|times|multiplied by|divided by|added to|[-+*/×÷·x–−]";
const SIGN_OF: Readonly<Record<string, string>> = {
  plus: "+",
  "added to": "+",
  minus: "-",
  "–": "-",
  "−": "-",
  "divided by": "/",
  "÷": "/",
  "+": "+",
  "-": "-",
  "/": "/",
};
const ASKING =
  "^\\W*(?:(?:hi|hello|hey|please|so|and|ok|okay|now|can you|could you|tell me|do you know)\\W+)*" +
  "(?:(?:what(?:['’]?s| is| are| does| do)|how much (?:is|are|does|do|makes?)|calculate|compute|work out|solve)\\s+)?";
const ASKED = "(?:\\s+(?:equals?|equal to|makes?|give|please))?[\\s=?!.]*$";
/** "What is 12 times 14?" */
const IN_A_ROW = new RegExp(`${ASKING}(?<sum>${N}(?:\\s*(?:${BETWEEN})\\s*${N}){1,3})${ASKED}`, "iu");
/** "Multiply 6 by 11", "the sum of 3 and 4", "15 % of 80" */
const NAMED = [
  { words: `(?:multiply (?<a>${N}) (?:by|with|and)|(?:the )?product of (?<a>${N}) and) (?<b>${N})`, sign: " * " },
  { words: `(?:add (?<a>${N}) (?:and|to)|(?:the )?sum of (?<a>${N}) and) (?<b>${N})`, sign: " + " },
  { words: `divide (?<a>${N}) by (?<b>${N})`, sign: " / " },
  { words: `(?:subtract|take) (?<b>${N}) (?:away )?from (?<a>${N})`, sign: " - " },
  { words: `(?<a>${N})\\s*(?:%|per ?cent) of (?<b>${N})`, sign: " / 100 * " },
].map(({ words, sign }) => ({ pattern: new RegExp(`${ASKING}${words}${ASKED}`, "iu"), sign }));

/** The calculation of a message that is nothing else, as code; null for any other. */
export function sumIn(message: string): string | null {
  const numbers = [...message.matchAll(NUMBER)].map(([found]) => numberOf(found));
  if (message.length > MAX_SUM || numbers.some((number) => number.length > MAX_DIGITS || number.includes("e")))
    return null;
  if (NAMES.test(message)) return null;
  const row = IN_A_ROW.exec(message)?.groups?.sum;
  if (row !== undefined) {
    const signs = row
      .replace(EACH_NUMBER, ",")
      .split(",")
      .slice(1, -1)
      .map((sign) => SIGN_OF[sign.trim().toLowerCase()] ?? "*");
    const terms = [...row.matchAll(EACH_NUMBER)].map(([found]) => numberOf(found));
    return terms.map((term, at) => (at === 0 ? term : `${signs[at - 1]} ${term}`)).join(" ");
  }
  for (const { pattern, sign } of NAMED) {
    const { a, b } = pattern.exec(message)?.groups ?? {};
    if (a !== undefined && b !== undefined) return numberOf(a) + sign + numberOf(b);
  }
  return null;
}
