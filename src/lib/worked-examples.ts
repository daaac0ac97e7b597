/**
 * Exchanges that show a small model what kind of answer a message wants: it does not know how short one word is, says
 * "in one sentence" itself, and takes a plain statement for the title of an essay. The model's guards know them too,
 * because it likes to speak of them (models/local/guards.ts).
 */
export interface WorkedExamples {
  /** In the order in which they come before the message. */
  exchanges: readonly (readonly [message: string, answer: string])[];
  /** Words of theirs that an answer to another message has no reason to use, in lower case. */
  subjects: readonly string[];
}

/** What may come before a question: "Hey, can you tell me". */
const BEFORE =
  /^\W*(?:(?:hello|hi|hey|so|and|ok|okay|please)\b\W*)*((?:(?:(?:can|could) you )?(?:please )?tell me\b|do you know\b)?)\W*/i;
const QUESTION =
  /^(?:(?:in|at|on|to|from|of|by|with|for) )?(?:(?:what|who|where|when|how(?! to\b))s?|whose|which|why)\b/i;
/** "The capital of France". */
const PART = /^(?:the )?\w+ of\b/i;
/** A longer message is about more than one fact. In UTF-16 code units. */
const LINE = 120;
const PERSONAL = /\b(?:i|me|my|we|us|our|you|your|yours)\b/i;
/** It asks for advice or a taste: "What is a good gift?", "Which is better, tea or coffee?" */
const WEIGHS = /\b(?:good|better|best|nice|nicest|should|would|could|helps?)\b/i;
/** It has examples of its own, or asks for more than a fact. */
const SIZED = /\b(?:words?|sentences?|lines?|paragraphs?|detail|explain|describe|list)\b/i;

/** Whether a message asks for a fact of the world: "What is the capital of France?" */
export function asksAboutWorld(message: string): boolean {
  const [before = "", told = ""] = BEFORE.exec(message) ?? [];
  const rest = message.slice(before.length);
  const asks = QUESTION.test(rest) || (PART.test(rest) && (told !== "" || message.trimEnd().endsWith("?")));
  const isLine = rest.length <= LINE && !rest.trim().includes("\n");
  return asks && isLine && ![PERSONAL, WEIGHS, SIZED].some((other) => other.test(rest));
}

const NONE: WorkedExamples = { exchanges: [], subjects: [] };
const KINDS: readonly (WorkedExamples & { asked: { test(message: string): boolean } })[] = [
  {
    asked: /\b(?:in|with) (?:one|a single) word\b/i,
    exchanges: [["In one word: what colour is the sky?", "Blue."]],
    subjects: [],
  },
  {
    asked: /\bin (?:one|a single) sentence\b/i,
    exchanges: [["In one sentence: what is a river?", "A river is a long stream of water that flows to the sea."]],
    subjects: [],
  },
  {
    // Left alone, the model answers in French what the capital of France is, and tells the story of why the sky is blue.
    asked: { test: asksAboutWorld },
    exchanges: [
      ["Who invented the telephone?", "The telephone was invented by Alexander Graham Bell."],
      ["What is the capital of Spain?", "The capital of Spain is Madrid."],
      [
        "Why does it rain?",
        "It rains because water vapour in the air cools and forms drops, which become so heavy that they fall.",
      ],
    ],
    subjects: [],
  },
  {
    // A statement.
    asked: /^(?:i|i['’]m|i['’]ve|my|we|our|it|it['’]s|the|this|there)\b[^?]*$/i,
    exchanges: [
      ["I found a coin in the street.", "How lucky! What will you do with the coin?"],
      ["My tooth hurts.", "I am sorry to hear that. I hope that your tooth is better soon."],
      ["I must go home now.", "Goodbye! I hope to see you again."],
    ],
    subjects: ["coin", "coins", "street", "tooth", "teeth", "dentist"],
  },
];

export const workedExamples = (message: string): WorkedExamples =>
  KINDS.find(({ asked }) => asked.test(message)) ?? NONE;
