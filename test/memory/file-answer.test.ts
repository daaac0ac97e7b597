import { expect, test } from "bun:test";
import type { Agent } from "../../src/agents/schema.ts";
import { fileAnswer, mayStandInFile } from "../../src/memory/file-answer.ts";
import { createRecall } from "../../src/memory/recall.ts";
import type { Found } from "../../src/memory/search/entry.ts";
import { recallOf } from "../../src/models/local/recall.ts";
import { buildPrompt, toMessages } from "../../src/runtime/prompt.ts";
import type { RunInput } from "../../src/runtime/protocol.ts";

const FAQ = [
  "# FAQ\n\n## Opening hours\nMonday to Friday 9:00-18:00, Saturday 10:00-14:00.",
  "## Repairs\nA service costs 45 EUR. Punctures are fixed for 12 EUR.\n\n## Rental\n- City bikes 18 EUR a day, helmet included",
].map((text) => ({ file: "FAQ.md", text }));
const OPEN = "FAQ.md says: Monday to Friday 9:00-18:00, Saturday 10:00-14:00.";

test.each([
  ["hi are you open on saturday?", OPEN],
  ["what's your opening hours on monday", OPEN],
  ["What does a puncture cost?", "FAQ.md says: A service costs 45 EUR. Punctures are fixed for 12 EUR."],
  ["is a helmet included in rental", "FAQ.md says: City bikes 18 EUR a day, helmet included."],
])("a question whose words stand in one line of a file is answered with that line: %s", (question, answer) => {
  expect(mayStandInFile(question)).toBe(true);
  expect(fileAnswer(question, FAQ)).toBe(answer);
});

test.each(["What is the capital of France?", "Do you sell skateboards?", "What is EUR?", "What are the repairs?"])(
  "a question of which only some words stand in a file, or in several lines, is not: %s",
  (question) => {
    expect(fileAnswer(question, FAQ)).toBeNull();
  },
);

test("a file's name tells what its lines are about, and notes and files of the prompt are none", () => {
  const text = "- Monday: reading\n- Tuesday: maths";
  const question = "What is on Tuesday in the plan?";
  expect(fileAnswer(question, [{ file: "plan.md", text }])).toBe("plan.md says: Tuesday: maths.");
  for (const file of ["AGENTS.md", "memory/2026-11-22.md", null])
    expect(fileAnswer(question, [{ file, text }])).toBeNull();
  expect(fileAnswer("Which day is maths?", [{ file: "plan.md", text: "maths ".repeat(100) }])).toBeNull();
});

test("only a question may stand in a file", () => {
  for (const message of ["Tell me a joke.", "How are you?", "thanks", `Is ${"very ".repeat(40)}much open?`])
    expect(mayStandInFile(message)).toBe(false);
});

test("a model with a short prompt is told the line of a file, unless a stranger may have written it", async () => {
  const found = (origin: Found["origin"]): Found => ({
    ...{ file: "FAQ.md", text: FAQ[0]?.text ?? "", origin, score: 0.3, createdAt: 0, seq: 0, fromLine: 1, toLine: 4 },
    ...{ messageId: null, runId: null, conversationId: null },
  });
  const told = (origin: Found["origin"], has = true) =>
    createRecall(
      { search: async () => ({ items: [found(origin)], degraded: null }), keep: async () => {} },
      { isForeground: () => true, hasOwnTexts: () => has },
    )({} as Agent, "Are you open on Saturday?", "conv_a", "short");
  expect(await told("owner")).toEqual([OPEN]);
  expect(await told("untrusted")).toEqual([]);
  expect(await told("owner", false)).toEqual([]);
});

test("what a file says is told in its own words, with its name", () => {
  const run: RunInput = {
    ...{ runId: "run_a", agentName: "Ada", files: [], skills: [], moreSkills: 0, readsSkills: false, earlier: 0 },
    model: { contextTokens: 2_048, tools: false, prompt: "short" },
    conversation: [{ role: "user", text: "Are you open on Saturday?" }],
    journal: [],
    memories: [OPEN],
  };
  const messages = toMessages(buildPrompt(run));
  expect(recallOf(messages.map(({ role, content }) => ({ role, content })))).toMatchObject({ openings: [OPEN] });
});
