/**
 * Messages that mean something only after the one before: "And of Italy?", "Another one?", "When was he born?". A small
 * model takes them for questions of their own, so they are put into whole sentences for it. English only, and by words:
 * what fits none of the forms stays as it is.
 */
import { type Before, LEAD, TAIL } from "./follow-up-forms.ts";
import { asksForOtherLanguage } from "./language.ts";
import { chosen, listed } from "./list-follow-ups.ts";
import { asksAboutWorld, isOwnText, isStatement, PLEASE, QUESTION, TEXT_FILE, WORK } from "./questions.ts";

/** In UTF-16 code units: a longer message says what it means. */
const LONG = 100;
const FORMS = [chosen, sized, asMany, instead, another, calculated, ofPerson, ofPet, corrected, listed, noted];

/** The message in a whole sentence, or as it is. */
export function inFull(message: string, before: Before): string {
  const text = message.trim();
  if (text.length > LONG || before.asked === "") return message;
  const withText = saved(text, before);
  if (withText !== null) return withText;
  if (before.asked.length > 2 * LONG) return message;
  // "And in Spanish?" needs the translation before it.
  if (asksForOtherLanguage(before.asked)) return message;
  for (const form of FORMS) {
    const full = form(text, before);
    if (full !== null) return full;
  }
  return message;
}

const SIZE = "in (?:one|a single|two|three|\\d+) (?:short )?(?:words?|sentences?|lines?)";
const SIZED = new RegExp(
  `${LEAD}(?:(?:say|answer|explain|tell me|write|put|give|make)(?: (?:it|that|this|me))? )?(?:(?<size>${SIZE})|shorter|briefly|in short)${TAIL}`,
  "i",
);

/** "In one sentence: how do I make tea?", for "in one sentence please" after "How do I make tea?" */
function sized(text: string, { asked }: Before): string | null {
  const found = SIZED.exec(text);
  if (found === null) return null;
  const isQuestion = /\?\s*$/.test(asked) || QUESTION.test(asked);
  if (!isQuestion && !isRequest(asked)) return null;
  const size = found.groups?.size ?? (isQuestion ? "in one sentence" : undefined);
  if (size === undefined) return /\ban? /i.test(asked) ? asked.replace(/\ban? (?:short )?/i, "a short ") : null;
  const before = asked.replace(new RegExp(`^${SIZE}: | ${SIZE}(?=\\W*$)`, "i"), "");
  return `${size.charAt(0).toUpperCase()}${size.slice(1).toLowerCase()}: ${before.charAt(0).toLowerCase()}${before.slice(1)}`;
}

const INSTEAD =
  /^(?:(?:and|or|but|so) )?(?:(?:what|how) about|and)\s+(?:(?<preposition>of|in|for|from|about|with|by|on|to) )?(?<other>\d[\d.,]*(?:\s?%)?|[^,.!?]{1,40}?)\s*\?*$/i;
const PERSONAL =
  /\b(?:i|me|my|we|us|our|you|your|it|that|this|them|they|he|she|him|her|his|then|now|why|how|when|where)\b/i;
/** "France", "South Korea", "Pride and Prejudice" */
const LAST_NAME = /(?<=\s)(?:\p{Lu}[\p{L}'’-]*)(?: (?:and )?\p{Lu}[\p{L}'’-]*)*(?=[^\p{Lu}]*$)/u;
const LAST_OBJECT =
  /(?<=\b(?:of|in|for|from|about|with|by|on|to) )(?:the )?[\p{L}\p{N}'’-]+(?: [\p{L}\p{N}'’-]+)?(?=\W*$)/iu;
const LAST_NUMBER = /\d+(?:[.,]\d+)*(?=\D*$)/;
const PERCENT = /\d+(?:[.,]\d+)*\s*(?:%|per ?cent\b)/i;
/** With its unit: "10 km" */
const LAST_MEASURE = /\d+(?:[.,]\d+)*(?: ?(?!(?:in|to|of|is|are|as|from|and|for)\b)[\p{L}°]+)?(?=\D*$)/iu;

/** What a number in a follow-up takes the place of: "and 15%?", "and 20?", "and 20 miles?" */
const numberFor = (other: string): RegExp =>
  /(?:%|per ?cent)$/i.test(other) ? PERCENT : /^[\d.,]+$/.test(other) ? LAST_NUMBER : LAST_MEASURE;

const DAY = "(?:the day (?:after tomorrow|before yesterday)|today|tomorrow|yesterday|tonight)";
const IS_DAY = new RegExp(`^${DAY}$`, "i");
const LAST_DAY = new RegExp(`(?: ${DAY})?(?=\\W*$)`, "i");

/** "What is the capital of Italy?", for "And of Italy?" after "What is the capital of France?" */
function instead(text: string, { asked }: Before): string | null {
  const { preposition, other } = INSTEAD.exec(text)?.groups ?? {};
  if (other === undefined || PERSONAL.test(other) || !/\?\W*$|^\W*(?:wh|how|who|\d)/i.test(asked)) return null;
  if (preposition === undefined && !/\?$|%$/.test(text) && /^and\b/i.test(text)) return null;
  if (IS_DAY.test(other)) return `${asked.replace(/\W*$/, "").replace(LAST_DAY, ` ${other}`)}?`;
  const places = preposition !== undefined ? [afterWord(preposition), LAST_NAME] : [LAST_NAME, LAST_OBJECT];
  const place = (/^\d/.test(other) ? [numberFor(other)] : places).find((one) => one.test(asked));
  return place === undefined ? null : `${asked.replace(place, () => other).replace(/\W*$/, "")}?`;
}

const afterWord = (word: string): RegExp =>
  new RegExp(`(?<=\\b${word} )(?:the )?[\\p{L}\\p{N}'’-]+(?: [\\p{L}\\p{N}'’-]+){0,2}(?=\\W*$)`, "iu");

const NUMBER = "(?:\\d+|two|three|four|five|six|seven|eight|nine|ten)";
const MANY = new RegExp(`^(?:and|what about|how about|now) (?<many>${NUMBER} [^?.!]{1,40}?)\\W*$`, "i");
const FROM_NUMBER = new RegExp(`\\b${NUMBER} .*$`, "is");

/** "Name three vegetables", for "And three vegetables?" after "Name three fruits". */
function asMany(text: string, { asked }: Before): string | null {
  const many = MANY.exec(text)?.groups?.many;
  return many === undefined || !isRequest(asked) || !FROM_NUMBER.test(asked) ? null : asked.replace(FROM_NUMBER, many);
}

const ABOUT = "(?:about|for|with|that|which|in)";
const ANOTHER = new RegExp(
  "^(?:(?:and|ok|okay|please|now|tell me|give me|write|show me|do you (?:have|know))\\W+)*" +
    `(?:another(?: one)?|one more|a different one|more|one(?= ${ABOUT} ))(?:,? please)?` +
    `(?: (?<about>${ABOUT} [^?.!]{1,60}?))?(?:,? please)?\\W*$`,
  "i",
);
const FROM_ABOUT = new RegExp(`\\b${ABOUT}\\b.*$`, "is");
const REQUEST = new RegExp(
  `${PLEASE}(?:tell|write|give|show|recommend|suggest|name|list|compose|make|haiku|do you know|i need|i want)\\b`,
  "i",
);

/** "Tell me a joke", but no question. */
export const isRequest = (message: string): boolean => REQUEST.test(message);

/** "What else should I read?", for "Another one?" after "What should I read?" */
const ASKS_WHAT = /^(?<what>\W*what)(?= (?:should|can|could|shall|would) \w+ \w)/i;

/** "Tell me another joke", for "Another one?" after "Tell me a joke". */
function another(text: string, { asked }: Before): string | null {
  const found = ANOTHER.exec(text);
  if (found === null) return null;
  const about = found.groups?.about;
  if (about === undefined && ASKS_WHAT.test(asked)) return asked.replace(ASKS_WHAT, "$<what> else");
  if (!isRequest(asked)) return null;
  if (about !== undefined) {
    return FROM_ABOUT.test(asked) ? asked.replace(FROM_ABOUT, about) : `${asked.replace(/\W*$/, "")} ${about}`;
  }
  return /\banother\b/i.test(asked) ? asked : /\ban? /i.test(asked) ? asked.replace(/\ban? /i, "another ") : null;
}

const RESULT = /[=≈] (-?\d+(?:\.\d+)?)(?: [\p{L}°/]+(?: [\p{L}]+)?)?\.?$/u;
const CALCULATED =
  /^(?:(?:and|then|now|ok|okay|what is|what['’]?s|what about|how about)\W+)*(?:(?:that|it|this) )?(?<sign>plus|minus|times|divided by|multiplied by|[-+*/x×÷]) ?(?<number>\d[\d.,]*)\W*$/i;

/** "What is 156 divided by 2?", for "And divided by 2?" after "12 × 13 = 156". */
function calculated(text: string, { answered }: Before): string | null {
  const result = RESULT.exec(answered)?.[1];
  const { sign, number } = CALCULATED.exec(text)?.groups ?? {};
  return result === undefined || sign === undefined ? null : `What is ${result} ${sign} ${number}?`;
}

const FULL_NAME = /(?<![.?!] |^)\b\p{Lu}[\p{L}'’-]+(?: (?:van|von|de|da|der|la|\p{Lu}\.))*(?: \p{Lu}[\p{L}'’-]+)+/gu;
const namesIn = (text: string): string[] => [...text.matchAll(FULL_NAME)].map(([name]) => name);
const ASKS_WHO_IS = /^\W*who(?: is| was|['’]s)\b/i;

/** "When was William Shakespeare born?", for "When was he born?" after a question of the world and its answer. */
function ofPerson(text: string, { asked, answered }: Before): string | null {
  if (!/\b(?:he|she)\b/i.test(text) || !asksAboutWorld(asked) || !asksAboutWorld(text)) return null;
  const named = namesIn(asked);
  const told = namesIn(answered).filter((name) => !named.includes(name));
  const [name] = ASKS_WHO_IS.test(asked) ? [...named, ...told] : told;
  return name === undefined ? null : text.replace(/\b(?:he|she)\b/i, name);
}

const HAVING =
  /\b(?:i|we)(?: have|['’]ve got| have got| got| bought| adopted) (?:an?|one) (?:\p{L}+ )??(?<pet>\p{L}+)(?: (?:called|named) \p{L}+)?\W*$/iu;
const PET = /\b(?:my|our) (?<pet>\p{L}+)(?:['’]s name is| is (?:called|named)) [^,.;!?]+\W*$/iu;
/** What may begin a correction. The source of a regular expression. */
const NO = "(?:(?:no|nope|actually|sorry|wait|oops|well|oh|i meant?|i mean to say|make that|correction)\\b\\W*)";
const CALLED = new RegExp(
  `^${NO}*(?:(?:he|she|it)(?: is|['’]s) (?:called|named)|(?:his|her|its) name(?: is|['’]s)) (?<name>[\\p{L}'’-]+(?: [\\p{L}'’-]+){0,2})[.!]*$`,
  "iu",
);

/** "My dog is called Rex.", for "He is called Rex" after "I have a dog", and for "No, his name is Rex" after another name */
function ofPet(text: string, { asked }: Before): string | null {
  const pet = (HAVING.exec(asked) ?? PET.exec(asked))?.groups?.pet;
  const name = CALLED.exec(text)?.groups?.name;
  return pet === undefined || name === undefined ? null : `My ${pet} is called ${name}.`;
}

/** "My locker code is 4411", "Remember that the plumber comes on Friday", "My code is 12. Remember that pls" */
const TOLD =
  /^\W*(?<noted>(?:(?:please|can you|could you|and|also)\W+)*(?:remember|note(?: down)?|(?:keep|bear) in mind|(?:don['’]?t|do not) forget)(?: that)?\b\W*)?(?<fact>[^,.;!?]{1,120})(?<after>\W+(?:please )?(?:remember|note|keep) (?:that|this|it)\b[^.!?]{0,20})?[.!]*$/iu;
const WHAT =
  /^(?<what>(?:(?:my|our|the) |\p{Lu}\p{L}*['’]s )[^,.;!?]{1,60}? (?:is|are)(?: called| named)?|(?:i|we) (?:live|work) (?:in|at)|(?:i am|i['’]m)(?= \d)) [^,.;!?]{1,60}$/iu;
const AGAIN = `^(?:(?:oh|well|wait|oops)\\W+)?(?!oh|well|wait|oops)${NO}+`;
const MISTAKE = "(?:[,;.]? (?:sorry|my (?:mistake|bad)|i (?:mistyped|misspoke|was wrong)))?[.!]*$";
const OTHERWISE = new RegExp(
  `${AGAIN}(?:(?:it|he|she)(?:['’]s| is) )?(?<other>[\\p{L}\\p{N}][\\p{L}\\p{N}'’ :/-]{0,40}?)(?: (?:instead|now))?${MISTAKE}`,
  "iu",
);
/** "Sorry, he comes on Saturday" */
const DOES_OTHERWISE = new RegExp(
  `${AGAIN}(?:he|she|it|they) (?<does>\\p{L}+) (?<other>[^,.;!?]{1,40}?)(?: instead)?${MISTAKE}`,
  "iu",
);
/** "Correction: my locker code is 4412" */
const WHOLE = new RegExp(`${AGAIN}(?<whole>(?:my|our|the|\\p{L}+['’]s) [^,.;!?]{1,80}?)${MISTAKE}`, "iu");
const NO_VALUE =
  /^(?:thanks?|thank|thx|problem|worries|way|idea|need|more|not|never|don['’]?t|do|does|did|please|stop|wait|wrong|right|true|false|correct|incorrect|really|sorry|ok|okay|yes|no|nothing|none|too|i|i['’]\w+|you|we|they|he|she|it|that|this|there|my|your|our|but|and|or|so|just|only|tell|write|show|give|save|add|put|delete|remove|forget|remember|make|try|let|what|who|where|when|why|how|can|could|will|would|should|is|are|was|were|haha|all|great|good|nice|fine|cool|lovely|perfect)\b|\b(?:i|my|you|your|is|are|was|were|ha[sd]|have|not)\b/i;

/**
 * "My favourite colour is green.", for "No, green" after "My favourite colour is blue."; what was to be remembered before is
 * to be remembered as it is now.
 */
function corrected(text: string, { asked }: Before): string | null {
  const { noted, fact = "", after } = TOLD.exec(asked)?.groups ?? {};
  const otherFact = factOtherwise(text, fact);
  if (otherFact === null) return null;
  return `${noted === undefined && after === undefined ? "" : "Remember that "}${otherFact}.`;
}

function factOtherwise(text: string, fact: string): string | null {
  const what = WHAT.exec(fact)?.groups?.what;
  const whole = WHOLE.exec(text)?.groups?.whole;
  if (what !== undefined && whole?.toLowerCase().startsWith(`${what.toLowerCase()} `)) return whole;
  const does = DOES_OTHERWISE.exec(text)?.groups;
  const [who, did] = does === undefined ? [] : fact.split(new RegExp(`\\b${does.does} `, "iu"), 2);
  if (who !== undefined && did !== undefined) return `${who}${does?.does} ${does?.other}`;
  const other = OTHERWISE.exec(text)?.groups?.other;
  return what === undefined || other === undefined || NO_VALUE.test(other) ? null : `${what} ${other}`;
}

const NAMED_FILE = `(?:(?:an?|the|my|our|your) )?(?:new )?(?:text )?(?:(?:file|document|note) )?(?:(?:called|named) )?["'\`]?[\\w/.-]+${TEXT_FILE}["'\`]?`;
/** "The word hello" is in the message; "the poem" is in an answer before it. */
const SAVED = new RegExp(
  `${LEAD}(?:save|store|write|put) (?:it|this|that|them|these|those|(?:the|this|that|your) (?:\\w+ )?(?<work>${WORK})) (?:down )?(?:in|into|to|as|under|on) (?<file>${NAMED_FILE})${TAIL}`,
  "i",
);
/** What is saved comes after it, and a longer message would no longer be read as one. In UTF-16 code units. */
const MAX_SAVED = 1_800;

/** "Save this as sea.md: The waves …", for "Save it as sea.md" after a poem, or after a text of the person's own */
function saved(text: string, before: Before): string | null {
  const { file, work } = SAVED.exec(text)?.groups ?? {};
  const meant = file === undefined ? "" : textMeant(work, before);
  return meant === "" || meant.length > MAX_SAVED ? null : `Save this as ${file}:\n${meant}`;
}

const SAVES = /^\W*(?:save|store|write this|put)\b/i;
/** "Make it longer", after a story, leads to the story that is meant. */
const REVISES = new RegExp(
  `${LEAD}(?:make (?:it|that|this)|rewrite|shorten|change (?:it|that|this)|improve|go on|continue|longer|shorter|more \\w+|again)\\b`,
  "i",
);
const OF_ANSWER = /^(?:answer|reply|response)$/i;

/** The last answer to a request for such a work; else what the person has just written, or was answered. */
function textMeant(work: string | undefined, { asked, answered, exchanges = [{ asked, answered }] }: Before): string {
  if (work !== undefined) {
    const named = new RegExp(`\\b${RegExp.escape(work)}\\b`, "i");
    const at = exchanges.findLastIndex(
      (one) => named.test(one.asked) && !SAVES.test(one.asked) && !isOwnText(one.asked),
    );
    const later = exchanges.slice(at + 1);
    const revised = later.findIndex((one) => !REVISES.test(one.asked));
    const last = at < 0 ? undefined : exchanges[at + (revised < 0 ? later.length : revised)];
    if (last !== undefined) return last.answered;
  }
  return isOwnText(asked) && !OF_ANSWER.test(work ?? "") ? asked : answered;
}

const NOTED = new RegExp(
  `${PLEASE}(?:remember|note|keep|write) (?:that|this|it)(?: down| in mind)?(?: for me)?[\\s?.!]*$`,
  "i",
);

/** "Remember that my name is Joe.", for "Remember that" after "My name is Joe." */
function noted(text: string, { asked }: Before): string | null {
  return NOTED.test(text) && isStatement(asked) ? `Remember that ${asked}` : null;
}
