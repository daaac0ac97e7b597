import { expect, test } from "bun:test";
import { join } from "node:path";
import { readQuestions } from "../../eval/memory/recall.ts";
import { openTokenizer } from "../../src/models/local/tokenizer.ts";
import { mostPromptTokens, probableTokens, tokensOf } from "../../src/runtime/tokens.ts";

const { encode } = await openTokenizer(join(import.meta.dir, "../../models/smollm2-135m-instruct"));
const promptOf = (text: string) => ({ messages: [{ role: "user" as const, content: text }], tools: [] });
const CODES = [
  "inv-2026-11-22/0003 4711-8844-0019",
  '{"a":[1,2.75,-3e9],"b":"0x1f6a2b4c5d7e90"}',
  "if(x[i]!=y[j]){++n;}",
];

test("a reservation is never less than what texts take, in any language, codes and numbers", () => {
  for (const text of [...readQuestions().map(({ note }) => note), ...CODES]) {
    expect(mostPromptTokens(promptOf(text.repeat(20)))).toBeGreaterThanOrEqual(encode(text.repeat(20)).length);
  }
});

test("in English a prompt is planned with more than it takes, and a call recorded with about what it took", () => {
  const text = readQuestions()
    .filter(({ language }) => language === "en")
    .map(({ note }) => note)
    .join("\n");
  const taken = encode(text).length;
  expect(tokensOf(text)).toBeGreaterThan(taken);
  expect(Math.abs(probableTokens(promptOf(text), 0).promptTokens / taken - 1)).toBeLessThan(0.15);
});
