import { expect, test } from "bun:test";
import { workedExamples } from "../../src/lib/worked-examples.ts";

test.each([
  ["What is the capital of France?", "Who invented the telephone?"],
  ["My train is late.", "I found a coin in the street."],
  ["Do you know a joke?", "Tell me a joke."],
  ["In one word: what is snow?", "In one word: what colour is the sky?"],
])("a message comes after examples of its kind: %s", (message, first) => {
  expect(workedExamples(message).exchanges[0]?.[0]).toBe(first);
});

test("who asks for advice gets no examples", () => {
  expect(workedExamples("What should I read?").exchanges).toEqual([]);
});
