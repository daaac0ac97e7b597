/**
 * What people ask about what they have told, "Where do I live?", and what of it answers them: "I live in Leeds." A small
 * model confuses the two people of a conversation, so what was told stands before the question in a form of its own
 * (runtime/short-prompt.ts), and the answer is begun for it (models/local/recall.ts). English only.
 */
import { isStatement, lineOf, QUESTION, TEXT_FILE } from "./questions.ts";
import { sentencesOf } from "./words.ts";

/** "How old am I?" asks for a fact, "How do I boil an egg?" and "Why am I tired?" do not. */
const FACT = /^(?:\w+ )?(?:what|who|where|when|which|whose|how (?:old|tall|big|heavy|many|much|long|far|often))\b/i;
const OF_ASKER = /\b(?:my|our|i|we)\b/i;
/** "What do you know about me?" */
const ALL =
  /^what (?:do you (?:still )?(?:know|remember) about (?:me|us)|(?:have|did) (?:i|we) (?:told|tell) you(?: about (?:me|myself|us))?)$/i;
/** Advice, or the conversation itself. */
const NOT_TOLD =
  /\b(?:you|your|should|could|can|may|might|must|would|help|good|better|best|happens?|sa(?:y|id)|ask(?:ed)?|meant?)\b/i;
/** "Sam's birthday", also in small letters, but not "one's duty". The source of a regular expression. */
const SOMEBODYS =
  "(?!(?:one|it|that|what|who|there|here|let|(?:some|any|every|no)(?:body|one)|today|tomorrow|yesterday)['’])\\p{L}+['’]s";
/** "What is the code word", "who is Marta", "when is Marta's birthday" */
const THING = new RegExp(
  `^wh\\w+ (?:is|are|was|were) (?!.*\\b(?:my|our)\\b)((?:the|this) .+|\\p{Lu}\\p{L}+|${SOMEBODYS} .+)$`,
  "u",
);
/** "When does the plumber come" */
const DOING = /^(?:wh\w+|how \w+) (?:does|do|did) (?!.*\b(?:my|our)\b)(?:the|this|\p{Lu}\p{L}+) .+$/u;

/** What a person asks that they may have told, as a question of its own: "what is my name" for "Do you remember my name?" */
export function recallQuestion(message: string): string | null {
  const { line, isLedIn } = lineOf(message) ?? { line: "", isLedIn: false };
  const asked = line
    .replace(/(?:\W+(?:again|please|now))?\W*$/i, "")
    .replace(/^(wh\w+?)(?:['’]?s)?\b/i, (word, wh) => wh.toLowerCase() + (word === wh ? "" : " is"));
  const question = isLedIn ? inOrder(asked) : asked;
  if (ALL.test(question)) return question;
  // "How big is the sea? I love big seas."
  if (/[.?!]\s/.test(question)) return null;
  const isFact = (FACT.test(question) && OF_ASKER.test(question)) || asksForThing(question);
  return isFact && !NOT_TOLD.test(question) ? question : null;
}

/** Whether it is about something else than the person: what is told of that has all of the question's words. */
export const asksForThing = (question: string): boolean => THING.test(question) || DOING.test(question);

const THING_ALONE = new RegExp(`^(?:my|our)\\b|^(?:the|${SOMEBODYS}) \\p{L}+(?: \\p{L}+)?$`, "iu");

/** "What my name is", "my name", "where I live", "the code word", "Anna's birthday" */
function inOrder(told: string): string {
  if (THING_ALONE.test(told)) return `what is ${told}`;
  return told
    .replace(/^(.+?) ((?:my|our|the|this) .+) (is|are|was|were)(| called| named)$/i, "$1 $3 $2$4")
    .replace(/^(wh\w+|how \w+) ((?:the|this) \p{L}+) (\p{L}{3,}?)s\b(.*)$/iu, "$1 does $2 $3$4")
    .replace(/^(.+?) (i|we) (am|are|was|were)\b/i, "$1 $3 $2")
    .replace(/^(wh\w+|how \w+(?: \w+)?) (i|we) /i, "$1 do $2 ");
}

const NEEDS_TELLING =
  /\b(?:is|are|was|were) (?:my|our)\b|\b(?:am|was) i\b|\b(?:are|were) we\b|\bdo (?:i|we) (?:like|love|prefer)\b|\bdo (?:i|we) (?:live|work|have|own|study|play|drive|speak|eat|drink|do for a living)\b(?! (?:to|for|if|when|with))/i;

/** Whether nobody can answer it who has not been told: "what is my name", but not "what do I need for a picnic". */
export const needsTelling = (question: string): boolean => NEEDS_TELLING.test(question) || asksForAll(question);

/** Whether it is about all that the person has told of themselves. */
export const asksForAll = (question: string): boolean => ALL.test(question);

/** What a small model is shown to have answered to what it is to remember. */
export const REMEMBERS = "I will remember that.";

const TELLS = /\b(?:i|i['’](?:m|ve)|my|we|we['’](?:re|ve)|our|call me)\b/i;
/** "Forget about Leo", "create a file", "who is Leo", but not "when I was young" or "save the date". */
const ASKS_SOMETHING =
  /\?|^(?:please|remind|tell|write|explain|list|give|show|make|help|translate|rewrite|describe|suggest|recommend|do|can|could|whats?|how|why|add|append|put|create|forget|delete|remove|erase|search|rename|copy|replace|summari[sz]e|calculate|convert|save (?:it|this|that|them|these)|(?:who|whose|where|when|which)(?:['’]?s| (?:is|are|was|were|do|does|did)))\b/i;

/** Whether it is a question or a request, which tells nothing. */
export const asksSomething = (text: string): boolean => ASKS_SOMETHING.test(text);

/** A note is read by others later, who must not take "I" for themselves. */
export const SAYS = "The user says: ";
/** A note in the words that the person has said. */
export const asSaid = (note: string): string => note.replace(/^[-*]\s+/, "").replace(SAYS, "");

/** Whether it tells something of the person or what is theirs: such a message may be asked for later. */
export const tellsSomething = (message: string): boolean =>
  !asksSomething(message) && (TELLS.test(message) || isStatement(message));

/** What it says of what nobody has told it: "what your name is". */
export const doesNotKnow = (what: string): string => `I do not know ${what}: tell me, and I will remember it.`;

/** A longer text is neither such an answer nor a short one to it. In UTF-16 code units. */
const LONG = 200;
const NOT_KNOWN = /^I do not know .*?\b(?<told>(?:your|you)\b.+): tell me, and I will remember it\.$/;
const SHORT = /^(?:it['’]?s |it is )?(?<short>[^?\n]{1,60}?)[.!]?$/i;
/** "Never mind", "good morning", "tell me a joke", "delete it", "read plan.md", "12 * 12", "where is Rome" */
const NO_ANSWERS = [
  /^(?:no|nope|never|not|don['’]t|thanks?|thank|thx|cheers|ok|okay|yes|hello|hi|hey|sorry|please|skip|good(?:bye|[ -]bye| (?:morning|day|afternoon|evening|night))|bye|see (?:you|ya)|let['’]?s)\b/i,
  /^(?:add|append|put|remember|forget|delete|remove|erase|clear|save|store|note|read|open|search|find|look|send|order|buy|play|turn|switch|set|stop|start|cancel|create|calculate|compute|convert|rename|copy|move|replace|change|check|count|wait|say|sing|show|write|give|tell|make|list|tick|mark|empty|and|but|also|then|actually|why|sum|draw|try)\s+(?!(?-i:\p{Lu})\p{L}*$)\S/iu,
  /^\d[\d.,\s]*(?:[+*×÷^x=]|\s[/-])\s*\d/i,
  new RegExp(`\\w${TEXT_FILE}\\b`, "i"),
  ASKS_SOMETHING,
  QUESTION,
  TELLS,
];
const MINE: Readonly<Record<string, string>> = { your: "my", you: "I", "you are": "I am", "you were": "I was" };

/** A message as a sentence of its own: "My name is Joe." for "It's Joe", after it did not know what the name is. */
export function asStatement(message: string, answerBefore: string): string {
  if (answerBefore.length > LONG || message.length > LONG) return message;
  const asked = NOT_KNOWN.exec(answerBefore)?.groups?.told;
  const short = SHORT.exec(message.trim())?.groups?.short;
  if (asked === undefined || short === undefined || NO_ANSWERS.some((other) => other.test(short))) return message;
  const begun = asked.replace(/\b(?:your|you (?:are|were)|you)\b/g, (word) => MINE[word] ?? word);
  return `${begun.charAt(0).toUpperCase()}${begun.slice(1)} ${short}.`;
}

const BEFORE_STATEMENT =
  /^\W*(?:(?:dear [\p{L} .]{1,40}(?=,)|hello|hi|hey|good (?:morning|day|afternoon|evening)|actually|sorry|so|and|but|also|ok|okay|well|oh|yes|no|please|by the way|(?:remember|note(?: down)?|write down|(?:keep|bear) in mind|(?:make|take) a note|(?:don['’]?t|do not) forget)(?: that)?)\b\W*)+/iu;
/** "I like tea, so please remember it." */
const AFTER_STATEMENT =
  /[,;]? (?:(?:so|and) )?(?:please )?(?:remember|note|(?:keep|bear)|(?:don['’]?t|do not) forget) (?:that|this|it)(?: in mind)?(?:,? (?:please|thanks|for me))*[\s.!]*$/i;
/** "I like tea.", for "Please remember that I like tea" and "I like tea, please remember it" */
export const withoutRequest = (text: string): string =>
  text.replace(BEFORE_STATEMENT, "").replace(AFTER_STATEMENT, ".").trim();
/** What answers such a question whatever its words, said by the person and noted of them. */
const EVIDENCE: readonly { asked: RegExp; said: RegExp; noted: RegExp }[] = [
  {
    asked: /\b(?:is (?:my|our) name|am i called|who am i)\b/i,
    said: /\b(?:my|our) name\b|\bcall(?:ed)? me\b|\bI(?:['’]m| am)\b/i,
    noted: /\bname\b|\b(?:user|person|she|he) is called\b/i,
  },
  {
    asked: /\bhow old am i\b|\bmy age\b/i,
    said: /\b(?:I was born|I (?:have )?turned|my (?:birthday|age))\b|\bI(?:['’]m| am) (?:\p{L}+ )?(?:\d|\w+(?:teen|ty)\b)/iu,
    noted: /\b(?:years? old|born|birthday|age|aged)\b|\bis \d/i,
  },
  {
    asked: /\b(?:my|our) (?:job|profession|work)\b|\bfor a living\b/i,
    said: /\b(?:job|work|profession)\b|\bI(?:['’]m| am) an? /i,
    noted: /\b(?:job|works?|profession)\b|\bis an? /i,
  },
  {
    asked: /\bwhere am i$/i,
    said: /\bI(?:['’]m| am) (?:now )?(?:in|at|on|near)\b/i,
    noted: /\bis (?:in|at|on|near)\b/i,
  },
  { asked: ALL, said: /./, noted: /./ },
];
/** "Do I need", "does my train leave": without it, a statement does not answer the question. */
const VERB = /\b(?:do (?:i|we)|does (?:my|our) (?<whose>\p{L}+)) (?<does>\p{L}+)/iu;
const MAX_STATEMENTS = 4;
/** In UTF-16 code units. */
const MAX_STATEMENT = 200;

/** What a person has told in these texts that answers their question best, in the order of the texts. */
export const statementsFor = (question: string, texts: readonly string[]): string[] =>
  nearestOf(
    question,
    sentencesIn(texts)
      .map(withoutRequest)
      .filter((text) => !asksSomething(text) && answers(text, question)),
  );

/** "What is my favourite colour", "what was the code called" */
const ONE_THING = /^wh\w+ (?:is|was) (?<thing>.+?)(?: (?:called|named))?$/iu;
/** "Where do I live": "what do I like" may have more than one answer. */
const ONE_PLACE = /^(?:where|when) (?:do|did) (?:i|we) (?<does>\p{L}+)/iu;
const ASKS_NAME = /\b(?:called|named|name)\b/i;

/** Whether a statement alone answers the question, so that a later one like it has taken its place. */
function settles(statement: string, question: string): boolean {
  if (/^how old (?:am|are) (?:i|we)$/i.test(question)) return /\bI(?:['’]m| am) (?:now )?\d/i.test(statement);
  if (ASKS_NAME.test(question))
    return ASKS_NAME.test(statement) && stemsOf(question.replace(/\bname\b/i, "")).isSubsetOf(stemsOf(statement));
  const does = ONE_PLACE.exec(question)?.groups?.does;
  if (does !== undefined) return new RegExp(`\\b(?:i|we) (?:now )?${does}\\b`, "i").test(statement);
  const thing = ONE_THING.exec(question)?.groups?.thing;
  return thing !== undefined && new RegExp(`\\b${RegExp.escape(thing)} (?:is|was)\\b`, "iu").test(statement);
}

/**
 * Whether a text tells by itself what was asked, and not only of the same: "My dog is called Rex", but not "We have a dog",
 * for "what is my dog called".
 */
export function tellsPlainly(text: string, question: string): boolean {
  const statement = withoutRequest(asSaid(text));
  if (asksSomething(statement)) return false;
  if (DOING.test(question)) return /^whe/.test(question) && coversWords(statement, question);
  if (settles(statement, question)) return evidenceFor(question)?.said.test(statement) ?? true;
  const does = VERB.exec(question)?.groups?.does;
  if (does === undefined || !needsTelling(question)) return false;
  return new RegExp(`\\b(?:i|we) (?:now |also )?${does}\\b`, "iu").test(statement);
}

/** Without what the person has said otherwise since: "I live in Leeds", before "I live in York now". */
export function latest(question: string, facts: readonly string[], said: readonly string[]): string[] {
  const last = said.findLast((statement) => settles(statement, question));
  return facts.filter((fact) => last === undefined || fact === last || !settles(fact, question));
}

/** What is noted of a person in these texts that answers their question best, in the order of the texts. */
export function notesFor(question: string, texts: readonly string[]): string[] {
  const noted = evidenceFor(question)?.noted;
  return nearestOf(
    question,
    sentencesIn(texts).filter((text) => noted?.test(text) || sharesWords(text, question)),
  );
}

const sentencesIn = (texts: readonly string[]): string[] =>
  texts.flatMap(sentencesOf).filter(({ length }) => length <= MAX_STATEMENT);

/** Whether they have a word in common that says what they are about. */
export const sharesWords = (text: string, question: string): boolean =>
  stemsOf(text).intersection(stemsOf(question)).size > 0;

/** Whether "I live in Leeds" has the verb of "where do I live", and "my brother lives in York" who it is about, too. */
export function sharesVerb(text: string, question: string): boolean {
  const { whose = "", does = "" } = VERB.exec(question)?.groups ?? {};
  return stemsOf(does).size > 0 && stemsOf(`${whose} ${does}`).isSubsetOf(stemsOf(text));
}

/** Whether a text has all words of a question that say what it is about: one of them is enough only if it is a name. */
export function coversWords(text: string, question: string): boolean {
  const wanted = stemsOf(question);
  return (wanted.size > 1 || / \p{Lu}\p{L}+$/u.test(question)) && wanted.isSubsetOf(stemsOf(text));
}

/** Whether a text that is near to a question in meaning may answer it: a dog's name does not answer "what is my name". */
export const mayAnswer = (text: string, question: string): boolean =>
  hasEvidence(text, question) ?? mayName(text, question);

/** Whether a text has what answers a question like this whatever its words; null if there is nothing of the kind. */
export function hasEvidence(text: string, question: string): boolean | null {
  const evidence = evidenceFor(question);
  const said = asSaid(text);
  return evidence === undefined ? null : (TELLS.test(said) ? evidence.said : evidence.noted).test(said);
}

/** "We have a dog" does not answer "what is my dog called": a small model would make up a name. */
const mayName = (text: string, question: string): boolean =>
  !ASKS_NAME.test(question) || ASKS_NAME.test(text) || /\S\s+(?!I\b)\p{Lu}/u.test(text);

const evidenceFor = (question: string) => EVIDENCE.find(({ asked }) => asked.test(question));

function answers(statement: string, question: string): boolean {
  const thing = THING.exec(question)?.[1];
  if (thing !== undefined)
    return (
      statement.toLowerCase().includes(thing.toLowerCase()) && /\b(?:is|are|was|were|called|named)\b/i.test(statement)
    );
  if (DOING.test(question)) return coversWords(statement, question);
  const hasVerb = stemsOf(VERB.exec(question)?.groups?.does ?? "").size > 0;
  const shares = hasVerb ? sharesVerb(statement, question) : sharesWords(statement, question);
  return (
    TELLS.test(statement) && (evidenceFor(question)?.said.test(statement) ?? (shares && mayName(statement, question)))
  );
}

/** Those that have most in common with the question; all, if it asks for all. */
function nearestOf(question: string, sentences: readonly string[]): string[] {
  const nearness = sentences.map((text) => nearnessOf(text, question));
  const most = nearness.reduce((a, b) => Math.max(a, b), 0);
  return sentences.filter((_, at) => nearness[at] === most || asksForAll(question)).slice(-MAX_STATEMENTS);
}

/** The number of words in both, and half a word more if both are about "I". */
const nearnessOf = (a: string, b: string): number =>
  stemsOf(a).intersection(stemsOf(b)).size + ([a, b].every((text) => /\bi\b/i.test(text)) ? 0.5 : 0);

const LITTLE = new Set(
  "the and what who whose where when how which are was were does did have has had our remember know tell call called".split(
    " ",
  ),
);
/** Words that answer for each other, by their stems. */
const ALIKE: Readonly<Record<string, string>> = {
  love: "like",
  enjo: "like",
  favo: "like",
  pref: "like",
  birt: "born",
};

/** "Live" and "lives" are one. */
const stemsOf = (text: string): Set<string> =>
  new Set(
    (text.toLowerCase().match(/\p{L}{3,}/gu) ?? [])
      .filter((word) => !LITTLE.has(word))
      .map((word) => word.slice(0, 4))
      .map((stem) => ALIKE[stem] ?? stem),
  );
