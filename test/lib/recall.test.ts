import { expect, test } from "bun:test";
import {
  asStatement,
  doesNotKnow,
  latest,
  mayAnswer,
  needsTelling,
  notesFor,
  recallQuestion,
  statementsFor,
} from "../../src/lib/recall.ts";

test.each([
  ["What is my name?", "what is my name"],
  ["what's my name again?", "what is my name"],
  ["Do you remember my name?", "what is my name"],
  ["Can you tell me what my dog is called?", "what is my dog called"],
  ["Tell me where I live.", "where do I live"],
  ["Hey, do you know how old I am?", "how old am I"],
  ["How many brothers do I have?", "How many brothers do I have"],
  ["What do you know about me?", "what do you know about me"],
  ["When is Anna's birthday?", "when is Anna's birthday"],
  ["Do you know Anna's birthday?", "what is Anna's birthday"],
  ["whats my name?", "what is my name"],
  ["whats my locker code", "what is my locker code"],
  ["wheres my car", "where is my car"],
  ["whens my birthday", "when is my birthday"],
  ["whos my boss?", "who is my boss"],
  ["Whose birthday do I have to remember?", "whose birthday do I have to remember"],
  ["when is sam's birthday?", "when is sam's birthday"],
  ["whens sam's birthday", "when is sam's birthday"],
])("asks for something that the person has told of themselves: %s", (message, question) => {
  expect(recallQuestion(message)).toBe(question);
});

test.each([
  "What is your name?",
  "What should I read?",
  "How do I boil an egg?",
  "Why am I tired?",
  "What can I do?",
  "What did I say about the sea?",
  "How big is the sea? I love big seas.",
  "What is a capital?",
  "What is one's duty?",
  "what is today's date?",
  "My name is Tom.",
])("asks for nothing that the person has told of themselves: %s", (message) => {
  expect(recallQuestion(message)).toBeNull();
});

test("only what nobody can know of a person needs to be told", () => {
  expect(["what is my name", "how old am I", "where do I live"].map(needsTelling)).toEqual([true, true, true]);
  expect(["What do I need for a picnic", "How much water does my dog need"].map(needsTelling)).toEqual([false, false]);
});

const SAID = [
  "Hello, I'm Tom. How are you?",
  "I live in Leeds.",
  "My boss is called Mr. Green.",
  "Tell me about my car.",
  "Remember: The code is 1234.",
  "We have two cats. Do I need a third?",
  "Remember that Anna's birthday is 3 May.",
];

test.each([
  ["Where do I live?", ["I live in Leeds."]],
  ["What is the number of our cats?", ["We have two cats."]],
  ["What is the code?", ["The code is 1234."]],
  ["When is Anna's birthday?", ["Anna's birthday is 3 May."]],
  ["When is Tom's birthday?", []],
  ["Who is my boss?", ["My boss is called Mr. Green."]],
  ["How many cats do we have?", ["We have two cats."]],
  ["What are our cats called?", []],
  ["What is my name?", ["I'm Tom."]],
  ["What do you know about me?", ["I'm Tom.", "I live in Leeds.", "My boss is called Mr. Green.", "We have two cats."]],
  ["How old am I?", []],
  ["What is my job?", []],
  ["When is my meeting?", []],
  ["What do I need for a picnic?", []],
])("a question about the person comes with what they told that is nearest to it: %s", (question, statements) => {
  expect(statementsFor(recallQuestion(question) ?? question, SAID)).toEqual(statements);
});

test.each([
  "I like tea, please remember it.",
  "Please remember that I like tea.",
  "I like tea, so keep that in mind, please!",
  "I like tea; don't forget it.",
])("what was told comes without the request to remember it: %s", (said) => {
  expect(statementsFor(recallQuestion("What do you know about me?") ?? "", [said])).toEqual(["I like tea."]);
});

test.each([
  ["What is my dog called?", ["My dog is called Rex.", "My dog likes cheese.", "My dog is called Max."], [2]],
  ["What is my favourite colour?", ["My favourite colour is blue.", "My favourite colour is green."], [1]],
  ["Where do I live?", ["I live in Leeds.", "I moved, I live in York now."], [1]],
  ["What is my name?", ["My name is Tom.", "Actually, my name is Tim."], [1]],
  ["How old am I?", ["I am 33.", "I'm 34."], [1]],
  ["What is the door code?", ["The door code is 12.", "The door code is 34."], [1]],
  ["What is my sister's name?", ["My sister is called Ann.", "My name is Tom."], [0, 1]],
  ["What do I like?", ["I like tea.", "I like jazz."], [0, 1]],
  ["What colour is my cat?", ["My cat is black.", "My cat is old."], [0, 1]],
])("of what was told for %s in %j, what was said otherwise since is left out", (asked, said, left) => {
  const question = recallQuestion(asked) ?? "";
  const statements = statementsFor(question, said);
  const expected = statementsFor(
    question,
    said.filter((_, at) => (left as number[]).includes(at)),
  );
  expect(latest(question, statements, statements)).toEqual(expected);
  expect(expected.length).toBe(left.length);
});

test("what was said takes the place of what was noted before", () => {
  const noted = ["The user says: my favourite colour is blue", "The user likes tea."];
  const said = ["My favourite colour is green."];
  expect(latest("what is my favourite colour", [...noted, ...said], said)).toEqual(["The user likes tea.", ...said]);
});

test("whatever a person tells, a question comes with a few short statements", () => {
  const many = Array.from({ length: 500 }, (_, at) => `I have seen ${at} films.`);
  expect(statementsFor("What films have I seen?", [...many, `I like ${"x".repeat(300)}.`])).toEqual(many.slice(-4));
});

test("what a pasted letter says is told without its salutation", () => {
  const letter = "Dear Sirs,\nI bought a bike on 2 November (invoice 2210). It broke.\nYours, Tom";
  expect(statementsFor(recallQuestion("What was my invoice number?") ?? "", [letter])).toEqual([
    "I bought a bike on 2 November (invoice 2210).",
  ]);
});

const NOTED = ["- Name: Kim\n- Lives in Leeds.\n- Has a dog called Rex.", "Kim likes tea."];

test.each([
  ["what is my name", ["- Name: Kim"]],
  ["who am I", ["- Name: Kim"]],
  ["where do I live", ["- Lives in Leeds."]],
  ["what is my dog called", ["- Has a dog called Rex."]],
  ["what is my favourite drink", ["Kim likes tea."]],
  ["how old am I", []],
  ["when is my birthday", []],
])("a question about the person comes with what is noted of them: %s", (question, notes) => {
  expect(notesFor(question, NOTED)).toEqual(notes);
});

test.each([
  ["what your name is", "It's Joe.", "My name is Joe."],
  ["what your name is", "Joe", "My name is Joe."],
  ["where you live", "in Leeds!", "I live in Leeds."],
  ["how old you are", "42", "I am 42."],
  ["when you were born", "In May", "I was born In May."],
  ["what colour your car is", "red", "My car is red."],
  ["what your name is", "Mark Stone", "My name is Mark Stone."],
  ["what your phone number is", "0171 2345678", "My phone number is 0171 2345678."],
  ["what your phone number is", "+49 171 23-45", "My phone number is +49 171 23-45."],
  ["when your birthday is", "3/5/1990", "My birthday is 3/5/1990."],
])("after it did not know %s, a short message is a statement of that: %s", (what, message, statement) => {
  expect(asStatement(message, doesNotKnow(what))).toBe(statement);
});

test.each([
  ..."My name is Joe.|Why do you ask?|What is the moon|Forget it|Good morning!|Bye!|12 * 12|3 - 1|plan.md|read it to me".split(
    "|",
  ),
  ..."Delete plan.md|Add milk to my list|And tell me a joke|Let's talk about tea|save that|thank you so much".split(
    "|",
  ),
  `It is a long story${", very long".repeat(10)}.`,
])("a message that is no short answer stays as it is: %s", (message) => {
  expect(asStatement(message, doesNotKnow("what your name is"))).toBe(message);
  expect(asStatement("Joe", "What a day!")).toBe("Joe");
});

test("texts without end are taken as they are, at once", () => {
  const endless = `I do not know ${"you ".repeat(200_000)}`;
  expect(asStatement("Joe", endless)).toBe("Joe");
  expect(statementsFor("where do I live", [endless, `I live in ${"x ".repeat(100_000)}`])).toEqual([]);
  expect(recallQuestion(`What is my ${"very ".repeat(100_000)}long name?`)).toBeNull();
});

test("what is near in meaning answers only what it can", () => {
  expect(mayAnswer("My dog is called Rex.", "what is my name")).toBe(false);
  expect(mayAnswer("My name is Kim.", "what is my name")).toBe(true);
  expect(mayAnswer("I have a puppy called Rex.", "what is my dog called")).toBe(true);
  expect(mayAnswer("Our dog answers to Rex.", "what is my dog called")).toBe(true);
  expect(mayAnswer("I have a dog.", "what is my dog called")).toBe(false);
  expect(mayAnswer("My sister is 12 years old.", "how old am I")).toBe(false);
  expect(mayAnswer("I'm almost forty.", "how old am I")).toBe(true);
});
