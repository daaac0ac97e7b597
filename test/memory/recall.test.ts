import { expect, test } from "bun:test";
import type { Agent } from "../../src/agents/schema.ts";
import { createRecall, mayBeTold } from "../../src/memory/recall.ts";
import type { Found } from "../../src/memory/search/entry.ts";
import { buildPrompt, toMessages } from "../../src/runtime/prompt.ts";
import type { RunInput } from "../../src/runtime/protocol.ts";

const [OWN, OTHER, BACKGROUND] = ["conv_own", "conv_other", "conv_of_a_schedule"];
const isForeground = (conversationId: string) => conversationId !== BACKGROUND;
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
  const recall = createRecall({ search: async () => ({ items, degraded: null }) }, { isForeground });
  expect(await recall({} as Agent, "what?", OWN)).toEqual(["fact 0", "fact 1", "fact 2", "fact 3", "fact 4"]);
});

test("a memory that cannot be searched leaves the prompt without it", async () => {
  const recall = createRecall({ search: () => Promise.reject(new Error("broken")) }, { isForeground });
  expect(await recall({} as Agent, "what?", OWN)).toEqual([]);
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
