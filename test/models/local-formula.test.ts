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
  ["Can you tell me how many minutes there are in 3 hours?", "3 hours", 180, "minutes"],
  ["How many MB does 2 GB have?", "2 GB", 2000, "MB"],
  ["1 GiB in MiB", "1 GiB", 1024, "MiB"],
  ["100 km/h to mph", "100 km/h", 62.137119, "mph"],
  ["How many minutes in 2.5 hours?", "2.5 hours", 150, "minutes"],
  ["What is the square root of 144?", "√144", 12, ""],
  ["2 to the power of 10", "2^10", 1024, ""],
  ["What is 7 squared?", "7^2", 49, ""],
  ["Good morning! What is seven squared, please?", "7^2", 49, ""],
  ["What is 5 feet 10 inches in cm?", "5 feet 10 inches", 177.8, "cm"],
  [`6'2" in cm`, "6 feet 2 inches", 187.96, "cm"],
  ["Convert 1 hour and 30 minutes to seconds", "1 hour 30 minutes", 5400, "seconds"],
  ["How many minutes are 2 hours, 15 minutes?", "2 hours 15 minutes", 135, "minutes"],
  ["half a mile in km", "1/2 mile", 0.804672, "km"],
  ["A quarter of an hour in minutes", "1/4 hour", 15, "minutes"],
  ["3/4 cup in ml", "3/4 US cup", 177.441177, "ml"],
  ["1 1/2 pounds in grams", "1 1/2 pounds", 680.388555, "g"],
  ["two and a half hours in minutes", "2 1/2 hours", 150, "minutes"],
  ["What is minus 5 C in F?", "-5 °C", 23, "°F"],
  ["-5 C in K", "-5 °C", 268.15, "K"],
  ["How long is 1 inch in cm?", "1 inch", 2.54, "cm"],
  ["1 foot in cm", "1 foot", 30.48, "cm"],
  ["10 feet is how many metres?", "10 feet", 3.048, "m"],
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
  "What is 5 feet 10 in cm?",
  "How many hours are 3 days, 4 hours and 5 minutes?",
  "What is 30 minutes 1 hour in seconds?",
  "an hour and a half in minutes",
  "What is half of 10 km in miles?",
  "2 half cups in ml",
  "5 to 10 km in miles",
  "1,5 km in miles",
  ".5 miles in km",
  "5.5.2 km in miles",
  "2 times 5 km in miles",
  "5 C below zero in F",
  "How many feet is 5 m²?",
  "What is 8 Mb in KB?",
  "What is 2 + 3 squared?",
  "What is minus 3 squared?",
  "(2 + 3) squared",
  "2 times the square root of 9",
  "square root of 9 plus 16",
  "square root of -4",
  "2^3^2",
  "10^400",
  "What happened in 5 minutes to midnight?",
  `Tell me ${"very ".repeat(20)}slowly: 10 km in miles`,
])("other messages name no such calculation: %s", (message) => {
  expect(formulaIn(message)).toBeNull();
});
