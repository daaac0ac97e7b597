import { expect, test } from "bun:test";
import { asksAboutWorld, workedExamples } from "../../src/lib/worked-examples.ts";

test.each([
  "What is the capital of France?",
  "hey, what's the capital of france",
  "capital of France?",
  "Can you tell me who wrote Hamlet?",
  "Tell me the capital of Japan.",
  "In which city is the Eiffel Tower?",
  "Why is the sky blue?",
])("asks for a fact, whose examples are short answers: %s", (message) => {
  expect(asksAboutWorld(message)).toBe(true);
  expect(workedExamples(message).exchanges[0]?.[0]).toBe("Who invented the telephone?");
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
])("asks for something else than a fact, or for more: %s", (message) => {
  expect(asksAboutWorld(message)).toBe(false);
  expect(workedExamples(message).exchanges.flat()).not.toContain("Who invented the telephone?");
});
