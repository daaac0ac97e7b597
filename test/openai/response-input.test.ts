import { expect, test } from "bun:test";
import { createReferences } from "../../src/openai/item-references.ts";
import { saidIn } from "../../src/openai/response-input.ts";

const NOTHING_STORED = createReferences(() => undefined);

test("all calls of one answer are its own, in linear time, since everybody waits for it", () => {
  const ids = Array.from({ length: 300_000 }, (_, at) => `call_${at}`);
  const calls = ids.map((id) => ({ type: "function_call" as const, call_id: id, name: "add", arguments: "{}" }));
  const { said } = saidIn({ input: [{ role: "user", content: "Add" }, ...calls] }, NOTHING_STORED);
  expect(said.map(({ kind }) => kind)).toEqual(["user", "assistant"]);
  const [, answer] = said;
  const made = answer?.kind === "assistant" ? answer.calls.map(({ id }) => id) : [];
  expect(made.length === ids.length && made.every((id, at) => id === ids[at])).toBe(true);
}, 120_000);
