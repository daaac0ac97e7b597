import { expect, test } from "bun:test";
import {
  asksAboutWorld,
  asksForAnyFact,
  asksForCode,
  asksForCorrection,
  asksForHaiku,
  asksForSummary,
  needsSomething,
} from "../../src/lib/questions.ts";

test.each([
  "What is the capital of France?",
  "hey, what's the capital of france",
  "capital of France?",
  "Can you tell me who wrote Hamlet?",
  "Tell me the capital of Japan.",
  "In which city is the Eiffel Tower?",
  "Why is the sky blue?",
])("asks for a fact of the world: %s", (message) => {
  expect(asksAboutWorld(message)).toBe(true);
});

test.each([
  "Who are you?",
  "What is my dog called?",
  "What should we cook?",
  "What is a good gift for a child?",
  "How to boil an egg?",
  "Why do birds sing? Answer in two sentences.",
  "What is a computer? Explain it.",
  "The end of the day is near.",
  "What is this?\n\nA long text.",
  `What is ${"very ".repeat(30)}long?`,
])("asks for something else than a fact of the world, or for more: %s", (message) => {
  expect(asksAboutWorld(message)).toBe(false);
});

test.each([
  ["a correction", asksForCorrection, "Fix the spelling: I hav a gud idea", "How do I fix a chair?"],
  ["a correction", asksForCorrection, "Can you correct this?\nHe dont like it", "Is that correct?"],
  ["a summary", asksForSummary, "Please summarise this: The meeting is on Monday.", "Summarize the news."],
  ["a haiku", asksForHaiku, "Write me a haiku about my dog", "What is a haiku?"],
  ["any fact", asksForAnyFact, "Tell me a fun fact!", "Tell me something about cats."],
  ["code", asksForCode, "Write a bash script that prints the date", "Give me a reason."],
  ["what helps", needsSomething, "I'm a bit hungry", "I am tired of waiting for the bus to come."],
] as const)("whether a message asks for %s, by its words", (_, asks, asking, other) => {
  expect(asks(asking)).toBe(true);
  expect(asks(other)).toBe(false);
});

test("a message that asks for corrections over and over, and has nothing to correct, is looked through once", () => {
  // The square of this many is minutes.
  expect(asksForCorrection("spelling: check spelling ".repeat(2))).toBe(true);
  expect(asksForCorrection("check spelling ".repeat(400_000))).toBe(false);
  expect(asksForCorrection("A list: check spelling")).toBe(false);
});
