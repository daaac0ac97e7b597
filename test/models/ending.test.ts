import { expect, test } from "bun:test";
import { closingOf, endOfAnswer, endsTooSoon } from "../../src/models/local/ending.ts";

const ENDLESS = { sentences: Number.POSITIVE_INFINITY, items: 0 };

test("a letter ends after its signature", () => {
  const letter = "Dear Tom,\n\nThank you for the cake.\n\nBest regards,\nAda";
  expect(endOfAnswer(`${letter}\n\nThis letter is friendly.`, [], ENDLESS)).toBe(letter.length);
  expect(endOfAnswer(letter, [], ENDLESS)).toBeNull();
  expect(endOfAnswer("With love, we go on\nfor many days\n", [], ENDLESS)).toBeNull();
});

test("an answer ends at the first stop string, or after the sentences that were asked for", () => {
  expect(endOfAnswer("One. Two. Three.", [], { sentences: 2, items: 0 })).toBe("One. Two.".length);
  expect(endOfAnswer("One. Two. Three.", ["Tw"], { sentences: 2, items: 0 })).toBe("One. ".length);
  expect(endOfAnswer("It costs 3.", [], { sentences: 1, items: 0 })).toBeNull();
});

test("an answer has as many items as were asked for, however many sentences they have", () => {
  const wish = { sentences: 2, items: 2, least: 1 };
  const two = "Here are two:\n\n1. Tea. It is warm. It is cheap.\n2. Milk";
  expect(endOfAnswer(`${two}\n3. Wine`, [], wish)).toBe(two.length);
  expect(endOfAnswer(two, [], wish)).toBeNull();
  expect(endsTooSoon("1. Tea. It is warm. It is cheap.", wish)).toBeTrue();
  expect(endsTooSoon(two, wish)).toBeFalse();
  expect(endsTooSoon("Tea and milk.", wish)).toBeFalse();
});

test("an answer does not end within its code", () => {
  const answer = "Use a loop, such as this one:\n```python\nfor x in y:\n    print(x)\n```";
  expect(endOfAnswer(answer, [], { sentences: 1, items: 0 })).toBeNull();
  expect(endOfAnswer(`${answer}\nThat is all. `, [], { sentences: 1, items: 0 })).toBeGreaterThan(answer.length);
});

test("an answer lacks the mark after its code or the period of a poem's last line, and nothing else", () => {
  expect(closingOf("The snow falls down\nAnd all the land is white")).toBe(".");
  expect(closingOf("```python\ndef add(a, b):\n    return a + b")).toBe("\n```");
  for (const text of ["All is white.", "Best regards,\nAda", "Bonjour", "```\nreturn a + b;\n```", ""]) {
    expect(closingOf(text)).toBe("");
  }
});
