import { expect, test } from "bun:test";
import { readDefaultFiles } from "../../src/agents/default-files.ts";
import type { JsonSchema } from "../../src/lib/json-schema.ts";
import { filesFor } from "../../src/messages/runs/prepare.ts";
import type { ModelAbilities } from "../../src/models/engine.ts";
import { buildPrompt, toMessages } from "../../src/runtime/prompt.ts";
import type { RunInput, Turn } from "../../src/runtime/protocol.ts";

const SMALL: ModelAbilities = { contextTokens: 2_048, tools: false, prompt: "short" };
const CAPABLE: ModelAbilities = { contextTokens: 32_768, tools: true, prompt: "full" };
const SOUL = "You are a gruff ship's cook.";
const defaults = [...readDefaultFiles()].map(([name, text]) => ({ name, text }));
const withFile = (name: string, text: string) => defaults.map((file) => (file.name === name ? { name, text } : file));

/** The model's prompt, by default for a new agent. */
function promptFor(
  conversation: string[],
  files = withFile("SOUL.md", SOUL),
  model = SMALL,
  more: Partial<RunInput> = {},
) {
  const turns = conversation.map((text, at): Turn => ({ role: at % 2 === 0 ? "user" : "assistant", text }));
  const run: RunInput = {
    runId: "run_a",
    agentName: "Barnaby",
    files: filesFor(files, model),
    skills: [],
    moreSkills: 0,
    readsSkills: false,
    model,
    conversation: turns,
    earlier: 0,
    journal: [],
    ...more,
  };
  return toMessages(buildPrompt(run)).map(({ content }) => content);
}

test("a small model gets its owner's words and its name, but no unchanged defaults", () => {
  expect(promptFor(["Hello!"])).toEqual([`${SOUL}\n\nYour name is Barnaby.`, "Hello!"]);
});

test("a capable model gets all files", () => {
  const [system = ""] = promptFor(["Hello!"], withFile("SOUL.md", SOUL), CAPABLE);
  for (const { name, text } of defaults) {
    if (name !== "SOUL.md" && name !== "HEARTBEAT.md") expect(system).toContain(text.trim());
  }
});

test("an agent without a character of its own has the default one", () => {
  const [system = ""] = promptFor(["Hello!"], defaults);
  expect(system).toBe(
    "You are a friendly, honest assistant. You give short, practical answers.\n\nYour name is Barnaby.",
  );
});

test("the default files of earlier versions count as unchanged", () => {
  const older = withFile(
    "IDENTITY.md",
    "# Identity\n\nYou are a helpful AI assistant. You help with writing, summaries, lists, ideas, plans and explanations.\n",
  );
  expect(filesFor(older, SMALL).map(({ name }) => name)).toEqual(["SOUL.md"]);
});

test("an owner's additions stand between the character and its repetition, without headings or file names", () => {
  const files = withFile("SOUL.md", `# Character\n\n${SOUL}`).map((file) =>
    file.name === "USER.md" ? { ...file, text: "# User\n\nThe user is Anna, who fears storms.\n" } : file,
  );
  expect(promptFor(["Hello!"], files)[0]).toBe(
    `${SOUL}\n\nThe user is Anna, who fears storms.\n\n${SOUL}\n\nYour name is Barnaby.`,
  );
});

test("of the default files, only the character says who the agent is, so that none contradicts a persona", () => {
  for (const { name, text } of defaults) if (name !== "SOUL.md") expect(text).not.toMatch(/\bYou are\b/);
});

test("a persona gets its name in its own language, first if that is not English", () => {
  const files = withFile("SOUL.md", "Du bist eine Bäckerin und sprichst nur Deutsch mit den Leuten.");
  expect(promptFor(["Hallo!"], files)[0]).toStartWith("Du heißt Barnaby.");
  expect(promptFor(["Hello!"])[0]).toEndWith("Your name is Barnaby.");
});

test("a repeated question does not include its first answer", () => {
  const question = "What should I read on a train?";
  expect(promptFor([question, "A book about trains.", question])).toHaveLength(2);
  expect(promptFor([question, "A book about trains.", "And on a boat?"])).toHaveLength(4);
});

test("a plain statement comes after examples of how to answer one, and a question does not", () => {
  expect(promptFor(["My car is red."]).at(-1)).toBe("My car is red.");
  expect(promptFor(["My car is red."]).length).toBeGreaterThan(4);
  expect(promptFor(["What is your favourite colour?"])).toHaveLength(2);
});

test("an earlier turn is included only if the message refers to it", () => {
  const past = ["Translate 'good morning' into French.", "Bonjour.", "I love the sea.", "Aye, the sea is grand."];
  expect(promptFor([...past, "What is your favourite colour?"]).slice(1)).toEqual(["What is your favourite colour?"]);
  expect(promptFor([...past, "Why do you love it?"]).slice(1)).toEqual([...past.slice(2), "Why do you love it?"]);
  expect(promptFor([...past, "What can I do there?"])).toHaveLength(4);
  expect(promptFor([...past, "Are there owls in Spain?"])).toHaveLength(2);
  // "Good" is in both, and says nothing about either.
  expect(promptFor([...past, "What is a good gift for a child?"]).slice(1)).toEqual([
    "What is a good gift for a child?",
  ]);
  const asked = "How big is the sea? I love big seas.";
  expect(promptFor([...past, "Nice.", "Thank you.", asked]).slice(1)).toEqual([...past.slice(2), asked]);
});

test("what a person has told of themselves comes before a question about it, and no answer to it", () => {
  const past = ["My name is Tom.", "That is my name too!", "I live in Leeds.", "You live in a castle."];
  const asked = promptFor([...past, "What is the moon?", "A stone.", "Where do I live?"]).slice(1);
  expect(asked.slice(-3)).toEqual(["I live in Leeds.", "I will remember that.", "Where do I live?"]);
  expect(asked[0]).toBe("My name is Leopold.");
  expect(asked).not.toContain("You live in a castle.");
  // An example of a name would only be repeated.
  expect(promptFor(["Hello!", "Good day.", "What is my name?"]).slice(1)).toEqual(["What is my name?"]);
});

test("of two answers that a person has told, the one that was told last comes before the question", () => {
  const memories = ["The user says: my dog is called Bo"];
  const past = ["My dog is called Rex.", "How nice!", "No, Max", "I see.", "What is my dog called?"];
  const asked = promptFor(past, defaults, SMALL, { memories });
  expect(asked.slice(-3)).toEqual(["My dog is called Max.", "I will remember that.", "What is my dog called?"]);
  expect(asked.filter((text) => /Rex|Bo/.test(text))).toEqual([]);
});

test("what is noted of a person comes before a question about it, in a conversation of its own too", () => {
  const noted = withFile("USER.md", "# User\n\n- Name: Kim\n- Lives in Leeds.");
  expect(promptFor(["Where do I live?"], noted).slice(-3)).toEqual([
    "Lives in Leeds.",
    "I will remember that.",
    "Where do I live?",
  ]);
  expect(promptFor(["When is my birthday?"], noted).slice(1)).toEqual(["When is my birthday?"]);
});

test("what is in the memory and in the conversation is told once, without the request to remember it", () => {
  const said = "I like tea, please remember it.";
  const asked = promptFor([said, "I will remember that.", "What do you remember about me?"], defaults, SMALL, {
    memories: [said],
  });
  expect(asked.filter((text) => /\btea\b/.test(text))).toEqual(["I like tea."]);
});

test("what the memory has of somebody or something of the person's comes with the examples of how it is told", () => {
  const asked = (question: string, memory: string) => promptFor([question], defaults, SMALL, { memories: [memory] });
  const question = "When does my flight leave?";
  expect(asked(question, "My flight leaves at 7:40.").slice(1)).toEqual(
    expect.arrayContaining(["My name is Leopold.", "My flight leaves at 7:40."]),
  );
  expect(asked(question, "My flight was cheap.")).not.toContain("My name is Leopold.");
});

test("an answer to what it did not know is remembered as what it is about", () => {
  const past = ["What is my name?", "I do not know what your name is: tell me, and I will remember it.", "Joe"];
  expect(promptFor(past).at(-1)).toBe("My name is Joe.");
  expect(promptFor([...past, "A good name.", "What is my name?"]).slice(-3)).toEqual([
    "My name is Joe.",
    "I will remember that.",
    "What is my name?",
  ]);
});

test("a request is no answer to what it did not know", () => {
  const past = ["What is my cat's name?", "I do not know what your cat's name is: tell me, and I will remember it."];
  for (const request of ["Delete it", "Show my list", "Remember that Anna's birthday is 3 May", "Rename a.md to b.md"])
    expect(promptFor([...past, request]).at(-1)).toBe(request);
});

test("a translation is included only if the message is about its words", () => {
  const past = ["How do you say 'good night' in French?", "Bonne nuit."];
  for (const message of [
    "I had a bad night.",
    "What is in the box over there?",
    "Is it raining?",
    "Thanks for that.",
  ]) {
    expect(promptFor([...past, message])).not.toContain("Bonne nuit.");
  }
  for (const message of ["And in Spanish?", "Say it again.", "What does that mean?", "Why?"]) {
    expect(promptFor([...past, message])).toContain("Bonne nuit.");
  }
});

test("whatever was stored, the message to answer is included and the prompt fits", () => {
  const long = withFile("SOUL.md", "Be kind. ".repeat(2_000)).map((file) => ({
    ...file,
    text: file.text.slice(0, 1_600),
  }));
  const messages = promptFor(["x".repeat(9_000), "y".repeat(9_000), `It is this: ${"z".repeat(9_000)}`], long);
  expect(messages.at(-1)).toContain("zzz");
  expect(messages.join("").length).toBeLessThan(2_048 * 3);
});

test("an installed skill is in the prompt", () => {
  const skills = [{ name: "weather", description: "the weather of today", instructions: "Look at the sky." }];
  const [system = ""] = promptFor(["Hello!"], withFile("SOUL.md", SOUL), SMALL, { skills });
  expect(system).toContain("Look at the sky.");
  expect(system).toStartWith(SOUL);
});

const AGE: JsonSchema = { type: "object", properties: { age: { type: "integer" } } };

test("a schema is shown where it says more than that the answer is an object: a small model would answer with it", () => {
  const systemFor = (schema: JsonSchema) =>
    promptFor(["Hello!"], undefined, SMALL, { limits: { output: { name: "answer", schema } } })[0] ?? "";
  expect(systemFor({ type: "object" })).toContain("one JSON object");
  expect(systemFor({ type: "object" })).not.toContain("{");
  expect(systemFor(AGE)).toContain(JSON.stringify(AGE));
});

test("an answer that is to be JSON comes after examples in JSON, and after none in words", () => {
  const turnsFor = (schema: JsonSchema) =>
    promptFor(["I lost my keys."], undefined, SMALL, { limits: { output: { name: "answer", schema } } }).slice(1, -1);
  const answers = turnsFor(AGE).filter((_, at) => at % 2 === 1);
  expect(answers.length).toBeGreaterThan(1);
  for (const answer of answers) expect(JSON.parse(answer)).toBeObject();
  expect(turnsFor({ type: "object" })).toEqual([]);
});

test("what a person has asked before stands in the prompt in their own words", () => {
  const conversation = ["What is the capital of France?", "Paris.", "And of Italy?", "Rome.", "What did I just ask?"];
  expect(promptFor(conversation).slice(1)).toEqual(["And of Italy?", "What did I just ask?"]);
  const first = [...conversation.slice(0, 4), "What was my first question?"];
  expect(promptFor(first).slice(1)).toEqual(["What is the capital of France?", "What was my first question?"]);
  // The beginning is no longer known.
  const later = promptFor(first, withFile("SOUL.md", SOUL), SMALL, { earlier: 2 });
  expect(later.slice(1)).toEqual(["What was my first question?"]);
});
