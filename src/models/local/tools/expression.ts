/** Which calculations a message can mean: all that its own numbers allow. The model chooses between them (choose.ts). */
import { convertsUnits } from "./formula.ts";
import { ASKED, ASKING, BELOW_ZERO, DIGITS, isShort, NUMBER, numberOf } from "./numbers.ts";

/** "5th", "3D" and the parts of "10:30" and "1,5" are no numbers to calculate with. */
const COUNTED = new RegExp(`(?<![\\w.:]|\\d,)${NUMBER}(?![\\w:]|[.,]\\d|-\\p{L})`, "giu");
/** Digits of any other but "5th" and "3-room". */
const UNREAD = /\d(?!\d|(?:st|nd|rd|th)\b|-\p{L})/iu;
const PERCENT_OF = new RegExp(`(${NUMBER})\\s*(?:%|per ?cent)\\s+of\\s+\\D{0,12}?(${NUMBER})(?![\\w:])`, "iu");
const OPEN = "(?:\\(\\s*)*";
const CLOSE = "(?:\\s*\\))*";
const BETWEEN = "\\b(?:plus|minus|times|multiplied by|divided by|added to)\\b|[-+*/×÷·x–−]";
const TERM = `${OPEN}(?:${BELOW_ZERO})?${NUMBER}${CLOSE}`;
const IN_DIGITS = `${OPEN}[-−]?(?:${DIGITS})${CLOSE}`;
/** Written with signs. */
const SIGNS = new RegExp(
  `(?<![\\w.,:])(?<!(?:[-+–−]|\\b(?:minus|negative))\\s*)${IN_DIGITS}(?:\\s*[-+*/×÷·x–−]\\s*${IN_DIGITS})+`,
  "iu",
);
/** A number with a sign of its own, which a choice between calculations would lose. */
const SIGNED = new RegExp(
  `(?<!(?:${NUMBER}|\\))\\s*)[-+−]\\d|` +
    `(?:^|[-+*/×÷(=]|\\b(?:is|are|was|were|and|of|to|from|by|than|add|subtract|plus|minus|times))\\s*(?:[-+−]|minus |negative )\\s*${NUMBER}`,
  "iu",
);
/** What numbers alone do not say. */
const BEYOND =
  /%|√|\bper ?cent|\b(?:squared?|cubed?|sqrt|roots?|powers?|half|halves|thirds?|quarters?|(?:four|fif|six|seven|eigh|nin|ten)ths?|twice|(?:double|triple)(?= \d)|dozens?|hundreds?|thousands?|millions?|billions?|point|average|mod|modulo|factorial|log|ln|sin|cos|tan|tax|interest|o['’]clock)\b|\d\s*(?:[:^²³!]|[ap]\.?m\b)|([$€£]).*(?!\1)[$€£]/iu;
/** A letter may stand for a number. */
const UNKNOWN = /\b(?:[yz]|(?<!\d\s*)x|x(?!\s*[-−(\d]))\b/iu;
/** "Two or three": a guess, and "2 to 3", "between 2 and 3": a range. */
const EITHER = new RegExp(
  `${NUMBER} (?:or|to|till|until) ${NUMBER}(?!\\w)|(?<!difference )\\bbetween ${NUMBER} and ${NUMBER}(?!\\w)`,
  "iu",
);
const MONTH =
  "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)";
/** "5 May", "May 5th" */
const DAY = new RegExp(`\\d (?:of )?${MONTH}\\b|\\b${MONTH} \\d`, "i");
/** "How many are left?" after two numbers asks for what is between them. */
const LESS =
  /^(?!.*\b(?:total|altogether|together|in all)\b).*\b(?:left|remain(?:s|ing)?|lost|loses?|ate|eats?|spent|spends?|gave|gives? away)\b/is;
/** What something costs, cannot be told from how many there are of it: "2 bikes for 5 days". */
const ASKS_PRICE = /\bhow much (?:for|to)\b|\b(?:costs?|prices?|pay|charge|fees?|fare|rent|hire)\b/i;
const MONEY =
  /[$€£¥]|\b(?:euros?|eur|dollars?|usd|bucks|pounds?|gbp|pence|cents?|francs?|chf|kroner?|dkk|sek|nok|yen|rupees?)\b/i;
/** Not followed by what is counted: "the bill is 92", "14 each". */
const PLAIN_NUMBER = new RegExp(
  `(?<![\\w.,])${NUMBER}(?![\\w.,]\\d|\\w)(?! (?!(?:each|apiece|per|an?|for|and|or|at|in|on|to|with|by|times|plus|minus|is|are|if|do|how|what)\\b)\\p{L}|-\\p{L})`,
  "iu",
);

/** No calculations: idioms, dates and telephone numbers. */
const NAMES = /(?<!\d)(?:9 ?[/-] ?11|24 ?\/ ?7|50 ?\/ ?50)(?!\d)|\d([-–/])\d+\1\d|(?<![\d.,])0\d+\s*[-–/]|[-–/]\s*0\d/;
/** Without spaces, these signs stand in ranges, scores, sizes and names as well. */
const TIGHT = new RegExp(`(?<![\\d.,])(?<a>${DIGITS})(?<sign>[-–/x])(?<b>${NUMBER})`, "giu");
const MAX_NUMBERS = 4;
/** In UTF-16 code units: a longer message says more than a sum. */
const MAX_SUM = 100;
const SIGN_NAMES = ["*", "+", "-", "/"];

/** As code, each different; empty if the message has no numbers to calculate with. */
export function calculationsIn(message: string): readonly string[] {
  const numbers = [...message.matchAll(COUNTED)].map(([found]) => numberOf(found));
  if (numbers.length < 2 || numbers.length > MAX_NUMBERS || !numbers.every(isShort)) return [];
  // Each counts, so one that cannot be read leaves no calculation.
  if (UNREAD.test(message.replace(COUNTED, ""))) return [];
  const signs = SIGNS.exec(message)?.[0];
  if (signs === undefined && SIGNED.test(message)) return [];
  const percent = PERCENT_OF.exec(message);
  const others = percent === null ? message : message.replace(/%|per ?cent/i, "");
  if ([BEYOND, UNKNOWN, EITHER, DAY, NAMES].some((one) => one.test(others)) || convertsUnits(message)) return [];
  if (ASKS_PRICE.test(message) && !MONEY.test(message) && !PLAIN_NUMBER.test(message)) return [];
  if (percent !== null) {
    return numbers.length === 2 ? [`${numberOf(percent[1] ?? "")} / 100 * ${numberOf(percent[2] ?? "")}`] : [];
  }
  if (message.search(TIGHT) >= 0) return [];
  if (signs !== undefined) return fromSigns(signs, numbers.length);
  const [first, second] = numbers.map(Number);
  if (numbers.length === 2 && LESS.test(message)) return Number(first) < Number(second) ? [] : [numbers.join(" - ")];
  return fromNumbers(numbers);
}

/** The signs are the person's own, so there is nothing to choose. Empty unless all the message's numbers are among them. */
function fromSigns(text: string, count: number): readonly string[] {
  const code = codeOf(text);
  return isBalanced(code) && code.match(/\d+(?:\.\d+)?/g)?.length === count ? [code] : [];
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

const EACH_NUMBER = new RegExp(NUMBER, "giu");
const EACH_SIGN = new RegExp(`${BETWEEN}|negative`, "giu");
const SIGN_OF: Readonly<Record<string, string>> = {
  plus: "+",
  "added to": "+",
  minus: "-",
  negative: "-",
  "–": "-",
  "−": "-",
  "divided by": "/",
  "÷": "/",
  "+": "+",
  "-": "-",
  "/": "/",
};

/** "7 - -2" for "seven minus minus two" */
const codeOf = (sum: string): string =>
  sum
    .replace(EACH_NUMBER, numberOf)
    .replace(EACH_SIGN, (sign) => ` ${SIGN_OF[sign.toLowerCase()] ?? "*"} `)
    .replace(/\s+/g, " ")
    .replace(/\( /g, "(")
    .replace(/ \)/g, ")")
    .trim()
    .replace(/(?<=(?:^|[-+*/(]) ?)- (?=\d)/g, "-");

function isBalanced(code: string): boolean {
  let open = 0;
  for (const sign of code) {
    open += sign === "(" ? 1 : sign === ")" ? -1 : 0;
    if (open < 0) return false;
  }
  return open === 0;
}

/** "What is 12 times 14?" */
const IN_A_ROW = new RegExp(`${ASKING}(?<sum>${TERM}(?:\\s*(?:${BETWEEN})\\s*${TERM}){1,3})(?<asked>${ASKED})`, "iu");
const [A, B] = ["a", "b"].map((name) => `(?<${name}>(?:${BELOW_ZERO})?${NUMBER})`);
/** "Multiply 6 by 11", "the sum of 3 and 4", "15 % of 80" */
const NAMED = [
  { words: `(?:multiply ${A} (?:by|with|and)|(?:the )?product of ${A} and) ${B}`, sign: " * " },
  { words: `(?:add ${A} (?:and|to)|(?:the )?sum of ${A} and) ${B}`, sign: " + " },
  { words: `divide ${A} by ${B}`, sign: " / " },
  { words: `(?:subtract|take) ${B} (?:away )?from ${A}`, sign: " - " },
  { words: `${A}\\s*(?:%|per ?cent) of ${B}`, sign: " / 100 * " },
].map(({ words, sign }) => ({ pattern: new RegExp(`${ASKING}${words}${ASKED}`, "iu"), sign }));

/** The calculation of a message that is nothing else, as code; null for any other. */
export function sumIn(message: string): string | null {
  if (message.length > MAX_SUM || NAMES.test(message)) return null;
  const text = message.replace(/\s+/g, " ");
  const code = rowIn(text) ?? namedIn(text);
  return code !== null && isShort(code) ? code : null;
}

function rowIn(text: string): string | null {
  const { sum, asking, asked = "" } = IN_A_ROW.exec(text)?.groups ?? {};
  if (sum === undefined) return null;
  const isAskedFor = asking !== undefined || asked.includes("=") || /[+*×÷]/.test(sum);
  for (const { groups: { a = "", sign = "", b = "" } = {} } of sum.matchAll(TIGHT)) {
    const isRange = "-–".includes(sign) && Number(numberOf(a)) <= Number(numberOf(b));
    if (isRange || !isAskedFor) return null;
  }
  const code = codeOf(sum);
  return isBalanced(code) ? code : null;
}

function namedIn(text: string): string | null {
  for (const { pattern, sign } of NAMED) {
    const { a, b } = pattern.exec(text)?.groups ?? {};
    if (a !== undefined && b !== undefined) return codeOf(a) + sign + codeOf(b);
  }
  return null;
}
