import { expect, test } from "bun:test";
import { ConfigError, loadConfig } from "../../src/config.ts";
import { createModelChoice } from "../../src/models/choice.ts";

const modelsOf = (written: string) => loadConfig({ ROOST_MODELS: written, ROOST_DATA_DIR: "/nowhere" }).config.models;

test("ROOST_MODELS takes names with commas between, * for any, and by default none beside the host's own", () => {
  expect(modelsOf("")).toEqual([]);
  expect(modelsOf("gpt-x, openai:qwen3:4b,local:other")).toEqual(["gpt-x", "openai:qwen3:4b", "local:other"]);
  expect(modelsOf("*")).toEqual(["*"]);
  for (const wrong of [",", "a,,b", "a,", "a b", "a,a"]) expect(() => modelsOf(wrong)).toThrow(ConfigError);
});

test("a name is allowed exactly as it was written, with openai: before it or not", () => {
  const { allows } = createModelChoice(["gpt-x", "openai:qwen3:4b", "local:other"], "openai:own");
  const yes = ["openai:gpt-x", "openai:qwen3:4b", "openai:own", "local:smollm2-135m-instruct", "local:whatever"];
  const no = ["openai:GPT-X", "openai:qwen3", "openai:gpt-x2", "openai:openai:gpt-x", "openai:*", "gpt-x", "openai:"];
  expect(yes.filter((name) => !allows(name))).toEqual([]);
  expect(no.filter(allows)).toEqual([]);
});

test("* allows every model", () => {
  const { allows } = createModelChoice(["*"], "local:own");
  expect(["openai:a", "openai:b:c", "local:own"].every(allows)).toBe(true);
});

test("with a local model of the host's own and nothing allowed, no model of a server may be named", () => {
  const { allows, expected } = createModelChoice([], "local:own");
  expect(allows("openai:gpt-x")).toBe(false);
  expect(expected).toBe("local:<name>");
});
