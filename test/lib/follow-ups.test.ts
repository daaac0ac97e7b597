import { expect, test } from "bun:test";
import { inFull } from "../../src/lib/follow-ups.ts";

test.each([
  ["What is the capital of France?", "Paris.", "And of Italy?", "What is the capital of Italy?"],
  ["What is the capital of Italy?", "Rome.", "What about Spain?", "What is the capital of Spain?"],
  ["what is the capital of france", "Paris.", "and italy?", "what is the capital of italy?"],
  ["What is the capital of South Korea?", "Seoul.", "And of Japan?", "What is the capital of Japan?"],
  ["Who won the World Cup in 2014?", "Germany.", "And in 2018?", "Who won the World Cup in 2018?"],
  ["How many miles is 10 km?", "10 km ≈ 6.21371 miles", "And 20?", "How many miles is 20 km?"],
  ["What time is it in Tokyo?", "It is 9.", "How about New York", "What time is it in New York?"],
  ["What day is it today?", "Friday.", "And tomorrow?", "What day is it tomorrow?"],
  ["Which day is it?", "Friday.", "and the day after tomorrow?", "Which day is it the day after tomorrow?"],
  ["Tell me a joke.", "…", "Another one?", "Tell me another joke."],
  ["What should I read on a train?", "…", "Another one?", "What else should I read on a train?"],
  ["Tell me another joke.", "…", "one more please", "Tell me another joke."],
  ["Write a haiku about tea", "…", "Another one about coffee", "Write a haiku about coffee"],
  ["Write a haiku about coffee", "…", "And another one", "Write another haiku about coffee"],
  [
    "Write a Python function that adds two numbers",
    "…",
    "Now one that divides them",
    "Write a Python function that divides them",
  ],
  ["Name three fruits", "…", "And two vegetables?", "Name two vegetables"],
  [
    "Who painted the Mona Lisa?",
    "It is by Leonardo da Vinci.",
    "Where was he born?",
    "Where was Leonardo da Vinci born?",
  ],
  ["What is 12 times 13?", "12 × 13 = 156", "And divided by 2?", "What is 156 divided by 2?"],
  ["What is 12 times 13?", "12 × 13 = 156", "plus 4", "What is 156 plus 4?"],
  ["What is 2 times 1.5?", "2 × 1.5 = 3.", "times 4", "What is 3 times 4?"],
  ["Who wrote Hamlet?", "It was William Shakespeare.", "When was he born?", "When was William Shakespeare born?"],
  ["Who was Marie Curie?", "A physicist.", "Where did she live?", "Where did Marie Curie live?"],
  ["I have a dog.", "How nice!", "He is called Rex.", "My dog is called Rex."],
  ["We got a black cat", "How nice!", "Her name is Luna", "My cat is called Luna."],
  ["Add milk to my shopping list.", "Done.", "And eggs", "Add eggs to my shopping list"],
  ["Put milk on the list", "Done.", "also bread and butter, please", "Add bread and butter on the list"],
  ["Append 'one' to log.md", "Done.", "and 'two'", "Add 'two' to log.md"],
  ["Write a poem", "Waves,\nagain.", "Save it as sea.md", "Save this as sea.md:\nWaves,\nagain."],
  ["Why?", "Because.", "Can you write that into a file called a.txt?", "Save this as a file called a.txt:\nBecause."],
  ["Write a haiku", "Steam.", "Ok, and save it as tea.md", "Save this as tea.md:\nSteam."],
  ["Write a haiku", "Steam.", "save that to tea.md please", "Save this as tea.md:\nSteam."],
  ["Write a haiku", "Steam.", "Great! Save the haiku in notes/tea.md, thanks.", "Save this as notes/tea.md:\nSteam."],
  ["My name is Joe.", "Hello Joe!", "Please remember that.", "Remember that My name is Joe."],
])("after %j and %j, %j means %j", (asked, answered, message, meant) => {
  expect(inFull(message, { asked, answered })).toBe(meant);
});

test.each([
  ["What is the capital of France?", "Paris.", "And you?"],
  ["What is the capital of France?", "Paris.", "And what is my name?"],
  ["What is the capital of France?", "Paris.", "And that is all."],
  ["I like tea.", "Me too.", "And coffee?"],
  ["I like tea.", "Me too.", "Another one?"],
  ["Who painted the Mona Lisa?", "I do not know.", "Where was he born?"],
  ["What is my sister called?", "Ann.", "When was he born?"],
  ["I have a question.", "Yes?", "He is called Rex and I like him a lot, and so on."],
  ["hello", "Hello!", "Save this in ideas.txt: a garden on the roof"],
  ["hello", "Hello!", "Save this to ideas.txt:\na garden.md"],
  ["What is the capital of France?", "Paris.", "Write the word hello into hello.md"],
  ["What is the capital of France?", "Paris.", "Store the number 4711 in door.md"],
  ["What is the capital of France?", "Paris.", "Save the date 3 May to dates.md"],
  ["Write a poem", "Waves.", "Save it as sea.md and delete old.md"],
  ["", "", "And of Italy?"],
])("after %j and %j, %j stays as it is", (asked, answered, message) => {
  expect(inFull(message, { asked, answered })).toBe(message);
});
