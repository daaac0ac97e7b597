import { expect, test } from "bun:test";
import fc from "fast-check";
import { calculationsIn, sumIn } from "../../src/models/local/tools/expression.ts";

test.each([
  ["12.5 + 7.25 = ?", "12.5 + 7.25"],
  ["Calculate (12 + 8) * 4.", "(12 + 8) * 4"],
  ["What is 3 x 4?", "3 * 4"],
  ["9 ÷ 3", "9 / 3"],
  ["How much is 15 % of 80?", "15 / 100 * 80"],
  ["007 * 3", "7 * 3"],
  ["On the 5th I paid 3 + 4 for a 3-room flat. How much is it?", "3 + 4"],
  ["Is (-5 + 3) * -2 a number?", "(-5 + 3) * -2"],
])("signs that a person writes leave nothing to choose: %s", (message, code) => {
  expect(calculationsIn(message)).toEqual([code]);
});

test("two numbers may be in either order, and are the message's own, in digits or words", () => {
  const all = ["*", "+", "-", "/"].map((sign) => `7 ${sign} 1020`);
  expect(calculationsIn("Take seven away from 1,020.").toSorted()).toEqual([...all, "1020 - 7", "1020 / 7"].sort());
  expect(calculationsIn("twenty-one plus 4")).toContain("21 + 4");
});

test("three numbers are in the order in which they were said", () => {
  expect(calculationsIn("Add up 120, 35 and 45.")).toContain("120 + 35 + 45");
  expect(calculationsIn("Add up 120, 35 and 45.").every((code) => /^120 . 35 . 45$/.test(code))).toBe(true);
});

test.each([
  "I have 3 cats.",
  "Add 1 and 99999999999999999999999.",
  "Divide 0.0000001 by 2.",
  "What is 50 minus 10%?",
  "What is 3 squared plus 4?",
  "It is 10:30, and we leave at 11:45.",
  "Come at 2 or 3.",
  "The 5th of 12.",
  "1 2 3 4 5",
  "2 * (3 + 4",
  "What is a third of 9 and 12?",
  "What is two thirds of 9?",
  "It was minus 5 and is 3 now.",
  "Add 3 and -5.",
  "What is 1,5 times 2 plus 3?",
  "Call 555-1234.",
  "Call +1 555 1234.",
  "2026-11-22 and 2026-11-25",
  "How many days from 5 May to 20 June?",
  "What is 11 pm plus 3 hours?",
  "We won 3-2.",
  "Think of a number between 1 and 10.",
  "What is 3 * x + 5?",
  "What is 5 km plus 300 m?",
  "What is 6'2 in cm?",
  "How tall is 5 feet 10 inches?",
  "How many minutes are 2 hours and 15 minutes?",
  "$5 + €3",
  "5! + 3",
  "log 100 + 3",
  "minus (3 + 2) is?",
  "What is 15% of twice 80?",
  "I ate 3 of 12 sweets. How many are left?",
  "How much is it to rent 2 e-bikes for 3 days?",
  "what does it cost to rent 2 bikes for 5 days",
  "How much for 4 people for 2 nights?",
])("numbers that alone do not say what is meant are not calculated with: %s", (message) => {
  expect(calculationsIn(message)).toEqual([]);
});

test("whatever a message says, what it may become is arithmetic and nothing else", () => {
  const word = fc.oneof(
    fc.constantFrom("+", "-", "*", "/", "(", ")", "x", "%", " of ", "seven", ","),
    fc.nat().map(String),
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(word, fc.string({ maxLength: 6 })), { maxLength: 12 }), (words) => {
      for (const code of calculationsIn(words.join(" "))) expect(code).toMatch(/^[\d.()+\-*/ ]+$/);
    }),
  );
});

test.each([
  ["What is 12 times 14?", "12 * 14"],
  ["12 x 14", "12 * 14"],
  ["Hey, what's seven plus thirty-five?", "7 + 35"],
  ["please calculate 1,000 divided by 8", "1000 / 8"],
  ["2 + 3 × 4 =", "2 + 3 * 4"],
  ["Multiply 1000 by 25.", "1000 * 25"],
  ["Subtract 7 from 20", "20 - 7"],
  ["What is the sum of 3 and 4?", "3 + 4"],
  ["-5 + 3", "-5 + 3"],
  ["What is -5 + 3?", "-5 + 3"],
  ["what is 7 - -2", "7 - -2"],
  ["how much is minus 5 plus 3", "-5 + 3"],
  ["seven minus minus two", "7 - -2"],
  ["Subtract -7 from 20", "20 - -7"],
  ["What is 12/4?", "12 / 4"],
  ["12-5=", "12 - 5"],
  ["(12-8)*4", "(12 - 8) * 4"],
  ["Good evening! What's 2 + 2?", "2 + 2"],
])("a message that is a sum and nothing else says it all: %s", (message, code) => {
  expect(sumIn(message)).toBe(code);
});

test.each([
  "What is 9/11?",
  "I work 24/7",
  "I have 3 times 4 apples",
  "2 or 3",
  "10:30 - 11:30",
  "What is 5?",
  "- 5 + 3",
  "√9 + 3",
  ".5 + 3",
  "1,5 + 2",
  "5! + 3",
  "12 times 14!",
  "2 * (3 + 4",
  "5) + (3",
  "2026-11-22",
  "What is 2026-11-22?",
  "12/05/2026",
  "12/05",
  "555-1234",
  "What is 555-1234?",
  "10:30-12:00",
  "1.2.3 - 1.2.2",
  "192.168.0.1/24",
  "3-2",
  "5-10",
  "3/4",
  "1920x1080",
  "What is 7-Eleven?",
  "OnePlus 12",
  "5 + 3 = 8",
  "1e9 x 2",
])("any other is none: %s", (message) => {
  expect(sumIn(message)).toBeNull();
});

test("what is left is what was, less what went", () => {
  expect(calculationsIn("If I have 17 apples and eat 5, how many are left?")).toEqual(["17 - 5"]);
});

test("what several things cost is calculated if a price is given", () => {
  expect(calculationsIn("How much do I pay for 6 tickets at 14 euros?")).toContain("6 * 14");
  expect(calculationsIn("Tickets cost 14 each, how much for 6 people?")).toContain("14 * 6");
  expect(calculationsIn("The bill is 92. How much do 4 people pay each?")).toContain("92 / 4");
});
