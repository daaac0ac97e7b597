import { expect, test } from "bun:test";
import { asksAboutWorld } from "../../src/lib/questions.ts";

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
