import { expect, test } from "bun:test";
import { ConfigError, loadConfig } from "../../src/config.ts";
import { createModelChoice } from "../../src/models/choice.ts";

const modelsOf = (written: string) => loadConfig({ ROOST_MODELS: written, ROOST_DATA_DIR: "/nowhere" }).config.models;

test("ROOST_MODELS is a comma-separated list of names, or * for any; by default only the host's own model is allowed", () => {
  expect(modelsOf("")).toEqual([]);
  expect(modelsOf("gpt-x, openai:qwen3:4b,local:other")).toEqual(["gpt-x", "openai:qwen3:4b", "local:other"]);
  expect(modelsOf("*")).toEqual(["*"]);
  for (const wrong of [",", "a,,b", "a,", "a b", "a,a"]) expect(() => modelsOf(wrong)).toThrow(ConfigError);
});

test("a name is allowed exactly as written, with or without openai:", () => {
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

test("if the host's own model is local and no others are allowed, agents may not use a server's model", () => {
  const { allows, expected } = createModelChoice([], "local:own");
  expect(allows("openai:gpt-x")).toBe(false);
  expect(expected).toBe("local:<name>");
});
