import { expect, test } from "bun:test";
import { createGuardedGeneration, type GuardedOptions } from "../../src/models/local/guarded-generation.ts";
import { createGuard } from "../../src/models/local/guards.ts";
import { loops } from "../../src/models/local/loops.ts";
import type { ChatMessage } from "../../src/models/local/protocol.ts";
import { SAMPLING, seededRandom } from "../../src/models/local/sampling.ts";
import type { Stepper } from "../../src/models/local/stepper.ts";
import { chat, collect, never, openLocalEngine, textOf } from "./local-setting.ts";

const QUESTION = "What should I read on a train?";
const messages: ChatMessage[] = [
  { role: "system", content: "You are a librarian. Your name is Odile." },
  { role: "user", content: QUESTION },
];

const ENDLESS = { sentences: Number.POSITIVE_INFINITY, least: 1, items: 0, words: Number.POSITIVE_INFINITY };
const NAME = " Odile.";
/**
 * A model that writes these answers word by word, and the next one whenever it has to begin again; text that it has not
 * begun itself continues like one of them, the earlier one preferred.
 */
function scripted(answers: string[], change: Partial<GuardedOptions> = {}) {
  const vocabulary = ["<end>", ...new Set([...answers, NAME].flatMap((answer) => answer.split(/(?<=[ \n])/)))];
  const tokensOf = (text: string) => text.split(/(?<=[ \n])/).map((word) => vocabulary.indexOf(word));
  const prompt = [0, 0, 0];
  const slot = { index: 0, owner: "", tokens: [], busy: true, touchedRows: 0, promisedRows: 0, usedAt: 0 };
  let attempt = -1;
  const stepper: Stepper = {
    kind: "ort",
    async step(_, past, tokens) {
      const written = past + tokens.length - prompt.length;
      if (written === 0) attempt++;
      const logits = new Float32Array(vocabulary.length);
      for (const [rank, words] of answers.map(tokensOf).entries()) {
        const at = words.indexOf(tokens.at(-1) ?? 0);
        if (at >= 0) logits[words[at + 1] ?? 0] ||= 50 - 5 * rank;
      }
      const script = attempt < 0 ? undefined : answers[Math.min(attempt, answers.length - 1)];
      if (script !== undefined) logits[tokensOf(script)[written] ?? 0] = 100;
      return logits;
    },
    copyRows() {},
    discard() {},
  };
  const generation = createGuardedGeneration({
    prompt,
    slot,
    stepper,
    tokenizer: {
      endOfTurn: 0,
      ends: new Set([0]),
      callOpening: null,
      bytesOf: (token) => new TextEncoder().encode(vocabulary[token]),
      layOut: () => [],
      encode: tokensOf,
    },
    maxTokens: 100,
    stop: [],
    sampling: { ...SAMPLING, temperature: 0.01, repetition: 1 },
    random: seededRandom(1),
    guard: createGuard(messages),
    guide: async (logits) => logits,
    wish: ENDLESS,
    openings: [[]],
    continuation: null,
    name: tokensOf(NAME),
    nearEnough: 0.3,
    nearWanted: 0.3,
    nearness: async () => 1,
    ...change,
  });
  return generation;
}

/** The text that was shown, piece by piece, and why it ended. */
async function shownBy(generation: ReturnType<typeof scripted>) {
  const pieces: string[] = [];
  for (let turns = 0; turns < 1_000; turns++) {
    const { text, reason } = await generation.takeTurn();
    if (text !== "") pieces.push(text);
    if (reason !== undefined) return { pieces, text: pieces.join(""), reason };
  }
  throw new Error("the generation does not end");
}

test("a beginning that echoes the question is written again and never shown", async () => {
  const { pieces, text } = await shownBy(scripted([QUESTION, "A short novel is best. You can read it in an hour."]));
  expect(text).toBe("A short novel is best. You can read it in an hour.");
  for (const piece of pieces) expect(piece).not.toContain("What should");
});

test("half a sentence that was shown is continued until it can end", async () => {
  const begun = "A short novel is best. You can read about ";
  const faults = ["one!", "two!", "three!", "four!", "five!", "six!"];
  const guard = {
    ...createGuard(messages),
    faultIn: (text: string) => (text.includes("!") ? ("language" as const) : null),
  };
  const answers = [...faults, "birds."].map((last) => begun + last);
  expect(await shownBy(scripted(answers, { guard }))).toMatchObject({ text: `${begun}birds.`, reason: "stop" });
});

test("an opening that is tried again continues differently", async () => {
  const hello = "Hello, nice to meet you.";
  const welcome = "Hello, welcome in the library.";
  const opening = [1]; // "Hello,", the first word of the vocabulary
  const guard = createGuard([{ role: "user", content: hello }]);
  expect((await shownBy(scripted([hello, welcome], { guard, openings: [opening] }))).text).toBe(welcome);
});

test("a beginning off the subject is written again; if all are, the closest is shown", async () => {
  const far = ["I am tired today.", "The sea is wide.", "Cats are nice.", "Owls sleep.", "We won."];
  const answers = [...far.slice(0, 3), "Read a book there.", ...far.slice(3)];
  const nearness = async (text: string) => (text.startsWith("Read") ? 0.2 : 0.1);
  expect((await shownBy(scripted(answers, { nearness }))).text).toBe("Read a book there.");
});

test("of the first beginnings, the closest is shown if it is close enough, though none is as close as wanted", async () => {
  const answers = ["Find a window seat.", "Take a map there.", "Read a novel there.", "Try the soup.", "Sleep a lot."];
  const nearness = async (text: string) => (text.startsWith("Read") ? 0.4 : 0.32);
  expect((await shownBy(scripted(answers, { nearness, nearWanted: 0.5 }))).text).toBe("Read a novel there.");
});

test("if every beginning claims what was not done, that is said instead", async () => {
  const guard = createGuard([{ role: "user", content: "Send a note to Bob" }]);
  const claims = ["Yes,", "Sure,", "Well,", "Now", "So", "Done,", "Right,", "Here"].map(
    (one) => `${one} I have sent it.`,
  );
  const { text } = await shownBy(scripted(claims, { guard }));
  expect(text).toBe(guard.insteadOf("claim") ?? "");
  const answers = ["I have sent it to Bob.", "Only you can do that."];
  expect((await shownBy(scripted(answers, { guard }))).text).toBe("Only you can do that.");
});

test("if few words were asked for, more beginnings are tried, since most are too long", async () => {
  const long = ["The sea", "An owl", "One cat", "My train", "No book", "All land", "That day"];
  const answers = [...long.map((start) => `${start} is far too long for this.`), "Try novels."];
  const { text } = await shownBy(scripted(answers, { wish: { sentences: 1, least: 1, items: 0, words: 3 } }));
  expect(text).toBe("Try novels.");
});

test("an answer of one sentence is shown word by word, once its beginning is close enough", async () => {
  const answer = "Take a short novel with you and enjoy it slowly as all of the land goes by outside.";
  const { pieces, text } = await shownBy(scripted([answer]));
  expect(text).toBe(answer);
  expect(pieces.length).toBeGreaterThan(5);
  expect(pieces[0]).toStartWith("Take a short novel");
  expect(pieces[0]).not.toContain("slowly");
});

test("half a beginning that is far from the question is written again before its sentence has ended", async () => {
  const far = "It is said that all of the cats in this town are grey at night and by day.";
  const looks: string[] = [];
  const nearness = async (text: string) => {
    looks.push(text);
    return text.startsWith("Take") ? 0.5 : 0;
  };
  const { text } = await shownBy(scripted([far, "Take a novel with you."], { nearness }));
  expect(text).toBe("Take a novel with you.");
  expect(looks.at(-2)).toBe("It is said that all of the cats ");
  expect(looks.join()).not.toContain("by day");
});

test("half a beginning that may become an echo of the question is not shown", async () => {
  const long = "What should I read on a train that goes through all of the country by night?";
  const guard = createGuard([{ role: "user", content: long }]);
  const { pieces } = await shownBy(scripted([long, "Take a novel with you."], { guard }));
  expect(pieces.join("")).toBe("Take a novel with you.");
});

test("advice that would end without having listed anything goes on to what it means", async () => {
  const continuation = () => [8, 9, 10]; // ", such as" in the vocabulary
  const praise = "Give something nice . no more :";
  const { text } = await shownBy(scripted([praise, ", such as pens."], { continuation }));
  // ":" would begin a list.
  expect(text).toBe("Give something nice , such as pens.");
});

test("a turn that goes wrong is not shown, and its sentence ends before it", async () => {
  const guard = createGuard([{ role: "user", content: "Do you like music?" }]);
  const answer = "I like all kinds of music very much, but I do not know it.";
  const wrong = ["but", "but he", "but we", "but they"].map((turn) => `much, ${turn} do not know it.`);
  const { text } = await shownBy(scripted([answer, ...wrong], { guard }));
  expect(text).toStartWith("I like all kinds of music very much");
  expect(text).not.toContain("but");
});

test("an answer ends before a sentence that has left the subject", async () => {
  const answer =
    "Take a short novel with you on the train. My cat has slept on the old sofa since noon today. And so on.";
  const nearness = async (text: string) => (text.includes("cat") ? 0 : 0.5);
  const { pieces, text } = await shownBy(scripted([answer], { nearness, wish: { ...ENDLESS, sentences: 4 } }));
  expect(text).toBe("Take a short novel with you on the train.");
  expect(pieces.join("")).not.toContain("My");
});

test("an answer of two sentences, if these were asked for, does not end after the first", async () => {
  const answers = ["A short novel is best. ", "best. You can read it in an hour."];
  const wish = { ...ENDLESS, sentences: 2, least: 2 };
  expect((await shownBy(scripted(answers, { wish }))).text).toBe("A short novel is best. You can read it in an hour.");
  expect((await shownBy(scripted(answers))).text.trim()).toBe("A short novel is best.");
});

test("a story, which should be long, may leave its subject", async () => {
  const answer =
    "Take a short novel with you on the train. My cat has slept on the old sofa since noon today. And so on.";
  const nearness = async (text: string) => (text.includes("cat") ? 0 : 0.5);
  expect((await shownBy(scripted([answer], { nearness }))).text).toBe(answer);
});

test("while nothing has been shown, a turn writes several tokens, then one", async () => {
  const answer =
    "Take a short novel with you and enjoy it slowly as all of the land goes by outside. You will like it.";
  const generation = scripted([answer], { nearness: async () => 0.32 });
  const written: number[] = [];
  for (let done = false; !done; ) {
    const before = generation.completionTokens();
    done = (await generation.takeTurn()).reason !== undefined;
    written.push(generation.completionTokens() - before);
  }
  expect(written.slice(0, 2)).toEqual([16, 2]);
  for (const tokens of written.slice(2)) expect(tokens).toBeLessThanOrEqual(1);
});

test("after the words that introduce an agent comes the agent's name", async () => {
  expect((await shownBy(scripted(["Hello! My name is"]))).text).toBe("Hello! My name is Odile.");
});

test("an answer that would continue as the user ends before that", async () => {
  const { text } = await shownBy(scripted(["Take a novel with you.\nUser: Which one? Tell me more."]));
  expect(text).toStartWith("Take a novel with you.");
  expect(text).not.toContain("User:");
});

test("an answer that goes round in circles ends, and the repetition is not shown", async () => {
  const { text } = await shownBy(scripted(["Take a novel with you. It is a good thing to do. Take a novel with you."]));
  expect(text).toStartWith("Take a novel with you. It is a good thing to do.");
  expect(loops(text)).toBe(false);
});

test("an answer that reaches its limit ends with a whole sentence", async () => {
  const answer =
    "Take a novel with you. It is good to have one. And then there is also the question of which one it is.";
  const { text, reason } = await shownBy(scripted([answer], { maxTokens: 15 }));
  expect(text).toBe("Take a novel with you. It is good to have one.");
  expect(reason).toBe("length");
});

test("an answer ends after the number of sentences that was asked for", async () => {
  const wish = { sentences: 2, least: 1, items: 0, words: Number.POSITIVE_INFINITY };
  const answer = "Take a novel with you. It is good to have one. And a second one. And a third.";
  expect((await shownBy(scripted([answer], { wish }))).text).toBe("Take a novel with you. It is good to have one.");
});

test("a beginning with more words than were asked for is written again", async () => {
  const wish = { sentences: 1, least: 1, items: 0, words: 3 };
  const answers = ["That is a question that many people ask.", "A novel."];
  expect((await shownBy(scripted(answers, { wish }))).text).toBe("A novel.");
});

test("a stop string ends the answer and is not shown", async () => {
  const { text } = await shownBy(scripted(["Take a novel with you. THE END. More."], { stop: ["THE END"] }));
  expect(text).toBe("Take a novel with you. ");
});

test("the real model does not echo the README's first question, and shows nothing of its prompt", async () => {
  const system = "You are a warm, well-read librarian. Answer in two sentences.\n\nYour name is Librarian.";
  const question = "Good evening! What should I read on a train?";
  for (const seed of [1, 2, 3]) {
    const { engine, close } = openLocalEngine({ seed });
    try {
      const request = chat(question, { temperature: 0.2 });
      const told = {
        ...request,
        messages: [{ role: "system" as const, content: system }, ...request.messages.slice(1)],
      };
      const text = textOf(await collect(engine.stream(told, never)));
      expect(text).not.toContain("What should I read");
      expect(text).not.toContain("Your name is");
      expect(text).toMatch(/[.!?]["”']?$/);
    } finally {
      await close();
    }
  }
});
