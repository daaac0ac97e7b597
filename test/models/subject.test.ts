import { expect, test } from "bun:test";
import type { ChatMessage } from "../../src/models/local/protocol.ts";
import { subjectOf } from "../../src/models/local/subject.ts";

const SYSTEM = "You are a gruff cook.";
const chat = (...asked: string[]): ChatMessage[] => [
  { role: "system", content: SYSTEM },
  ...asked.flatMap((content): ChatMessage[] => [
    { role: "user", content },
    { role: "assistant", content: "Aye." },
  ]),
];

test("an answer should be close to its question", () => {
  expect(subjectOf(chat("What is in your stew?")).texts).toEqual(["What is in your stew?"]);
});

test("an agent that is asked about itself may answer with its character", () => {
  expect(subjectOf(chat("What do you do all day?")).texts).toContain(SYSTEM);
});

test("a rewritten text should be closer to its original than an answer to its question", () => {
  const { texts, enough } = subjectOf(chat("Rewrite this politely: Go away."));
  expect(texts).toEqual(["Go away."]);
  expect(enough).toBeGreaterThan(subjectOf(chat("What is in your stew?")).enough);
});

test("advice should be closer to its question than another answer, but that of works says what is always said", () => {
  const wantedFor = (question: string) => subjectOf(chat(question)).wanted;
  expect(wantedFor("How can I mend a chair?")).toBeGreaterThan(wantedFor("What is in your stew?"));
  expect(wantedFor("What should I read?")).toBe(wantedFor("What is in your stew?"));
});

test.each(["Translate 'sea' into French.", "How do you say that in German?", "Say yes or no: is it hot?"])(
  "any answer is accepted for: %s",
  (question) => {
    expect(subjectOf(chat(question)).texts).toEqual([]);
  },
);

test("a message of few words is combined with the one before it", () => {
  expect(subjectOf(chat("I love the sea.", "And you?")).texts).toContain("I love the sea. And you?");
  const asked = "What should I cook tonight for my two old friends?";
  expect(subjectOf(chat("I love the sea.", asked)).texts).toHaveLength(1);
});
