import { afterAll, expect, test } from "bun:test";
import { REMEMBERS } from "../../src/lib/recall.ts";
import { RECALL } from "../../src/lib/worked-examples.ts";
import { recallOf } from "../../src/models/local/recall.ts";
import { chat, collect, never, openLocalEngine, textOf } from "./local-setting.ts";

const { engine, close } = openLocalEngine();
afterAll(close);

/** As runtime/short-prompt.ts writes it. */
const after = (told: string[], question: string) => recallOf(promptAfter(told, question));
const promptAfter = (told: string[], question: string) => [
  { role: "system" as const, content: "Your name is Ada." },
  ...(told.length === 0 ? [] : [...RECALL.exchanges, ...told.map((text) => [text, REMEMBERS] as const)]).flatMap(
    ([user, assistant]) => [
      { role: "user" as const, content: user },
      { role: "assistant" as const, content: assistant },
    ],
  ),
  { role: "user" as const, content: question },
];

test.each([
  ["My name is Tom.", "What's my name?", "Your name is"],
  ["I have a dog called Rex.", "What is my dog called?", "Your dog is called"],
  ["I'm 34.", "Do you know how old I am?", "You are 34."],
  ["I paid it (invoice 2210).", "What is my invoice number?", "You paid it (invoice 2210)."],
  ["I was born in 1990.", "In what year was I born?", "You were born in 1990."],
  ["I was born in May.", "In what month was I born?", "You were born in"],
  ["I drive a red car.", "What colour is my car?", "Your car is"],
  ["Our cat is Mimi.", "What is the name of our cat?", "The name of your cat is"],
  ["The code word is banana.", "What is the code word?", "The code word is"],
  ["My sister is called Marta.", "Who is Marta?", "Marta is"],
  ["Anna's birthday is 3 May.", "When is Anna's birthday?", "Anna's birthday is"],
  ["I love jazz.", "What kind of music do I love?", "You love"],
  ["My brother lives in Oslo.", "Where does my brother live?", "Your brother"],
  ["I am a teacher.", "What do I do for a living?", "You are"],
  ["I lost my keys.", "What did I lose?", "You"],
  ["The plumber comes on Friday.", "When does the plumber come?", "The plumber"],
  ["The wifi password is hunter2.", "Do you remember the wifi password?", "The wifi password is"],
])("after %p, an answer to %p begins with %p", (told, question, beginning) => {
  expect(after([told], question)?.openings[0]).toBe(beginning);
});

test("what was told is what the answer is likely to say, to the person who told it", () => {
  expect(after(["I'm Tom, and my dog was with me."], "Who am I?")?.told).toEqual([
    "you are Tom, and your dog was with you",
  ]);
});

test("all that a person has told of themselves is told to them in one sentence", () => {
  const told = ["My name is Ben.", "I live in York.", "Call me Benny!"];
  expect(after(told, "What do you know about me?")?.openings[0]).toBe(
    "Your name is Ben, you live in York, and your name is Benny.",
  );
});

test("what is noted of a person is told to them as it is noted", () => {
  expect(after(["Name: Kim", "Lives in Leeds."], "What do you know about me?")?.openings[0]).toBe(
    "I know this: Name: Kim; Lives in Leeds.",
  );
});

test.each([
  ["What is my name?", "what your name is"],
  ["Where do I live?", "where you live"],
  ["How old am I?", "how old you are"],
  ["What is my dog called?", "what your dog is called"],
  ["When is my birthday?", "when your birthday is"],
])("what nobody has told is not made up: %s", (question, unknown) => {
  expect(after([], question)?.openings).toEqual([`I do not know ${unknown}: tell me, and I will remember it.`]);
});

test("who has told nothing of themselves is told so", () => {
  expect(after([], "What do you know about me?")?.openings).toEqual([
    "You have told me nothing about yourself in this conversation.",
  ]);
});

test("what the owner has written may be answered from it", () => {
  const asked = (system: string, content: string) =>
    recallOf([
      { role: "system", content: `${system}\n\nYour name is Ada.` },
      { role: "user", content },
    ]);
  expect(asked("You work for us. Our office is in Leeds.", "Where is our office?")).toBeNull();
  expect(asked("You live by the sea.", "Where do I live?")).not.toBeNull();
  expect(asked("You are kind.", "What is my name?")).not.toBeNull();
});

test("advice is not what a person has told", () => {
  for (const question of ["What should I read?", "How do I boil an egg?", "What do I need for a picnic?"])
    expect([question, after([], question)]).toEqual([question, null]);
});

test.each([
  [["My name is Tom."], "What's my name?", "Your name is Tom."],
  [["My sister is called Marta."], "What is my sister's name?", "Your sister's name is Marta."],
  [["I was born in 1990."], "In what year was I born?", "You were born in 1990."],
  [["My phone number is 0171 2345678."], "What is my phone number?", "Your phone number is 0171 2345678."],
  [["My locker code is 11-22-33."], "What is my locker code?", "Your locker code is 11-22-33."],
  [["The door code is 4711."], "What is the door code?", "The door code is 4711."],
  [["Phone: 0171 2345678"], "What is my phone number?", "I know this: Phone: 0171 2345678."],
  [["Anna's birthday is 3 May."], "When is Anna's birthday?", "Anna's birthday is 3 May."],
  [["My birthday is 3 May."], "When is my birthday?", "Your birthday is 3 May."],
  [["My dog is called Rex and I live in Leeds."], "Where do I live?", "You live in Leeds."],
  [[], "Where do I live?", "I do not know where you live: tell me, and I will remember it."],
])("after %j, the model answers %p with %p", async (told, question, answer) => {
  const messages = promptAfter(told, question);
  expect(textOf(await collect(engine.stream(chat("", { messages, maxTokens: 40 }), never)))).toBe(answer);
});
