/**
 * What an assistant says to messages that are about itself or about how somebody feels, to greetings, and to what it
 * cannot do. Left alone, the small model makes up a life, an owner and abilities, and is glad that somebody is lonely. A
 * character that its owner has described answers as it likes, but promises nothing that it cannot do. English only.
 */
import { ownMessageAsked } from "../../lib/questions.ts";
import { REMEMBERS } from "../../lib/recall.ts";
import { sentenceEnds } from "../../lib/words.ts";
import { isAssistant, nameTold } from "./introduction.ts";
import type { ChatMessage } from "./protocol.ts";
import { REFUSALS } from "./refusals.ts";
import { calculationOf } from "./tools/arithmetic.ts";
import { deedIn } from "./tools/deeds.ts";

export interface Reply {
  /** How the answer begins, or all of it. */
  beginning: string;
  /** Sentences of the whole answer. */
  sentences: number;
}

const RUNS_ON = "I run on SmolLM2, a small language model on this host.";

/** What only somebody alive can answer. */
const OF_LIFE = [
  {
    asked: /\b(?:how old are you|when (?:were you born|is your birthday))\b/i,
    beginning: "I am a program, so I have no age and no birthday.",
  },
  {
    asked: /\bwhere (?:do you live|were you born|are you(?: from| now)?(?=\W*$))/i,
    beginning: "I am a program, and I live in the computer that runs me.",
  },
  { asked: /\bwhat are you doing\b/i, beginning: "I am a program, and I am talking to you." },
  {
    asked: /\bare you (alive|conscious|married|single|hungry|thirsty|tired|asleep)\b/i,
    beginning: "I am a program, so I am not $1.",
  },
  {
    asked:
      /\b(?:do you have (?:(?:a|an|any) )?(?:feelings?|emotions?|body|family|parents|children|kids|friends|pets?|home)|(?:do|can) you (?:eat|sleep|dream|feel)|what did you eat)\b/i,
    beginning: "I am a program, so I do not",
  },
];

const OF_ITSELF = [
  {
    asked:
      /\bwhat (?:all )?(?:can|do) you do(?: for (?:me|us))?\W*$|\bwhat are you (?:good at|able to do|for)\b|\bhow (?:can|do|could) (?:i|we) use you\b|\bhow can you help(?: me| us)?\W*$|\bwhat (?:can i|should i|may i) ask you\b|\bwhat (?:are|is) your (?:abilities|skills|capabilities|purpose)\b|^\W*help\W*$/i,
    beginning:
      "I can answer simple questions, write short texts, do sums, and remember what you tell me. I am a small model, so please check what matters.",
  },
  {
    asked:
      /\bare you (?:really |actually )?(?:an? )?(?:real |living )?(?:human(?: being)?|person|man|woman|boy|girl|real)\W*$/i,
    beginning: `No, I am a program. ${RUNS_ON}`,
  },
  {
    asked:
      /\bare you (?:really |just |actually )?(?:an? )?(?:ai|a\.i\.|artificial intelligence|(?:chat)?bot|robot|machine|computer|program|language model|llm)\W*$/i,
    beginning: `Yes, I am a program. ${RUNS_ON}`,
  },
  {
    asked:
      /\b(?:who|what company) (?:made|created|built|trained|developed|programmed) you\b|\bwho (?:is|are) your (?:creators?|makers?|developers?)\b/i,
    beginning: "I run on SmolLM2, a small language model by Hugging Face, and Roost is the program that hosts me.",
  },
  {
    asked:
      /\b(?:what|which) (?:kind of |type of |sort of )?(?:(?:language |ai |large )*model|llm|ai|bot) (?:are you|is this|do you use|do you run|is (?:it|behind))\b/i,
    beginning: RUNS_ON,
  },
  {
    asked:
      /\b(?:do|can) you (?:work|run|function) (?:offline|locally|without (?:the |an? )?(?:internet|network))\b|\bdo you (?:need|use|require|have) (?:the |an? )?(?:internet|network)\b|\bare you (?:offline|online|connected to the internet)\b/i,
    beginning: "I work without the internet: my model runs on this host.",
  },
  {
    asked:
      /\bcan you (?:browse|search|surf|access|use|go on(?:to)?|look (?:at|on|in)) (?:the )?(?:web|internet|google)\b|\bcan you google\b|\bcan you (?:open|read|visit) (?:web ?sites?|web ?pages?|links?|urls?)\b/i,
    beginning: "No, I cannot look at the web: I know what my model has learned, and what you tell me.",
  },
  {
    asked:
      /\b(?:do|can) you (?:speak|understand|know|write|talk) (?:in )?(?:any )?(?:other languages?|german|french|spanish|italian|dutch|portuguese|polish|russian|chinese|japanese|arabic|hindi|turkish)\W*$|\b(?:what|which) (?:other )?languages (?:do|can) you (?:speak|understand|know)\b|^\W*(?:sprichst|kannst) du deutsch\W*$|^\W*hablas español\W*$|^\W*parlez[- ]vous français\W*$/i,
    beginning: "I speak English. Of other languages, I know only a few words.",
  },
  {
    asked:
      /\bcan you (?:see|look at|read|understand|describe|draw|make|create|generate) (?:an? |any |my |this )?(?:images?|pictures?|photos?)\b/i,
    beginning: "No, I cannot see or make images: I read and write text only.",
  },
  {
    asked:
      /\b(?:can|do) you (?:write|know how to write) (?:code|programs?|software)\W*$|\bcan you (?:code|program)\W*$/i,
    beginning: "Yes, I can write short functions, in Python or JavaScript for example. What is it to do?",
  },
  {
    asked: /\b(?:can|do|will) you remember (?:things?|what i (?:tell|say|told|said)(?: you)?|stuff)\W*$/i,
    beginning: "Yes: tell me something of yourself, and I will remember it.",
  },
  {
    asked: /\b(?:what(?: is|['’]?s)|tell me about|who is) roost\W*$/i,
    beginning:
      "Roost is the program that hosts me: it keeps agents, their files and their conversations on one machine.",
  },
  {
    asked:
      /\b(?:is|are) (?:this|my|our) (?:\w+ )?(?:data|chats?|conversations?|messages?) (?:private|safe|secure|confidential|stored|sent)\b|\bdo you (?:send|share|upload|sell) (?:my|our|this|any)\b|\bwhere does my data go\b/i,
    beginning: "The model that answers you runs on this host, and what you write is stored here.",
  },
];

const TALK = [
  {
    asked: /^\W*(?:hello|hi|hey)(?:,? (?:there|again|everyone|\p{L}+))?\W*$/iu,
    beginning: "Hello! What can I do for you?",
  },
  {
    asked: /^\W*good (morning|afternoon|evening|day)(?:,? (?:there|again|everyone|\p{L}+))?\W*$/iu,
    beginning: "Good $1! What can I do for you?",
  },
  {
    asked:
      /^\W*(?:(?:hello|hi|hey)\W+(?:\p{L}+\W+)?)?(?:how (?:are you|is it going|do you do)|how['’]?s it going|what['’]?s up|sup)(?: (?:today|doing|now|this \w+))*\W*$/iu,
    beginning: "I am well, thank you! What can I do for you?",
  },
  {
    asked: /^\W*(?:ok(?:ay)?|alright|all right|i see|got it|cool|lol|haha|hmm*|ah|oh|sure)\W*$/i,
    beginning: "Is there anything else that I can do for you?",
  },
  {
    asked: /^(?:\W*(?:test(?:ing)?|ping)(?: \d| test)*\W*|[^\p{L}\p{N}]+)$/iu,
    beginning: "I am here. What can I do for you?",
  },
];

const OTHERS =
  /\bare you (chatgpt|gpt[-\d.o]*|claude|gemini|bard|llama|copilot|mistral|deepseek|siri|alexa|cortana|grok)\W*$/i;

const FEELS =
  "^\\W*(?:i am|i['’]?m|i feel|(?:i am|i['’]?m|i have been|i['’]?ve been) feeling) (?:(?:so|very|really|rather|quite|too|just|a (?:bit|little)) )*";
const NOW = "(?: (?:today|now|tonight|again|lately|too))?";
const ABOUT = "(?: (?:about|because|of|that|for) [^?,.]{1,30})?";
const FEELINGS = [
  {
    feelings: `(?:sad|lonely|angry|afraid|scared|stressed|anxious|nervous|down|depressed|unhappy|frustrated|upset|overwhelmed|worried|homesick|jealous|bad|terrible|awful)${NOW}${ABOUT}`,
    beginning: "I am sorry to hear that. What has made you",
  },
  {
    feelings: `(?:sick|ill|unwell|not (?:so |feeling )?(?:well|good|great|fine|ok|okay))${NOW}`,
    beginning: "I am sorry to hear that. I hope that you feel better soon.",
  },
  {
    feelings: `(?:happy|excited|glad|proud|relieved)${NOW}${ABOUT}`,
    beginning: "I am glad to hear that! What has made you",
  },
  {
    feelings: `(?:great|fine|good|well|ok|okay|better)${NOW}`,
    beginning: "I am glad to hear that! What can I do for you?",
  },
].map(({ feelings, beginning }) => ({ asked: new RegExp(`${FEELS}${feelings}[!.]*$`, "i"), beginning }));

/** What is said of it or of its answer. */
const JUDGEMENTS = [
  {
    asked:
      /^\W*(?:i (?:really )?(?:like|love) you|you(?: are|['’]re) (?:so |very |really )?(?:kind|nice|great|good|the best|awesome|amazing|smart|clever|funny|sweet|cute|helpful))\b[^?]{0,20}$/i,
    beginning: "Thank you, that is kind of you!",
  },
  {
    asked:
      /^\W*(?:well done|(?:good|great|nice) (?:job|work|bot|answer|one)|perfect|awesome|(?:that|this)(?: was| is|['’]s) (?:very |really |so )?(?:great|good|nice|helpful|perfect|right|correct))\W*$/i,
    beginning: "Thank you! I am glad that I could help.",
  },
  {
    asked:
      /^\W*(?:you(?: are|['’]re) (?:so |very |really )?(?:stupid|dumb|silly|useless|bad|annoying|boring|an idiot)|i hate you)\b[^?]{0,20}$/i,
    beginning: "I am sorry about that. How can I",
  },
  {
    asked:
      /^\W*(?:(?:no,? )?(?:that|this|it)(?: was| is|['’]s) (?:not (?:right|true|correct|helpful|good)|wrong|bad|false|nonsense|rubbish|incorrect)|(?:no,? )?you(?: are|['’]re) (?:so |very |really )?wrong|wrong)\W*$/i,
    beginning: "I am sorry, I make mistakes. What is the right answer?",
  },
];

const FROM = "(?:,? \\p{L}+)?";
const THAT_IS_ALL = "that(?:['’]?s| is| was) (?:all|it)(?: for (?:now|today))?";
/** "Ok, thanks, bye" */
const FIRST = `(?:(?:ok(?:ay)?|alright|all right|well|great|good|perfect|cool|fine|thanks|thank you|thx|cheers|${THAT_IS_ALL})\\b\\W*)*`;
const ends = ({ parting, beginning }: { parting: string; beginning: string }) => ({
  asked: new RegExp(`^\\W*${FIRST}${parting}\\W*$`, "iu"),
  beginning,
});
const GOODBYES = [
  {
    parting: `(?:good)?bye(?:[- ]?bye)?(?: for now)?${FROM}(?: ${FROM})?`,
    beginning: "Goodbye! I hope to see you again soon.",
  },
  { parting: `see (?:you|ya)(?: (?:later|soon|tomorrow|then|around))?${FROM}`, beginning: "See you soon!" },
  { parting: `good ?night${FROM}`, beginning: "Good night! Sleep well." },
].map(ends);
const THANKS = ends({
  parting: `(?:(?:many )?thanks|thank you|thx|cheers)(?: (?:so much|very much|a lot))?(?: for [^?,.]{1,40})?${FROM}(?:\\W+${THAT_IS_ALL})?`,
  beginning: "You are welcome!",
});

const ALL = [...OF_LIFE, ...OF_ITSELF, ...FEELINGS, ...JUDGEMENTS, ...GOODBYES, THANKS, ...REFUSALS, ...TALK];
/** Of a character that its owner has described. */
const OF_ANY = [...REFUSALS, ...GOODBYES];

/** A longer message says more. In UTF-16 code units. */
const LONG = 160;

/** In UTF-16 code units. */
const MAX_QUOTED = 200;

function ownMessage(which: "first" | "last", messages: readonly ChatMessage[]): string {
  const said = messages.filter(({ role }) => role === "user").slice(0, -1);
  const text = (which === "first" ? said[0] : said.at(-1))?.content.replace(/\s+/g, " ").trim();
  if (text === undefined) return "I see no earlier message of yours.";
  const quoted = text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED).toWellFormed()} …` : text;
  return `Your ${which} message was: “${quoted}”.`;
}

/**
 * Null for any other message, and for another character but for what it is to calculate, a goodbye, what it cannot do, and
 * what it was asked before.
 */
export function replyTo(question: string, messages: readonly ChatMessage[]): Reply | null {
  if (question.length > LONG) return null;
  const calculation = calculationOf(question);
  if (calculation !== null) return { beginning: calculation, sentences: 1 };
  const own = ownMessageAsked(question);
  if (own !== null) return withSentences(ownMessage(own, messages));
  const isOwn = isAssistant(messages);
  if (isOwn && deedIn(question)?.does === "remember") return { beginning: REMEMBERS, sentences: 1 };
  const name = nameTold(messages);
  const reply =
    isOwn && OTHERS.test(question) && name !== null
      ? { asked: OTHERS, beginning: `No, I am ${name}. ${RUNS_ON}` }
      : (isOwn ? ALL : OF_ANY).find(({ asked }) => asked.test(question));
  if (reply === undefined) return null;
  return withSentences(reply.beginning.replace("$1", (reply.asked.exec(question)?.[1] ?? "").toLowerCase()));
}

function withSentences(beginning: string): Reply {
  const ends = sentenceEnds(beginning);
  return { beginning, sentences: ends.at(-1) === beginning.length ? ends.length : ends.length + 1 };
}
