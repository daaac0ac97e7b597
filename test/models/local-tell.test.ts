import { expect, test } from "bun:test";
import { fence } from "../../src/lib/untrusted.ts";
import { fileNameIn, filesMentioned, folderIn, timeZoneIn } from "../../src/models/local/tools/details.ts";
import { OFFERED } from "../../src/models/local/tools/offered.ts";
import { tell } from "../../src/models/local/tools/tell.ts";

const said = (name: string, input: object, output: string, question = "", isError = false) =>
  tell({ name, input: JSON.stringify(input), output, isError }, question);
const NOON = "Sunday, 22 November 2026 at 12:00:05 UTC (2026-11-22T12:00:05.000Z)";

test("the date is told to who asks for it, and the time with its zone", () => {
  expect(said("now", {}, NOON, "What day is it?")).toBe("Today is Sunday, 22 November 2026.");
  expect(said("now", {}, NOON, "What time is it?")).toBe("It is 12:00 UTC on Sunday, 22 November 2026.");
  expect(said("now", { timeZone: "America/New_York" }, NOON)).toBe(
    "In New York it is 12:00 on Sunday, 22 November 2026.",
  );
});

test.each([
  ["What day is tomorrow?", "Tomorrow is Monday, 23 November 2026."],
  ["What was the date yesterday?", "Yesterday was Saturday, 21 November 2026."],
  ["Which weekday is the day after tomorrow?", "The day after tomorrow is Tuesday, 24 November 2026."],
  ["What date is it in two weeks?", "In two weeks it will be Sunday, 6 December 2026."],
  ["What day is it in 3 days?", "In 3 days it will be Wednesday, 25 November 2026."],
  ["What date is it a week from now?", "A week from now it will be Sunday, 29 November 2026."],
  ["What date was it ten days ago?", "Ten days ago it was Thursday, 12 November 2026."],
  ["What day is it in a month?", "In a month it will be Tuesday, 22 December 2026."],
  ["What year is it in two years?", "In two years it will be Wednesday, 22 November 2028."],
  ["What time is it in two hours?", "In two hours it will be 14:00 on Sunday, 22 November 2026."],
  ["What was the date last Friday?", "Last Friday was 20 November 2026."],
  ["When is next Sunday?", "Next Sunday is 29 November 2026."],
  ["What is the date on Sunday?", "This Sunday is 22 November 2026."],
  ["What month is it next month?", "Next month is December 2026."],
  ["What year was it last year?", "Last year was 2025."],
  ["What is the date of Easter next year?", "I only know that today is Sunday, 22 November 2026."],
  ["What is the date in the last week of term?", "I only know that today is Sunday, 22 November 2026."],
])("who asks for another day is told that one: %s", (question, told) => {
  expect(said("now", {}, NOON, question)).toBe(told);
  const lateInTokyo = "Tuesday, 1 December 2026 at 08:00:00 GMT+9 (2026-11-30T23:00:00.000Z)";
  expect(said("now", { timeZone: "Asia/Tokyo" }, lateInTokyo, "What is tomorrow's date in Tokyo?")).toBe(
    "Tomorrow is Wednesday, 2 December 2026.",
  );
});

test.each(["", "{", "null", "[]", '"17 * 23"'])(
  "a call whose input is no object, but %j, is told by its result",
  (input) => {
    const call = { name: "run_javascript", input, isError: false };
    expect(tell({ ...call, output: "result: 391" }, "")).toBe("result: 391");
    expect(tell({ ...call, output: "no such thing", isError: true }, "")).toBe("That did not work: no such thing.");
  },
);

test("text that only begins as if it were a stranger's is read once", () => {
  const text = `[The text between the two marks ${"a".repeat(4_000_000)}`; // twice for each letter would take hours
  expect(said("list_files", {}, text)).toBe(text);
});

test.each([
  ["17 * 23", "result: 391", "17 × 23 = 391"],
  ["0.1 + 0.2", "result: 0.30000000000000004", "0.1 + 0.2 = 0.3"],
  ["10 / 3", "result: 3.3333333333333335", "10 ÷ 3 ≈ 3.33333"],
  ["5 - 8", "result: -3", "5 − 8 = -3"],
  ["8 / 0", "result: null", "8 ÷ 0 has no result."],
  ["2 ** 10 * 3", "result: 3072", "2^10 × 3 = 3072"],
  ["999999999999 * 999999999999", "result: 9.99999999998e+23", "999999999999 × 999999999999 ≈ 1e+24"],
])("a result is told with its calculation, without the machine's rounding: %s", (code, output, words) => {
  expect(said("run_javascript", { code }, output)).toBe(words);
});

test.each([
  ["skill:calculator/calculate.js", "result: 5"],
  ["const a = 2;\nreturn a * 3;", "result: 6"],
  ["6 *\n7", "result: 42"],
  ["6 // 7", "result: 6"],
  ["input.length", 'result: "a, b"'],
  ["[1, 2]", "result: [1,2]"],
  ["10 ** 400", "result: null"],
])("what is more than arithmetic is told by its result: %j", (code, output) => {
  expect(said("run_javascript", { code }, output)).toBe(output);
});

test("files are told by name, and a long list says that there are more", () => {
  expect(said("list_files", {}, "a.md (1 bytes)\nnotes/b c.md (20 bytes)")).toBe(
    "I have these files:\n- a.md\n- notes/b c.md",
  );
  expect(said("list_files", {}, "The workspace is empty.")).toBe("The workspace is empty.");
  const many = Array.from({ length: 41 }, (_, at) => `${at}.md (1 bytes)`).join("\n");
  expect(said("list_files", {}, many)).toEndWith("- 39.md\n- … and more");
});

test("a file's text is shown without the marks that are only for models, and a long one says what is cut", () => {
  expect(said("read_file", { name: "a.md" }, "- milk\n")).toBe("a.md:\n\n- milk");
  expect(said("read_file", { name: "a.md" }, fence("Buy <s> milk."))).toBe("a.md:\n\nBuy < s> milk.");
  expect(said("read_file", { name: "a.md" }, "x".repeat(5_000))).toEndWith("x\n[… 1000 more characters]");
});

test("an error is told as one, whatever the tool", () => {
  for (const name of OFFERED) {
    expect(said(name, {}, "too slow", "", true)).toBe("That did not work: too slow.");
  }
  expect(said("read_file", { name: "a.md" }, "file not found", "", true)).toBe(
    "That did not work with a.md: file not found.",
  );
});

test("a city's time zone and a folder come from the message", () => {
  expect(timeZoneIn("Do you know what time it is in new york right now?")).toBe("America/New_York");
  expect(timeZoneIn("What time is it in the morning?")).toBeNull();
  expect(timeZoneIn("what time is it in Germany?")).toBe("Europe/Berlin");
  expect(timeZoneIn("What time is it in the UK?")).toBe("Europe/London");
  expect(timeZoneIn("What time is it in the United States?")).toBeNull();
  expect(folderIn("List everything in the folder recipes.")).toBe("recipes");
  expect(folderIn("What is in your notes/2026 folder?")).toBe("notes/2026");
  expect(folderIn("What is in your folder?")).toBeNull();
});

test("a file's name is read whole, with its spaces", () => {
  expect(fileNameIn("I want to see Shopping List.md now")).toBe("Shopping List.md");
  expect(fileNameIn("Read List.md twice")).toBe("List.md");
  expect(fileNameIn("Is müll.md there?")).toBe("müll.md");
});

test("a file is meant if its whole name is said, and the longest name wins", () => {
  const names = ["list.md", "notes/oslo.md", "shopping-list.md", "todo.md"];
  expect(filesMentioned("What is on my shopping list?", names)).toEqual(["shopping-list.md"]);
  expect(filesMentioned("Read my notes about Oslo.", names)).toEqual(["notes/oslo.md"]);
  expect(filesMentioned("Read my to-do file.", names)).toEqual(["todo.md"]);
  expect(filesMentioned("Read my diary.", names)).toEqual([]);
  expect(filesMentioned("Read the pancake recipe.", ["recipes/pancakes.md"])).toEqual(["recipes/pancakes.md"]);
});
