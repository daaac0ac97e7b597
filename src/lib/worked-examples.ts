import {
  asksAboutWorld,
  asksForAnyFact,
  asksForCode,
  asksForCorrection,
  asksForEmail,
  asksForHaiku,
  asksForJoke,
  asksForRecipe,
  asksForSummary,
  isStatement,
  needsSomething,
} from "./questions.ts";
import { REMEMBERS } from "./recall.ts";

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

const NONE: WorkedExamples = { exchanges: [], subjects: [] };
/** Before a question about what the person has told: left alone, the model answers with its own name. */
export const RECALL: WorkedExamples = {
  exchanges: [
    ["My name is Leopold.", REMEMBERS],
    ["What is my name?", "Your name is Leopold."],
    ["My aunt lives in Trieste.", REMEMBERS],
    ["Where does my aunt live?", "Your aunt lives in Trieste."],
  ],
  subjects: ["leopold", "trieste", "aunt"],
};

/**
 * Before a message whose answer is to be JSON. Of 58 values that messages gave, the model wrote 49 rightly after these
 * and 40 without. Answers in words would teach it to answer in words.
 */
export const STRUCTURED: WorkedExamples = {
  exchanges: [
    ["Lena is 33 and lives in Porto.", '{"name":"Lena","age":33,"city":"Porto"}'],
    ["The train R7 leaves at 8:20 from Lyon.", '{"train":"R7","time":"8:20","from":"Lyon"}'],
    ["We bought 7 lamps for 210 euros.", '{"item":"lamps","count":7,"price":210}'],
    [
      "What a terrible film! Pens, paper and ink were on sale.",
      '{"feeling":"negative","things":["pens","paper","ink"]}',
    ],
  ],
  subjects: [],
};

const KINDS: readonly (WorkedExamples & { asked: { test(message: string): boolean } })[] = [
  {
    asked: /\b(?:in|with) (?:one|a single) word\b/i,
    exchanges: [["In one word: what colour is the sky?", "Blue."]],
    subjects: [],
  },
  {
    asked: /\bin (?:one|a single) sentence\b/i,
    exchanges: [["In one sentence: what is a river?", "A river is a long stream of water that flows to the sea."]],
    subjects: ["river", "stream", "flows"],
  },
  {
    asked: { test: asksForCorrection },
    exchanges: [
      ["Fix the spelling: Ther is a dogg in the gardn.", "There is a dog in the garden."],
      ["Correct this: She go to school yesterday", "She went to school yesterday."],
    ],
    subjects: [],
  },
  {
    asked: { test: asksForSummary },
    exchanges: [
      [
        "Summarize: The shop in our street is closed on Monday and Tuesday because the owner is ill, but it opens again on Wednesday at nine.",
        "The shop is closed until Wednesday, because its owner is ill.",
      ],
    ],
    subjects: [],
  },
  {
    asked: { test: asksForEmail },
    exchanges: [
      [
        "Write an email to my landlord about a broken lamp.",
        "Subject: Broken lamp\n\nDear [Name],\n\nThe lamp in the hall has been broken since Monday. Could you please have it repaired this week?\n\nKind regards,\n[Your name]",
      ],
    ],
    subjects: ["lamp", "landlord"],
  },
  {
    asked: { test: asksForRecipe },
    exchanges: [
      [
        "Give me a recipe for tomato soup.",
        "You need 500 g of tomatoes, 1 onion, 500 ml of stock, a little oil and salt.\n\n1. Chop the onion and fry it in the oil.\n2. Add the tomatoes, the stock and the salt.\n3. Cook for 20 minutes, then blend the soup.",
      ],
      [
        "Give me a recipe for shortbread.",
        "You need 250 g of flour, 150 g of butter, 80 g of sugar and 1 pinch of salt.\n\n1. Mix the butter with the sugar, then add the flour and the salt.\n2. Roll out the dough and cut it into fingers.\n3. Bake them at 170 °C for 20 minutes.",
      ],
    ],
    subjects: ["shortbread", "fingers"],
  },
  {
    asked: /\bsql\b/i,
    exchanges: [
      [
        "Show me a SQL query that lists all books by Austen.",
        "```sql\nSELECT * FROM books WHERE author = 'Austen';\n```",
      ],
      ["Write a SQL query that counts the books.", "```sql\nSELECT COUNT(*) FROM books;\n```"],
    ],
    subjects: ["austen"],
  },
  {
    asked: { test: asksForCode },
    exchanges: [
      ["Write a Python function that doubles a number.", "```python\ndef double(x):\n    return 2 * x\n```"],
      ["Write a bash script that shows the free memory.", "```bash\n#!/bin/bash\nfree -h\n```"],
    ],
    subjects: [],
  },
  {
    asked: { test: asksForHaiku },
    exchanges: [
      [
        "Write a haiku about the moon.",
        "Pale moon on the lake,\na heron stands in silver,\nthe reeds hold their breath.",
      ],
      ["Write a haiku about coffee.", "Steam above the cup,\nthe kitchen is still half dark,\none more quiet sip."],
    ],
    subjects: ["heron", "reeds", "sip"],
  },
  {
    asked: { test: asksForAnyFact },
    exchanges: [
      ["Tell me a fun fact.", "Honey does not spoil: some that was found in old tombs in Egypt can still be eaten."],
      ["Tell me something interesting.", "An octopus has three hearts and blue blood."],
    ],
    subjects: ["honey", "tombs", "octopus"],
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
    asked: { test: asksForJoke },
    exchanges: [
      ["Tell me a joke.", "Why did the scarecrow win a prize? Because he was outstanding in his field."],
      ["Tell me another joke.", "What do you call a bear without teeth? A gummy bear."],
    ],
    subjects: ["scarecrow", "prize", "teeth", "gummy", "gum"],
  },
  {
    asked: { test: needsSomething },
    exchanges: [
      ["I am thirsty.", "You could drink a glass of cold water."],
      ["I am freezing.", "You could put on a warm jumper and make some tea."],
      ["I am stuck.", "You could take a break and go for a short walk."],
    ],
    subjects: ["jumper"],
  },
  {
    asked: { test: isStatement },
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
