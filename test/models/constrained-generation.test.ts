import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { createConstrainedGeneration } from "../../src/models/local/constrained-generation.ts";
import { createJsonGrammar } from "../../src/models/local/json-grammar.ts";
import { SAMPLING, seededRandom } from "../../src/models/local/sampling.ts";
import { SMOLLM2 } from "../../src/models/local/stepper.ts";
import { openTokenizer } from "../../src/models/local/tokenizer.ts";

const tokenizer = await openTokenizer(resolve(import.meta.dir, "../../models/smollm2-135m-instruct"));

/** What is written, by a model that would rather write anything else, and how many tokens were looked at in each turn. */
async function write(schema: Record<string, unknown>) {
  let looks = 0;
  const random = seededRandom(1);
  const generation = createConstrainedGeneration(
    {
      prompt: [0],
      slot: { index: 0, owner: "", tokens: [], busy: true, touchedRows: 0, promisedRows: 0, usedAt: 0 },
      stepper: {
        kind: "ffi",
        step: async () => Float32Array.from({ length: SMOLLM2.vocabulary }, random),
        copyRows() {},
        discard() {},
      },
      tokenizer: {
        ...tokenizer,
        bytesOf(token) {
          looks++;
          return tokenizer.bytesOf(token);
        },
      },
      maxTokens: 200,
      stop: [],
      sampling: SAMPLING,
      random,
    },
    createJsonGrammar(schema),
  );
  let text = "";
  const looksOfTurns: number[] = [];
  for (;;) {
    looks = 0;
    const turn = await generation.takeTurn();
    looksOfTurns.push(looks);
    text += turn.text;
    if (turn.reason !== undefined) return { text, reason: turn.reason, looksOfTurns };
  }
}

test("a schema that leaves no choice is written without looking at each token again and again", async () => {
  const { text, reason, looksOfTurns } = await write({ const: "ŧøđŋħ 日本 🎉" });
  expect([text, reason]).toEqual(['"ŧøđŋħ 日本 🎉"', "stop"]);
  // In the first turn, their first bytes are found out.
  expect(Math.max(...looksOfTurns.slice(1))).toBeLessThan(SMOLLM2.vocabulary / 4);
});

test("a schema that nothing fits ends the answer at once", async () => {
  expect(await write({ $ref: "#" })).toMatchObject({ text: "", reason: "stop" });
});
