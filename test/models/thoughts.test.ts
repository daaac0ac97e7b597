import { expect, test } from "bun:test";
import { createThoughtFilter } from "../../src/models/thoughts.ts";

/** What is shown of an answer that arrives in pieces of this length. */
function shownOf(answer: string, length: number): string {
  const filter = createThoughtFilter();
  let shown = "";
  for (let at = 0; at < answer.length; at += length) shown += filter.push(answer.slice(at, at + length));
  return shown + filter.end();
}

test.each([
  ["<think>\nA colour. <b>\n</think>\n\nBlue.", "Blue."],
  ["\n<think></think>Blue.", "Blue."],
  ["<think>It is cut here", ""],
  ["Blue.", "Blue."],
  [" Blue <think> is a tag</think>.", " Blue <think> is a tag</think>."],
  ["<thing> is a tag", "<thing> is a tag"],
  ["<thi", "<thi"],
  ["\n", "\n"],
  ["", ""],
  [`${" ".repeat(100)}<think>Blue.`, `${" ".repeat(100)}<think>Blue.`],
])("of %j is shown %j, however it is cut", (answer, shown) => {
  for (const length of [1, 2, 3, 7, 1_000]) expect(shownOf(answer, length)).toBe(shown);
});
