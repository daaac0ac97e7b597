import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { createGuidance, wantsGuidance, withOtherMessage } from "../../src/models/local/guidance.ts";
import type { Stepper } from "../../src/models/local/stepper.ts";
import { chat, collect, never, openLocalEngine } from "./local-setting.ts";

const [USUAL, FITTING, NOISE] = [0, 1, 2];

/** After any message, the usual token is likely. */
function guidance(promptTokens: number) {
  const steps: { slot: number; past: number; tokens: readonly number[] }[] = [];
  const discarded: number[] = [];
  const copied: number[] = [];
  const stepper: Stepper = {
    kind: "ort",
    async step(slot, past, tokens) {
      steps.push({ slot, past, tokens });
      return Float32Array.of(9, 2, -20);
    },
    copyRows: (_from, _to, rows) => void copied.push(rows),
    discard: (slot) => void discarded.push(slot),
  };
  const slot = { index: 0, owner: "", tokens: [], busy: true, touchedRows: 0, promisedRows: 0, usedAt: 0 };
  const prompt = Array.from({ length: promptTokens }, (_, at) => at);
  const otherPrompt = () => [...prompt.slice(0, -2), 700];
  return { guide: createGuidance({ stepper, slot, prompt, otherSlot: 4, otherPrompt }), steps, discarded, copied };
}

const bestOf = (logits: Float32Array) => logits.indexOf(Math.max(...logits));

test("what the question makes likelier is preferred to what is likely after any message", async () => {
  const { guide } = guidance(10);
  const own = Float32Array.of(9, 8.5, 1);
  const guided = await guide(own, []);
  expect(bestOf(own)).toBe(USUAL);
  expect(bestOf(guided)).toBe(FITTING);
  // Whatever the other message makes of it: the model itself would hardly write it.
  expect(guided[NOISE]).toBe(Number.NEGATIVE_INFINITY);
});

test("the second slot takes over the common rows, and runs only what differs", async () => {
  const { guide, steps, copied } = guidance(10);
  await guide(Float32Array.of(9, 8, 1), []);
  await guide(Float32Array.of(9, 8, 1), [1]);
  expect(copied).toEqual([8]);
  expect(steps).toEqual([
    { slot: 4, past: 8, tokens: [700] },
    { slot: 4, past: 9, tokens: [1] },
  ]);
});

test("long prompts are not guided, nor are long answers to their end, so that the second slot stays small", async () => {
  const own = Float32Array.of(9, 8.5, 1);
  const long = guidance(400);
  expect(await long.guide(own, [])).toBe(own);
  expect(long.steps).toEqual([]);
  const { guide, discarded } = guidance(10);
  const answer = Array.from({ length: 64 }, () => 1);
  await guide(own, answer);
  expect(discarded).toEqual([4]);
  expect(await guide(own, [...answer, 1])).toBe(own);
});

test("only questions in English are guided, by the same conversation with another message", () => {
  expect(wantsGuidance("What should I read?", "en")).toBe(true);
  expect(wantsGuidance("Good morning!", "en")).toBe(false);
  expect(wantsGuidance("Was soll ich lesen?", "de")).toBe(false);
  expect(wantsGuidance("Translate 'good morning' into French.", "en")).toBe(false);
  // With it, water boils at 1.802 degrees.
  expect(wantsGuidance("What is the boiling point of water?", "en")).toBe(false);
  // With it, the marks that code stands between are left out.
  expect(wantsGuidance("Write a function that adds two numbers.", "en")).toBe(false);
  const system = { role: "system", content: "You are Ada." } as const;
  expect(withOtherMessage([system, { role: "user", content: "Why?" }])).toEqual([
    system,
    { role: "user", content: "Hello." },
  ]);
});

test.skipIf(process.platform !== "linux")(
  "an answer's second slot holds no memory once the answer has ended",
  async () => {
    const { engine, close } = openLocalEngine();
    const ferry = "The ferry to the island leaves the harbour at seven in the morning. ";
    const askFour = async (question: string, system = ferry.repeat(15)) => {
      for (const instanceId of ["inst_a", "inst_b", "inst_c", "inst_d"]) {
        const request = chat(question, { instanceId, maxTokens: 16 });
        const messages = [{ role: "system" as const, content: system }, ...request.messages.slice(1)];
        await collect(engine.stream({ ...request, messages }, never));
      }
      const status = readFileSync(`/proc/${engine.stats().pid}/status`, "utf8");
      return Number(/RssAnon:\s+(\d+)/.exec(status)?.[1]) / 1024;
    };
    // What the first guided answers leave behind, for the model of meanings too, is no row of a slot.
    await askFour("When should I get up to take it?", ferry);
    await askFour("Hello!");
    const before = await askFour("Hello!");
    await askFour("When should I get up to take it?");
    // Other answers, which need no second slot, give the time to collect garbage.
    const after = await askFour("Hello!");
    await close();
    // The rows of the four would take 40 MiB.
    expect(after - before).toBeLessThan(20);
  },
);
