import { expect, test } from "bun:test";
import { formulaIn } from "../../src/models/local/tools/formula.ts";

/** The code holds nothing but numbers and signs, or a root of a number. */
const computed = (code: string): number => {
  expect(code).toMatch(/^(?:Math\.sqrt\([\d.]+\)|[-+*/(). \d]+)$/);
  return Number(Function(`return ${code}`)());
};

test.each([
  ["How many miles is 10 km?", "10 km", 6.213712, "miles"],
  ["how many feet are in a mile", "1 mile", 5280, "feet"],
  ["Convert 20 degrees Celsius to Fahrenheit.", "20 °C", 68, "°F"],
  ["What is 68°F in °C?", "68 °F", 20, "°C"],
  ["-40 C in F", "-40 °C", -40, "°F"],
  ["300 kelvin to celsius", "300 K", 26.85, "°C"],
  ["What is 5 feet in cm?", "5 feet", 152.4, "cm"],
  ["Convert 1,500 grams into pounds", "1500 g", 3.306934, "pounds"],
  ["How many hours are there in a week?", "1 week", 168, "hours"],
  ["How many MB does 2 GB have?", "2 GB", 2000, "MB"],
  ["1 GiB in MiB", "1 GiB", 1024, "MiB"],
  ["100 km/h to mph", "100 km/h", 62.137119, "mph"],
  ["How many minutes in 2.5 hours?", "2.5 hours", 150, "minutes"],
  ["What is the square root of 144?", "√144", 12, ""],
  ["2 to the power of 10", "2^10", 1024, ""],
  ["What is 7 squared?", "7^2", 49, ""],
])("a calculation with one number is what the message says: %s", (message, shown, value, unit) => {
  const formula = formulaIn(message);
  expect(formula).toMatchObject({ shown, unit });
  expect(computed(formula?.code ?? "")).toBeCloseTo(value, 5);
});

test.each([
  "I ran 10 km in 50 minutes.",
  "How many cats are in a house?",
  "How many litres are in 3 miles?",
  "What is 12 times 13?",
  "Come in a minute",
  "I walked 3 miles to a pub",
  "How many days are in a year?",
  "What happened in 5 minutes to midnight?",
  `Tell me ${"very ".repeat(20)}slowly: 10 km in miles`,
])("other messages name no such calculation: %s", (message) => {
  expect(formulaIn(message)).toBeNull();
});
