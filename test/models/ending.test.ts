import { expect, test } from "bun:test";
import { endOfAnswer, lacksPeriod } from "../../src/models/local/ending.ts";

const ENDLESS = { sentences: Number.POSITIVE_INFINITY };

test("a letter ends after its signature", () => {
  const letter = "Dear Tom,\n\nThank you for the cake.\n\nBest regards,\nAda";
  expect(endOfAnswer(`${letter}\n\nThis letter is friendly.`, [], ENDLESS)).toBe(letter.length);
  expect(endOfAnswer(letter, [], ENDLESS)).toBeNull();
  expect(endOfAnswer("With love, we go on\nfor many days\n", [], ENDLESS)).toBeNull();
});

test("an answer ends at the first stop string, or after the sentences that were asked for", () => {
  expect(endOfAnswer("One. Two. Three.", [], { sentences: 2 })).toBe("One. Two.".length);
  expect(endOfAnswer("One. Two. Three.", ["Tw"], { sentences: 2 })).toBe("One. ".length);
  expect(endOfAnswer("It costs 3.", [], { sentences: 1 })).toBeNull();
});

test("a poem's last line lacks its period; a sentence, a signature and a word do not", () => {
  expect(lacksPeriod("The snow falls down\nAnd all the land is white")).toBeTrue();
  for (const text of ["All is white.", "Best regards,\nAda", "Bonjour", "```\nreturn a + b;\n```", ""]) {
    expect(lacksPeriod(text)).toBeFalse();
  }
});
