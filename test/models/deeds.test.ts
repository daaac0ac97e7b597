import { expect, test } from "bun:test";
import { deedIn } from "../../src/models/local/tools/deeds.ts";
import { nextOfDeed } from "../../src/models/local/tools/doing.ts";
import type { MadeCall } from "../../src/models/local/tools/made-call.ts";
import { OFFERED, type ToolName } from "../../src/models/local/tools/offered.ts";

test.each([
  ["Write 'Buy milk' into milk.md", { does: "write", name: "milk.md", text: "Buy milk" }],
  ["Save this to a.md:\n- one\n- two", { does: "write", name: "a.md", text: "- one\n- two" }],
  ["Hello!\nSave this to a.md:\n- one\n- two", { does: "write", name: "a.md", text: "- one\n- two" }],
  ["Could you please create notes/a.txt?", { does: "write", name: "notes/a.txt", text: "" }],
  ['Write "It rains. It pours." to a.md.', { does: "write", name: "a.md", text: "It rains. It pours." }],
  [
    "Create tale.md with a story about a dog",
    { does: "compose", name: "tale.md", request: "Write a story about a dog" },
  ],
  ["List three fruits and save them as f.md", { does: "compose", name: "f.md", request: "List three fruits" }],
  ["Add bird seed to my shopping list.", { does: "add", file: "my shopping list", text: "bird seed" }],
  ["Add eggs to my shopping list, please.", { does: "add", file: "my shopping list", text: "eggs" }],
  ["Take eggs off the list for Friday", { does: "take", file: "the list for Friday", item: "eggs" }],
  ["Delete my notes about Oslo", { does: "delete", file: "my notes about Oslo" }],
  ["Remember my birthday is on 3 May", { does: "remember", text: "my birthday is on 3 May" }],
  ["What have I got on my to-do list?", { does: "read", file: "my to-do list" }],
  ["whats left on the list?", { does: "read", file: "the list" }],
  ["Is there still anything on the shopping list?", { does: "read", file: "the shopping list" }],
  ["Save my packing list: socks, shirts", { does: "add", file: "my packing list", text: "socks, shirts" }],
  ["Take this down: the code is 4411", { does: "remember", text: "the code is 4411" }],
  ["Take this down in a.md: hello", { does: "write", name: "a.md", text: "hello" }],
  ["append: call Eva", { does: "unknown" }],
  ["Show me Shopping List.md", { does: "read", file: "Shopping List.md" }],
  ['Show me "shopping list.md"', { does: "read", file: "shopping list.md" }],
  ["Show me müll.md", { does: "read", file: "müll.md" }],
  ["Add Call Bob to Notes 2026.md", { does: "add", file: "Notes 2026.md", text: "Call Bob" }],
  ["Delete Shopping List.md", { does: "delete", file: "Shopping List.md" }],
  ["Write Hello to Bob in a.md", { does: "write", name: "a.md", text: "Hello to Bob" }],
  ["What is in the file I just uploaded?", { does: "read", file: "the file I just uploaded" }],
  ["Search my files for the IP of the NAS", { does: "recall", about: "the IP of the NAS" }],
  ["Find the door code in my notes", { does: "recall", about: "the door code" }],
  ["Open notes/a.md, please", { does: "read", file: "notes/a.md" }],
  ["Read me my recipe for bread from your files", { does: "read", file: "my recipe for bread" }],
  ["What does a.md say?", { does: "read", file: "a.md" }],
  ["Which files are in the folder recipes?", { does: "list", folder: "recipes" }],
  ["Show me all your files", { does: "list", folder: null }],
  ["What have you noted so far?", { does: "recall", about: null }],
  ["Is there anything in your notes about the boiler?", { does: "recall", about: "the boiler" }],
  ["What did I say about the boiler?", { does: "recall", about: "the boiler" }],
  ["Make me a packing list with socks and shirts", { does: "add", file: "packing list", text: "socks and shirts" }],
  ["Add a task: water the plants", { does: "add", file: "my to-do list", text: "water the plants" }],
  ["Append a line to log.md: done", { does: "add", file: "log.md", text: "done" }],
  [
    "Change milk to cream on my shopping list",
    { does: "replace", file: "my shopping list", item: "milk", by: "cream" },
  ],
  ["My name is Tom, remember that.", { does: "remember", text: "My name is Tom" }],
  ["I like tea, please remember it.", { does: "remember", text: "I like tea" }],
  ["My sister is called Eva, so please remember that!", { does: "remember", text: "My sister is called Eva" }],
  [
    "The plumber comes on Friday. Keep that in mind, please.",
    { does: "remember", text: "The plumber comes on Friday" },
  ],
  ["Remember that I like tea, please.", { does: "remember", text: "I like tea" }],
  ["Remember I like tea, thank you!", { does: "remember", text: "I like tea" }],
  ["Please don't let me forget to say please", { does: "remember", text: "say please" }],
  ["Forget that I prefer tea, please", { does: "forget", about: "I prefer tea" }],
  ["Remember Tom's birthday is 7 June", { does: "remember", text: "Tom's birthday is 7 June" }],
  ["remember tom's birthday is 7 june", { does: "remember", text: "tom's birthday is 7 june" }],
  ["Remember that Anna Bell likes tea", { does: "remember", text: "Anna Bell likes tea" }],
  ["Anna is my boss, remember that.", { does: "remember", text: "Anna is my boss" }],
  ["Remember to buy milk", { does: "remember", text: "buy milk" }],
  ["Please don't forget to water the plants!", { does: "remember", text: "water the plants" }],
  ["Forget that Anna's birthday is 3 May", { does: "forget", about: "Anna's birthday is 3 May" }],
  ["Forget that Anna is my boss.", { does: "forget", about: "Anna is my boss" }],
  ["Don't let me forget to call mum", { does: "remember", text: "call mum" }],
  ["Forget that I prefer tea", { does: "forget", about: "I prefer tea" }],
  ["You can forget what I said about the boiler.", { does: "forget", about: "the boiler" }],
  ["Forget everything", { does: "forget", about: null }],
  ["forget about Leo please", { does: "forget", about: "Leo" }],
  ["Please forget everything about my old job.", { does: "forget", about: "my old job" }],
  ["Rename a.md to b.md", { does: "rename", file: "a.md", to: "b.md" }],
  ["Make a copy of my notes about Oslo called b.md", { does: "copy", file: "my notes about Oslo", to: "b.md" }],
  ["Rename a.md", { does: "unknown" }],
  ["Check off the eggs on my shopping list", { does: "check", file: "my shopping list", item: "the eggs" }],
  ["Mark call mum as done, please", { does: "check", file: "my to-do list", item: "call mum", isGuessed: true }],
  ["mark milk as bought", { does: "check", file: "my shopping list", item: "milk" }],
  ["Cross the eggs off my list", { does: "take", file: "my list", item: "the eggs" }],
  ["Remove all the items from a.md", { does: "clear", file: "a.md" }],
  ["Save your last answer to a.md", { does: "unknown" }],
  ["Clear my shopping list", { does: "clear", file: "my shopping list" }],
  ["Delete all files", { does: "unknown" }],
  ["Save it as a.md", { does: "unknown" }],
])("what is to be done is read from the message: %j", (say, deed) => {
  expect(deedIn(say)).toEqual(deed as ReturnType<typeof deedIn>);
});

test.each([
  ["Write 'Send an email to Bob' into tasks.md", "tasks.md", "Send an email to Bob"],
  ["Save this in gifts.md: a recipe book for Anna", "gifts.md", "a recipe book for Anna"],
  ["Write Send a letter to Bob into tasks.md", "tasks.md", "Send a letter to Bob"],
  ["Put this in tasks.md: write letter to Bob", "tasks.md", "write letter to Bob"],
  ["Write 'a poem for Tom' and save it as a.md", "a.md", "a poem for Tom"],
  ["Create a.md with 'a story about a dog'", "a.md", "a story about a dog"],
  ["Save this as a.md: The contents of the box are fragile", "a.md", "The contents of the box are fragile"],
  ["Create todo.md with: check in", "todo.md", "check in"],
  ["Write Let them in into a.md", "a.md", "Let them in"],
  ["Create a.md with the words of a wise man", "a.md", "the words of a wise man"],
  ["Create a.md with the text hello", "a.md", "hello"],
  ["Write 'one' and 'two' into a.md", "a.md", "'one' and 'two'"],
])("what is quoted or comes after a colon is written as it stands: %s", (say, name, text) => {
  expect(deedIn(say)).toEqual({ does: "write", name, text });
});

test.each([
  ["save this recipe as a.md:\n# Soup\n- leeks.", "# Soup\n- leeks."],
  ["Save this short e-mail as a.md:\nHi!", "Hi!"],
  ["store the list below in a.md\n- tea", "- tea"],
  ["can you save the following as a.md? tea, rice", "tea, rice"],
  ["Can you save the following as a.md?\n- tea", "- tea"],
  ["Make a file a.md with this:\n- tea", "- tea"],
  ["Write a file a.md with the following list:\n- tea", "- tea"],
  ["in a.md write tea", "tea"],
  ["Save this as a.md: Once there was a dragon.", "Once there was a dragon."],
  ["Here are the books:\n- one\n- two\nPlease save this as a.md", "Here are the books:\n- one\n- two"],
  ["- one\n- two\n\nsave as a.md", "- one\n- two"],
  ["We need a new lamp. Save that as a.md, please.", "We need a new lamp."],
])("what is given to be written is written word for word, wherever it stands: %j", (say, text) => {
  expect(deedIn(say)).toEqual({ does: "write", name: "a.md", text });
});

test.each([
  ["Add to my todo: tea, rice", "my todo"],
  ["add to a.md: tea, rice", "a.md"],
  ["Add to the shopping list: tea, rice", "the shopping list"],
  ["To a.md, add tea, rice", "a.md"],
])("where something is added may be said first: %s", (say, file) => {
  expect(deedIn(say)).toEqual({ does: "add", file, text: "tea, rice" });
});

test.each(["remove a.md please, I don't need it", "Delete a.md. We no longer need it.", "rm a.md", "Throw away a.md"])(
  "a file is deleted in ordinary words: %s",
  (say) => {
    expect(deedIn(say)).toEqual({ does: "delete", file: "a.md" });
  },
);

test("a long text after a colon is written whole", () => {
  const [rain, list] = ["It rains. ".repeat(300).trim(), "- milk\n".repeat(400).trim()];
  expect(deedIn(`Save this as a.md: ${rain}`)).toEqual({ does: "write", name: "a.md", text: rain });
  expect(deedIn(`Create a file a.md with the following:\n${list}`)).toEqual({
    does: "write",
    name: "a.md",
    text: list,
  });
});

test("what is remembered keeps its first words", () => {
  expect(deedIn("Remember that the line to Oslo is dead")).toEqual({
    does: "remember",
    text: "the line to Oslo is dead",
  });
});

test.each([
  ["Write a packing list for Oslo into packing.md", "Write a packing list for Oslo"],
  ["Create a.md with two sentences about cats", "Write two sentences about cats"],
  ["Create plan.md with three points about trees", "Write three points about trees"],
  ["Put a table of planets into a.md", "Write a table of planets"],
  ["Write a poem about the sea. Save it as sea.md", "Write a poem about the sea."],
  ["Why is the sky blue?\nSave this as sky.md", "Why is the sky blue?"],
])("what is to be made up is composed: %s", (say, request) => {
  expect(deedIn(say)).toMatchObject({ does: "compose", request });
});

test.each([
  "Write today's date into log.md",
  "Add today's date to log.md",
  "Write my name into me.md",
  "Add the time to log.md",
  "Write the date and time into log.md",
  "Put the ingredients for pancakes on my shopping list",
])("what the message does not say is not written: %s", (say) => {
  expect(deedIn(say)).toEqual({ does: "unknown" });
});

test.each([
  "make a file plan.md with three points, then add a fourth",
  "Add butter to my shopping list and call mum to my to-do list",
  "Write 'alpha' into a.md and 'beta' into b.md",
  "Create a.md with hello and b.md with bye",
  "Remove milk from my shopping list and eggs from my packing list",
  "Create a.md with hello and show it to me",
])("of two deeds in one message, neither is done wrongly: %s", (say) => {
  expect(deedIn(say)).toEqual({ does: "unknown", isSeveral: true });
});

test.each([
  ["Add 'move b.md to my list and go' to my to-do list", "'move b.md to my list and go'"],
  ["Add read a.md to my to-do list", "read a.md"],
  ["Add my name tag to my packing list", "my name tag"],
  ["Add bread and butter to my list", "bread and butter"],
  ["Add buy the book and read it to my to-do list", "buy the book and read it"],
  ["Add call mum and then write to Bob to my to-do list", "call mum and then write to Bob"],
  ["Put this on my to-do list: call mum, then write to Bob", "call mum, then write to Bob"],
])("one deed that has words of another is done: %s", (say, text) => {
  expect(deedIn(say)).toMatchObject({ does: "add", text });
});

test.each([
  ...["Yes, add", "ok, add", "Okay. Add", "And add", "Then add", "pls add", "Let's add", "Thanks, add", "Great! Add"],
  ...["Hi Robin, add", "Hello! Please add", "hey, can you add", "Sure, and also add", "We have no tea. Add"],
  ...["I want to add", "Could you kindly add", "I'd like you to add"],
])("a request may begin in any ordinary way: %s", (beginning) => {
  expect(deedIn(`${beginning} tea to my shopping list`)).toEqual({
    ...{ does: "add", file: "my shopping list", text: "tea" },
  });
});

test.each([
  ["I also need tea. Add it to my shopping list", "tea"],
  ["We are out of oat milk! Please put it on my shopping list.", "oat milk"],
  ["I need some eggs and rice, add them to my shopping list pls", "eggs and rice"],
  ["Could you add tea to my shopping list pls?", "tea"],
])("what is lacking goes on the list: %s", (say, text) => {
  expect(deedIn(say)).toEqual({ does: "add", file: "my shopping list", text });
});

test.each([
  "uncheck feed the cat",
  "Sort my shopping list",
  "Undo the last change to my list",
  "Put tea first on my list.",
])("no change of a list is claimed that is not made: %s", (say) => {
  expect(deedIn(say)).toMatchObject({ does: expect.stringMatching(/^(?:unknown|add)$/) });
});

test.each([
  "Remember me?",
  "Do you remember that summer?",
  "Remember that time?",
  "How do I write a file a.md?",
  "I wrote a note to my teacher.",
  "Write a poem about a list.",
  "What do you know about whales?",
  "Open the door",
  "What is on my mind?",
  "Give me the recipe for pancakes",
  "Which files does a lawyer keep?",
  "What does the fox say?",
  "Make me a list of three fruits.",
  "Make me a list with three tips.",
  "Check this",
  "Make it shorter",
  "Forget about the rain.",
  "Forget it.",
  "Forget about it.",
  "forget about that please",
  "Mark is my best friend.",
  "Clear skies, at last!",
  "Copy that.",
  "Change is hard for my friend.",
  "Add 3 and 4.",
  "Put yourself in my place.",
  "Take it off the table.",
  "Remember Rome?",
  "Remember that summer in Rome?",
  "Do you remember to breathe?",
  "Forget Rome.",
  "Forget that idea.",
  "And then we put the boat in the water.",
  "My aunt was here. She put the tea on the table.",
  "Good friends are rare.",
  "No, that is wrong.",
  "Next year I will add a room to my house.",
])("talk that sounds like it is none: %s", (say) => {
  expect(deedIn(say)).toBeNull();
});

test("a message that goes on and on is read in little time", () => {
  // Quadratic in these would take minutes.
  for (const piece of [
    "a.",
    "a/",
    " and save it as ",
    "write a to ",
    "my list of ",
    "remember that ",
    " then",
    "\n",
    "'",
    " ",
    ". ",
  ]) {
    expect(deedIn(`Write ${piece.repeat(200_000)}`)).toBeNull();
    expect(deedIn(`Save this as a.md: x${piece.repeat(90_000 / piece.length)}`)).toMatchObject({ does: "write" });
    expect(deedIn(`Create a.md: x${piece.repeat(90_000 / piece.length)}`)).toMatchObject({ does: "write" });
    expect(deedIn(`A${piece.repeat(90_000 / piece.length)}!\nsave it as a.md`)).toMatchObject({ name: "a.md" });
    expect(deedIn(`Save this ${piece.repeat(90_000 / piece.length)}\nnow`)).toBeNull();
    expect(deedIn(`Save this as a.md${" ".repeat(90_000)}now`)).toBeNull();
    expect(() => deedIn(`Write ${piece.repeat(Math.floor(1_990 / piece.length))}`)).not.toThrow();
  }
});

const FILES = "USER.md (9 bytes)\nshopping-list.md (20 bytes)\nwork-list.md (3 bytes)";
const call = (name: string, input: object, output: string, isError = false): MadeCall => ({
  ...{ name, input: JSON.stringify(input), output, isError },
});
const next = (question: string, made: MadeCall[] = [], offered: readonly string[] = OFFERED) => {
  const deed = deedIn(question);
  if (deed === null) throw new Error("there is nothing to do");
  return nextOfDeed(deed, { question, offered: [...offered] as ToolName[], isTold: false, made });
};
const LISTED = call("list_files", {}, FILES);
const reads = (output: string, isError = false) => call("read_file", { name: "shopping-list.md" }, output, isError);
const writes = (text: string) => ({
  call: { name: "write_file" as const, input: { name: "shopping-list.md", text } },
});
const WRITTEN = call("write_file", { name: "shopping-list.md", text: "" }, "Replaced shopping-list.md, 9 bytes.");

test("the only list there is may be called the list, and no other is begun", () => {
  const one = call("list_files", {}, "USER.md (9 bytes)\nshopping-list.md (20 bytes)\noslo.md (3 bytes)");
  const reading = { call: { name: "read_file" as const, input: { name: "shopping-list.md" } } };
  for (const say of ["Put eggs on the list", "Take milk off the list", "Check off milk on my list", "Show me my list"])
    expect(next(say, [one])).toEqual(reading);
  expect(next("Clear the list", [one])).toEqual({ text: expect.stringContaining("Do you mean shopping-list.md?") });
  expect(next("Put eggs on the list", [LISTED])).toEqual({
    text: "Which one do you mean: shopping-list.md, work-list.md?",
  });
  expect(next("Put eggs on my packing list", [one])).toMatchObject({ call: { name: "write_file" } });
});

test("a file that may be meant is named, and of others only those that are not the agent's own", () => {
  const listed = call("list_files", {}, "USER.md (9 bytes)\nrecipes/lentil-soup.md (20 bytes)\nplan.md (3 bytes)");
  expect(next("Delete the soup recipe", [listed])).toEqual({
    text: "Do you mean recipes/lentil-soup.md? Then ask me again with that name.",
  });
  expect(next("Delete the plan", [listed])).toEqual({ call: { name: "delete_file", input: { name: "plan.md" } } });
  expect(next("Delete the bread recipe", [listed])).toEqual({
    text: "I do not know which file you mean. I have these files:\n- recipes/lentil-soup.md\n- plan.md",
  });
  expect(next("Replace May with June in the plan", [listed])).toEqual({
    call: { name: "read_file", input: { name: "plan.md" } },
  });
});

test("who wants a file summed up is told that this cannot be done, and shown the file", () => {
  const read = call("read_file", { name: "a.md" }, "Hello");
  expect(next("Summarise a.md", [read])).toEqual({ text: expect.stringMatching(/^I cannot sum up a file\b.*Hello$/s) });
  expect(next("Show me a.md", [read])).toEqual({ text: "a.md:\n\nHello" });
});

test("what is added to a list goes below its last line, in the same form", () => {
  const say = "Add eggs and milk to my shopping list";
  expect(next(say)).toEqual({ call: { name: "list_files", input: {} } });
  expect(next(say, [LISTED])).toEqual({ call: { name: "read_file", input: { name: "shopping-list.md" } } });
  expect(next(say, [LISTED, reads("- flour")])).toEqual(writes("- flour\n- eggs\n- milk\n"));
  expect(next(say, [LISTED, reads("# Food\n\n- [x] flour\n")])).toEqual(
    writes("# Food\n\n- [x] flour\n- [ ] eggs\n- [ ] milk\n"),
  );
  expect(next(say, [LISTED, reads("1. flour\n2. oil")])).toEqual(writes("1. flour\n2. oil\n3. eggs\n4. milk\n"));
  expect(next(say, [LISTED, reads("[shopping-list.md is empty.]")])).toEqual(writes("- eggs\n- milk\n"));
  expect(next(say, [LISTED, reads("Dear diary.")])).toEqual(writes("Dear diary.\neggs and milk\n"));
  expect(next(say, [LISTED, reads("- flour"), WRITTEN])).toEqual({
    text: "I have added eggs and milk to shopping-list.md.",
  });
});

test.each([
  ["Add 1,5 l of milk to my shopping list", ["1,5 l of milk"]],
  ["Add 2 eggs, 3 lemons and 0,5 kg of flour to my shopping list", ["2 eggs", "3 lemons", "0,5 kg of flour"]],
  ["Add meeting with Anna and Bob on Friday to my shopping list", ["meeting with Anna and Bob on Friday"]],
  ["Add call Tom and Eva and buy tea to my shopping list", ["call Tom and Eva", "buy tea"]],
  ["Add Milk and Eggs to my shopping list", ["Milk", "Eggs"]],
  ["Add oil, salt, and rice to my shopping list", ["oil", "salt", "rice"]],
  ["add milk pls to my shopping list", ["milk"]],
])("what is added is split where one item ends: %s", (say, items) => {
  expect(next(say, [LISTED, reads("- flour")])).toEqual(
    writes(["- flour", ...items.map((item) => `- ${item}`), ""].join("\n")),
  );
});

test("a list that is not there is begun", () => {
  const say = "Put eggs on my packing list";
  expect(next(say, [LISTED])).toEqual({
    call: { name: "write_file", input: { name: "packing-list.md", text: "- eggs\n" } },
  });
  const made = call("write_file", { name: "packing-list.md", text: "- eggs\n" }, "Created packing-list.md, 7 bytes.");
  expect(next(say, [LISTED, made])).toEqual({ text: "I have begun packing-list.md with eggs." });
  const missing = call("read_file", { name: "b.md" }, "file not found", true);
  expect(next("Add eggs to b.md", [missing])).toEqual({
    call: { name: "write_file", input: { name: "b.md", text: "- eggs\n" } },
  });
});

test("only the one line that is meant is taken off a list", () => {
  const say = "Remove the eggs from my shopping list";
  expect(next(say, [LISTED, reads("- flour\n- eggs\n- egg cups")])).toEqual(writes("- flour\n- egg cups\n"));
  expect(next(say, [LISTED, reads("- flour\n- six eggs")])).toEqual(writes("- flour\n"));
  expect(next(say, [LISTED, reads("- six eggs\n- old eggs")])).toEqual({
    text: "There is more than one line about “the eggs” in shopping-list.md:\n\n- six eggs\n- old eggs",
  });
  expect(next(say, [LISTED, reads("- flour")])).toEqual({
    text: "There is nothing about “the eggs” in shopping-list.md:\n\n- flour",
  });
});

test("what is checked off is marked in its line", () => {
  const say = "Check off the eggs on my shopping list";
  expect(next(say, [LISTED, reads("- [ ] flour\n- [ ] eggs")])).toEqual(writes("- [ ] flour\n- [x] eggs\n"));
  expect(next(say, [LISTED, reads("- six eggs")])).toEqual(writes("- [x] six eggs\n"));
  expect(next(say, [LISTED, reads("1. eggs\n2. oil")])).toEqual(writes("1. [x] eggs\n2. oil\n"));
  expect(next(say, [LISTED, reads("eggs")])).toEqual(writes("- [x] eggs\n"));
  expect(next(say, [LISTED, reads("- [x] eggs")])).toEqual({
    text: "“eggs” is checked off already in shopping-list.md.",
  });
  expect(next(say, [LISTED, reads("- eggs"), WRITTEN])).toEqual({
    text: "I have checked off “eggs” in shopping-list.md.",
  });
});

test("a list that is cleared keeps its headings", () => {
  const say = "Clear my shopping list";
  expect(next(say, [LISTED, reads("# Food\n\n- flour\n- eggs")])).toEqual(writes("# Food\n"));
  expect(next(say, [LISTED, reads("Dear diary.")])).toEqual(writes(""));
  expect(next(say, [LISTED, reads("[shopping-list.md is empty.]")])).toEqual({
    text: "shopping-list.md is empty already.",
  });
  expect(next(say, [LISTED, reads("- flour"), WRITTEN])).toEqual({ text: "I have cleared shopping-list.md." });
});

test("a file is written under its new name before the old one is deleted", () => {
  const say = "Rename a.md to b.md";
  const read = call("read_file", { name: "a.md" }, "Hello");
  const wrote = call("write_file", { name: "b.md", text: "Hello\n" }, "Created b.md, 6 bytes.");
  const deleted = (output: string, isError = false) => call("delete_file", { name: "a.md" }, output, isError);
  expect(next(say)).toEqual({ call: { name: "read_file", input: { name: "a.md" } } });
  expect(next(say, [read])).toEqual({ call: { name: "write_file", input: { name: "b.md", text: "Hello\n" } } });
  expect(next(say, [read, wrote])).toEqual({ call: { name: "delete_file", input: { name: "a.md" } } });
  expect(next(say, [read, wrote, deleted("Deleted a.md.")])).toEqual({ text: "I have renamed a.md to b.md." });
  expect(next(say, [read, wrote, deleted("it is locked", true)])).toEqual({
    text: "b.md is written, but a.md is still there. That did not work with a.md: it is locked.",
  });
  const there = "b.md is not as you read it last: read it with read_file, so that nothing in it is lost";
  expect(next(say, [read, call("write_file", { name: "b.md" }, there, true)])).toEqual({
    text: "There is a file b.md already. Ask me to add to it, or to delete it first.",
  });
  expect(next("Copy a.md to b.md", [read, wrote])).toEqual({ text: "I have copied a.md to b.md." });
  expect(next("Copy a.md to a.md")).toEqual({ text: "a.md is called that already." });
});

test("only the words that are meant are replaced in their line", () => {
  const say = "Replace the milk with oat milk in my shopping list";
  expect(next(say, [LISTED, reads("- Flour\n- 2 l of Milk, cold")])).toEqual(
    writes("- Flour\n- 2 l of oat milk, cold\n"),
  );
  expect(next(say, [LISTED, reads("- milk"), WRITTEN])).toEqual({
    text: "I have changed “milk” to “oat milk” in shopping-list.md.",
  });
});

test.each([
  ["Remove tea from my shopping list", "- steak\n- teapot"],
  ["Check off ice on my shopping list", "- rice"],
  ["Change ham to turkey on my shopping list", "- shampoo"],
  ["Check off food on my shopping list", "# Food\n\n- rice"],
  ["Remove food from my shopping list", "# Food\n\n- rice"],
])("an item is a whole word of an item, and no heading: %s", (say, text) => {
  expect(next(say, [LISTED, reads(text)])).toEqual({
    text: expect.stringMatching(/^There is nothing about “\w+” in shopping-list.md:/),
  });
});

test("an item may be said in the singular or the plural, and its whole line is named", () => {
  expect(next("Remove the tomatoes from my shopping list", [LISTED, reads("- tomato\n- rice")])).toEqual(
    writes("- rice\n"),
  );
  expect(next("Check off shoe on my shopping list", [LISTED, reads("- shoes\n- horseshoe")])).toEqual(
    writes("- [x] shoes\n- horseshoe\n"),
  );
  const say = "Remove milk from my shopping list";
  expect(next(say, [LISTED, reads("- coconut milk\n- Milk")])).toEqual(writes("- coconut milk\n"));
  expect(next(say, [LISTED, reads("- coconut milk"), WRITTEN])).toEqual({
    text: "I have taken “coconut milk” off shopping-list.md.",
  });
});

test("several items are taken off or checked off at once, and none if one of them is not there", () => {
  const say = "Remove milk, eggs and rice from my shopping list";
  expect(next(say, [LISTED, reads("- milk\n- tea\n- rice\n- eggs")])).toEqual(writes("- tea\n"));
  expect(next(say, [LISTED, reads("- milk\n- tea\n- rice\n- eggs"), WRITTEN])).toEqual({
    text: "I have taken “milk”, “eggs”, and “rice” off shopping-list.md.",
  });
  expect(next(say, [LISTED, reads("- milk\n- eggs")])).toEqual({
    text: "There is nothing about “rice” in shopping-list.md:\n\n- milk\n- eggs",
  });
  expect(next("Check off bread and butter on my shopping list", [LISTED, reads("- bread and butter\n- tea")])).toEqual(
    writes("- [x] bread and butter\n- tea\n"),
  );
});

test("who asks for two things at once is told to ask for each", () => {
  expect(next("Write 'a' into a.md and 'b' into b.md")).toEqual({
    text: "I have done nothing yet: I can do one such thing at a time. Please ask me for each of them.",
  });
});

test("what its owner does not allow is not done", () => {
  const say = "Add eggs to my shopping list";
  const offered = OFFERED.filter((name) => name !== "write_file");
  expect(next(say, [LISTED], offered)).toEqual({ call: { name: "read_file", input: { name: "shopping-list.md" } } });
  const refusal = { text: "I cannot do that: I am not allowed to use write_file." };
  expect(next(say, [LISTED, reads("- flour")], offered)).toEqual(refusal);
  expect(next("Write a poem and save it as a.md", [], offered)).toEqual(refusal);
  expect(
    next(
      "Rename a.md to b.md",
      [],
      OFFERED.filter((name) => name !== "delete_file"),
    ),
  ).toEqual({ text: "I cannot do that: I am not allowed to use delete_file." });
});

test("what was not read whole is not changed", () => {
  const cut = reads("- flour\n[Lines 1 to 1 of 900. Read on with fromLine 2.]");
  expect(next("Add eggs to my shopping list", [LISTED, cut])).toEqual({
    text: "That did not work with shopping-list.md: it is too long for me.",
  });
});

test("a file is read by its name, or by what the person calls it", () => {
  expect(next("Open a.md")).toEqual({ call: { name: "read_file", input: { name: "a.md" } } });
  expect(next("What is on my shopping list?", [LISTED])).toEqual({
    call: { name: "read_file", input: { name: "shopping-list.md" } },
  });
  expect(next("What is on my shopping list?", [LISTED, reads("- eggs")])).toEqual({
    text: "shopping-list.md:\n\n- eggs",
  });
  expect(next("List your files")).toEqual({ call: { name: "list_files", input: {} } });
  expect(next("List your files", [call("list_files", {}, "a.md (1 bytes)")])).toEqual({
    text: "I have these files:\n- a.md",
  });
});

test("a file that is called by no name is asked for, with those that there are", () => {
  expect(next("What is in the file I just uploaded?", [call("list_files", {}, "a.md (9 bytes)")])).toEqual({
    text: "I do not know which file you mean. I have these files:\n- a.md",
  });
});

test("what is looked for in files is told with the file's name", () => {
  const found = "network.md, lines 1-2, 2026-11-22:\nThe IP of the NAS is 10.0.0.7";
  expect(next("Search my files for the IP of the NAS", [call("search_memory", {}, found)])).toEqual({
    text: "I have found this:\n- The IP of the NAS is 10.0.0.7 (network.md, lines 1-2)",
  });
});

test("a file is not replaced unread, and one that several could be is asked for", () => {
  const refused = "a.md is not as you read it last: read it with read_file, so that nothing in it is lost";
  expect(next("Write 'x' into a.md", [call("write_file", { name: "a.md", text: "x\n" }, refused, true)])).toEqual({
    text: "There is a file a.md already. Ask me to add to it, or to delete it first.",
  });
  expect(
    next("Add eggs to my shopping list", [LISTED, reads("- flour"), call("write_file", {}, refused, true)]),
  ).toEqual({
    text: "a.md was changed just now. Ask me again.",
  });
  const both = call("list_files", {}, "oslo.md (1 bytes)\nold/oslo.md (1 bytes)");
  expect(next("Delete my notes about Oslo", [both])).toEqual({
    text: "Which one do you mean: oslo.md, old/oslo.md?",
  });
});

test.each([
  ["Delete my notes about Rome", "notes.md"],
  ["Delete my Christmas shopping list", "shopping-list.md"],
  ["Clear my work shopping list", "shopping-list.md"],
  ["Take eggs off the list for Friday", "list.md"],
  ["Rename my old shopping list to b.md", "shopping-list.md"],
])("a file is not changed that has less in its name than was said, but asked for: %s", (say, name) => {
  expect(next(say, [call("list_files", {}, `${name} (9 bytes)`)])).toEqual({
    text: `Do you mean ${name}? Then ask me again with that name.`,
  });
});

test.each([
  ["Delete my notes", "notes.md"],
  ["Remove the pancake recipe", "recipes/pancakes.md"],
  ["Delete my to-do list", "todo.md"],
  ["Erase my notes about Oslo", "notes/oslo.md"],
  ["Delete my list of errands", "errands.md"],
])("a file that is called by all of its name is meant: %s", (say, name) => {
  expect(next(say, [call("list_files", {}, `${name} (9 bytes)`)])).toEqual({
    call: { name: "delete_file", input: { name } },
  });
});

test("what an agent knows of itself is no list of the person's, unless its name is said", () => {
  const own = call("list_files", {}, "TOOLS.md (9 bytes)\nUSER.md (9 bytes)");
  expect(next("Add a hammer to my tools list", [own])).toEqual({
    call: { name: "write_file", input: { name: "tools-list.md", text: "- hammer\n" } },
  });
  expect(next("Clear my tools list", [own])).toEqual({
    text: "I do not know which file you mean. I have these files:\n- TOOLS.md\n- USER.md",
  });
  expect(next("Clear TOOLS.md")).toEqual({ call: { name: "read_file", input: { name: "TOOLS.md" } } });
});

test("what is looked up is what was told, without the question and the agent's own words", () => {
  const say = "What did I tell you about the plumber?";
  const found = [
    `Said in a conversation, 2026-11-22:\n${say}`,
    "You said in a conversation, 2026-11-22:\nThe plumber is a friend of mine.",
    "memory/2026-11-22.md, line 1, 2026-11-22:\n- The user says: our plumber comes on Friday",
    "Said in a conversation, 2026-11-22:\nRemember that our plumber comes on Friday",
    "memory/2026-11-22.md, line 2, 2026-11-22:\n- The user says: I prefer tea",
  ].join("\n\n");
  expect(next(say, [call("search_memory", {}, found)])).toEqual({
    text: "I have found this:\n- you said: our plumber comes on Friday (memory/2026-11-22.md, line 1)",
  });
  expect(next("What do you remember about my car?", [call("search_memory", {}, found)])).toEqual({
    text: "I have found nothing about your car in my memory.",
  });
});

test("what was asked about something is not found as what was told of it", () => {
  const said = ["Leo is my cousin.", "forget about leo please", "who is leo", "What do you remember about leo?"];
  const found = said.map((text) => `Said in a conversation, 2026-11-22:\n${text}`).join("\n\n");
  expect(next("What do you remember about Leo?", [call("search_memory", {}, found)])).toEqual({
    text: "I have found this:\n- Leo is my cousin. (you said that in a conversation)",
  });
});

test("what was noted and said is shown once, without that it was to be remembered", () => {
  const said = "Said in a conversation, 2026-11-22:\nPlease remember that Leo is my cousin";
  const noted = "memory/2026-11-22.md, line 1, 2026-11-22:\n- The user says: Leo is my cousin";
  const say = "What do you remember about Leo?";
  expect(next(say, [call("search_memory", {}, `${said}\n\n${noted}`)])).toEqual({
    text: "I have found this:\n- you said: Leo is my cousin (memory/2026-11-22.md, line 1)",
  });
  expect(next(say, [call("search_memory", {}, said)])).toEqual({
    text: "I have found this:\n- Leo is my cousin (you said that in a conversation)",
  });
});

test("the last notes are shown to who asks for all", () => {
  const say = "What do you remember?";
  expect(next(say)).toEqual({ call: { name: "list_files", input: { folder: "memory" } } });
  const days = call("list_files", {}, "memory/2026-11-21.md (9 bytes)\nmemory/2026-11-22.md (9 bytes)");
  expect(next(say, [days])).toEqual({ call: { name: "read_file", input: { name: "memory/2026-11-22.md" } } });
  expect(
    next(say, [
      days,
      call("read_file", { name: "memory/2026-11-22.md" }, "# 2026-11-22\n\n- The user says: I prefer tea"),
    ]),
  ).toEqual({
    text: "These are my last notes, in memory/2026-11-22.md:\n\n- you said: I prefer tea",
  });
  const nothing = { text: "I have noted nothing yet. Say “Remember that …”, and I will." };
  expect(next(say, [call("list_files", {}, "There are no files in memory.")])).toEqual(nothing);
  expect(next(say, [days, call("read_file", { name: "memory/2026-11-22.md" }, "# 2026-11-22")])).toEqual(nothing);
});

test("the one note that is meant is taken out of the notes, and the rest stays", () => {
  const say = "Forget that I prefer tea";
  const notes = "memory/2026-11-22.md";
  const found = (...texts: string[]) =>
    call("search_memory", {}, texts.map((text, at) => `${notes}, line ${at + 3}, 2026-11-22:\n- ${text}`).join("\n\n"));
  const tea = "The user says: I prefer tea";
  const unsure = "[Not everything was searched: 2 of 2 texts have no vectors yet.]";
  const day = call("read_file", { name: notes }, `# 2026-11-22\n\n- ${tea}\n- Tom is tall`);
  expect(next(say)).toEqual({ call: { name: "search_memory", input: { query: "I prefer tea" } } });
  expect(next(say, [found(tea, "I prefer coffee to tea")])).toEqual({
    call: { name: "read_file", input: { name: notes } },
  });
  expect(next(say, [found(tea), day])).toEqual({
    call: { name: "write_file", input: { name: notes, text: "# 2026-11-22\n\n- Tom is tall\n" } },
  });
  expect(next(say, [call("search_memory", {}, `${found(tea).output}\n\n${unsure}`), day])).toEqual(
    next(say, [found(tea), day]),
  );
  const written = call("write_file", { name: notes }, `Replaced ${notes}, 9 bytes.`);
  expect(next(say, [found(tea), day, written])).toEqual({
    text: "I have taken “you said: I prefer tea” out of my notes. Our conversations still have it.",
  });
  const about = "Forget what I told you about the boiler";
  expect(next(about, [found("the boiler is new", "the boiler is loud")])).toEqual({
    text: "I have noted this. Which of it am I to forget?\n- the boiler is new\n- the boiler is loud",
  });
  const said = "Said in a conversation, 2026-11-22:\nThe boiler is new.";
  expect(next(about, [call("search_memory", {}, said)])).toEqual({ text: "I have noted nothing about the boiler." });
  expect(next("Forget everything")).toMatchObject({ text: expect.stringContaining("in the folder memory") });
});

test("wide gaps between words are read as one space, however wide: each form would try every part of every gap", () => {
  expect(deedIn("add   milk    to   my  shopping   list")).toEqual(deedIn("add milk to my shopping list"));
  const gap = " ".repeat(400);
  expect(deedIn(`change tea${gap}to${gap}coffee${gap}in${gap}a.md`)).toEqual(deedIn("change tea to coffee in a.md"));
  expect(deedIn(`change x${gap}to${gap}${gap}in${gap}!`)).toBeNull();
});

test("what follows a colon keeps its gaps", () => {
  expect(deedIn("Save this as a.md: one    two")).toMatchObject({ text: "one    two" });
});
