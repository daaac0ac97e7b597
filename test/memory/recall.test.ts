import { expect, test } from "bun:test";
import type { Agent } from "../../src/agents/schema.ts";
import { createRecall, mayBeTold } from "../../src/memory/recall.ts";
import type { Found } from "../../src/memory/search/entry.ts";
import { buildPrompt, toMessages } from "../../src/runtime/prompt.ts";
import type { RunInput } from "../../src/runtime/protocol.ts";

const [OWN, OTHER, BACKGROUND] = ["conv_own", "conv_other", "conv_of_a_schedule"];
const isForeground = (conversationId: string) => conversationId !== BACKGROUND;
const hasOwnTexts = () => true;
const searched = (items: Found[]) => ({ search: async () => ({ items, degraded: null }), keep: async () => {} });
const found = (text: string, more: Partial<Found> = {}): Found => ({
  ...{ text, file: null, fromLine: null, toLine: null, messageId: null, seq: 1, runId: null, createdAt: 0, score: 0.8 },
  origin: "owner",
  conversationId: OTHER,
  ...more,
});

test("nothing is told unasked that a stranger may have written, the host said, or was said in the background", () => {
  const may = (more: Partial<Found>) => mayBeTold(found("x", more), OWN, isForeground);
  expect(may({})).toBe(true);
  expect(may({ origin: "agent" })).toBe(true);
  expect(may({ origin: "untrusted" })).toBe(false);
  expect(may({ origin: "system" })).toBe(false);
  expect(may({ conversationId: BACKGROUND })).toBe(false);
  expect(may({ file: "memory/2026-11-22.md", conversationId: BACKGROUND, origin: "agent" })).toBe(false);
  expect(may({ file: "memory/2026-11-22.md", conversationId: null })).toBe(true);
});

test("what the prompt has anyway is not told again: this conversation, and the files of the prompt", () => {
  const may = (more: Partial<Found>) => mayBeTold(found("x", more), OWN, isForeground);
  expect(may({ conversationId: OWN })).toBe(false);
  expect(may({ file: "MEMORY.md", conversationId: null })).toBe(false);
});

test("at most five passages are told, the best, and none that has little to do with the message", async () => {
  const items = [...Array.from({ length: 7 }, (_, at) => found(`fact ${at}`)), found("far", { score: 0.1 })];
  const recall = createRecall(searched(items), { isForeground, hasOwnTexts });
  expect(await recall({} as Agent, "what?", OWN, "full")).toEqual(["fact 0", "fact 1", "fact 2", "fact 3", "fact 4"]);
});

test("a memory that cannot be searched leaves the prompt without it", async () => {
  const recall = createRecall(
    { ...searched([]), search: () => Promise.reject(new Error("broken")) },
    { isForeground, hasOwnTexts },
  );
  expect(await recall({} as Agent, "what?", OWN, "full")).toEqual([]);
});

test("a model with a short prompt is told one thing that the person has said or noted, if it is asked for such", async () => {
  const told = (message: string, ...items: Found[]) =>
    createRecall(searched(items), { isForeground, hasOwnTexts })({} as Agent, message, OWN, "short");
  const fact = found("My dog is called Bruno.", { conversationId: OWN });
  const asked = "What is my dog called?";
  expect(await told(asked, fact, found("I like dogs."))).toEqual([fact.text]);
  expect(await told(asked, found("- The dog: Bruno.", { file: "memory/2026-11-22.md", origin: "agent" }))).toHaveLength(
    1,
  );
  const lives = found("I live in Leeds.", { score: 0.35 });
  expect(await told("Where do I live?", found("Which town is it?"), found("I love my town."), lives)).toEqual([
    lives.text,
  ]);
  expect(await told("What is my name?", fact)).toEqual([]);
  // Nothing that is not near, questions, its own words, or long texts; and nothing where nobody asks.
  expect(await told(asked, found("We have a dog.", { score: 0.4 }), found("Is my dog ill?"), found(asked))).toEqual([]);
  expect(await told("Remind me of my dog's name", found("Remind me of my dog's name"))).toEqual([]);
  expect(await told(asked, { ...fact, origin: "agent" }, { ...fact, text: `My dog ${"x".repeat(300)}` })).toEqual([]);
  expect(await told(asked, { ...fact, origin: "untrusted" }, { ...fact, conversationId: BACKGROUND })).toEqual([]);
  for (const message of ["Tell me about dogs.", "My dog is ill.", "Why is the sky blue?"]) {
    expect(await told(message, fact)).toEqual([]);
  }
});

test.each([
  ["My name is Timmy.", "What is my name?"],
  ["My dog is called Bruno.", "What is my dog called?"],
  ["I am 34 years old.", "How old am I?"],
  ["My birthday is on 3 May.", "When is my birthday?"],
  ["I drive a red Fiat.", "What car do I drive?"],
  ["- The user says: my locker code is 4411", "What is my locker code?"],
  ["The wifi password is blue7.", "What is the wifi password?"],
  ["My name is Timmy.", "whats my name"],
  ["sam's birthday is 9 june", "when is sam's birthday"],
])("%s is told for %s even where it was found by its words alone, below others", async (text, question) => {
  const recall = createRecall(searched([found(text, { score: 0.2 })]), { isForeground, hasOwnTexts });
  expect(await recall({} as Agent, question, OWN, "short")).toEqual([text]);
});

test.each([
  ["What is my locker code?", "my locker code is 4411", "my locker code is 4412"],
  ["When does the plumber come?", "the plumber comes on Friday", "the plumber comes on Saturday"],
  ["Where do I live?", "I live in Leeds", "I live in York now"],
  ["What is the wifi password?", "the wifi password is blue7", "the wifi password is red8"],
])(
  "of two answers to %s the one that was told last counts, and nothing that only has its words",
  async (question, ...told) => {
    const items = [...told, "I would like to live near the plumber."].map((text, at) =>
      found(`- The user says: ${text}`, {
        file: "memory/2026-11-22.md",
        origin: "agent",
        createdAt: at,
        score: 0.9 - at / 10,
      }),
    );
    const recall = createRecall(searched(items), { isForeground, hasOwnTexts });
    expect(await recall({} as Agent, question, OWN, "short")).toEqual([`- The user says: ${told[1]}`]);
  },
);

test("what is told of one person does not answer what is asked of another", async () => {
  const recall = createRecall(searched([found("My sister lives in York.", { score: 0.45 })]), {
    isForeground,
    hasOwnTexts,
  });
  expect(await recall({} as Agent, "Where does my brother live?", OWN, "short")).toEqual([]);
  expect(await recall({} as Agent, "Where does my sister live?", OWN, "short")).toHaveLength(1);
});

test("of a message with several sentences only what answers is told, and what it asks to be done is not", async () => {
  const told = async (text: string, question: string) =>
    createRecall(searched([found(text)]), { isForeground, hasOwnTexts })({} as Agent, question, OWN, "short");
  const minutes = "Create a file minutes.md with:\nPresent: Henrik, Lise, Petra.\nNext meeting: 15 December.";
  expect(await told(minutes, "When is the next meeting?")).toEqual(["Next meeting: 15 December."]);
  expect(await told("I work in Hull. My dog is called Rex. I am tired.", "What is my dog called?")).toEqual([
    "My dog is called Rex.",
  ]);
  expect(await told("We got a puppy. He is called Rex.", "What is my dog called?")).toEqual([
    "We got a puppy. He is called Rex.",
  ]);
  for (const request of ["Forget my dog's name", "Put my dog Rex on the list", "who is my dog's doctor"]) {
    expect(await told(request, "What is my dog called?")).toEqual([]);
  }
});

test("an answer in other words is told from where it is nearer than by chance", async () => {
  for (const [text, question] of [
    ["I work as a nurse.", "What is my job?"],
    ["I was born in 1990.", "How old am I?"],
  ] as const) {
    const told = (score: number) => createRecall(searched([found(text, { score })]), { isForeground, hasOwnTexts });
    expect(await told(0.35)({} as Agent, question, OWN, "short")).toEqual([text]);
    expect(await told(0.25)({} as Agent, question, OWN, "short")).toEqual([]);
  }
});

test.each([
  ["I like tea and my cat is called Tom.", "What is my name?"],
  ["My dog's name is Rex.", "What is my name?"],
  ["My sister is 12 years old.", "How old am I?"],
  ["We have a dog.", "What is my dog called?"],
  ["I visited Rome in May.", "Where do I live?"],
])("%s, found by its words alone, is not told for %s", async (text, question) => {
  const recall = createRecall(searched([found(text, { score: 0.45 })]), { isForeground, hasOwnTexts });
  expect(await recall({} as Agent, question, OWN, "short")).toEqual([]);
});

test("the memory is kept from the first message that tells something, or where there are files, so that it is there at the first question", async () => {
  const kept: Agent[] = [];
  let hasTexts = false;
  const recall = createRecall(
    { ...searched([]), keep: async (agent) => void kept.push(agent) },
    { isForeground, hasOwnTexts: () => hasTexts },
  );
  const keeps = async (message: string) => {
    kept.length = 0;
    await recall({} as Agent, message, OWN, "short");
    return kept.length > 0;
  };
  for (const message of ["My name is Timmy.", "I work as a nurse.", "The wifi password is blue7."]) {
    expect(await keeps(message)).toBe(true);
  }
  const others = ["Hello!", "Tell me a joke.", "Why is the sky blue?"];
  for (const message of others) expect(await keeps(message)).toBe(false);
  hasTexts = true;
  expect(await keeps("Hello!")).toBe(true);
});

test("what is noted of a thing answers a question about it that has the same words, and no other question", async () => {
  const note = found("- the plumber comes on Friday", { file: "memory/2026-11-22.md", origin: "agent", score: 0.4 });
  const told = (message: string) =>
    createRecall(searched([note]), { isForeground, hasOwnTexts })({} as Agent, message, OWN, "short");
  for (const message of ["When does the plumber come?", "Do you know when the plumber comes?"]) {
    expect(await told(message)).toEqual([note.text]);
  }
  for (const message of ["What is the plumber like?", "What does the doctor do?", "When does the sun rise?"]) {
    expect(await told(message)).toEqual([]);
  }
});

test("what is noted of somebody by name answers a question about that", async () => {
  const text = "The user says: Anna's birthday is 3 May";
  const note = found(text, { file: "memory/2026-11-22.md", origin: "agent", score: 0.4 });
  const recall = createRecall(searched([note]), { isForeground, hasOwnTexts });
  expect(await recall({} as Agent, "When is Anna's birthday?", OWN, "short")).toEqual([text]);
  expect(await recall({} as Agent, "When is Tom's birthday?", OWN, "short")).toEqual([]);
});

test("a short prompt shows it as something that the person has said before", () => {
  const run: RunInput = {
    ...{ runId: "run_a", agentName: "Ada", files: [], skills: [], moreSkills: 0, readsSkills: false, earlier: 40 },
    model: { contextTokens: 2_048, tools: false, prompt: "short" },
    conversation: [{ role: "user", text: "What is my dog called?" }],
    journal: [],
    memories: ["- The user says: My dog is called Bruno."],
  };
  expect(
    toMessages(buildPrompt(run))
      .slice(-3)
      .map(({ role, content }) => [role, content]),
  ).toEqual([
    ["user", "My dog is called Bruno."],
    ["assistant", "I will remember that."],
    ["user", "What is my dog called?"],
  ]);
});

test("passages are in the prompt, as far as an eighth of it holds them", () => {
  const run: RunInput = {
    ...{ runId: "run_a", agentName: "Ada", files: [], skills: [], moreSkills: 0, readsSkills: false, earlier: 0 },
    model: { contextTokens: 2_048, tools: false, prompt: "full" },
    conversation: [{ role: "user", text: "What does Maren drink?" }],
    journal: [],
    memories: ["- Maren prefers tea.", "x".repeat(3_000)],
  };
  const [system] = toMessages(buildPrompt(run));
  expect(system?.content).toContain("\n- Maren prefers tea.\n");
  expect(system?.content.length).toBeLessThan(1_000);
});
