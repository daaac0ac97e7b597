import { expect, test } from "bun:test";
import { buildPrompt, cut, PROMPT_FILES, toMessages } from "../../src/runtime/prompt.ts";
import type { RunInput, Turn } from "../../src/runtime/protocol.ts";

const run = (change: Partial<RunInput> = {}): RunInput => ({
  runId: "run_a",
  agentName: "Ada",
  files: PROMPT_FILES.map((name) => ({ name, text: `text of ${name}` })),
  skills: [],
  tools: [],
  model: { contextTokens: 32_000, tools: true },
  conversation: [{ role: "user", text: "hi" }],
  journal: [],
  ...change,
});
const system = (change?: Partial<RunInput>): string => toMessages(buildPrompt(run(change)))[0]?.content ?? "";
const turns = (count: number, size: number): Turn[] =>
  Array.from({ length: count }, (_, at) => ({ role: at % 2 === 0 ? "user" : "assistant", text: `${at}`.padEnd(size) }));

test("the files come in their order, whatever order they were found in", () => {
  const files = PROMPT_FILES.map((name) => ({ name, text: `text of ${name}` })).reverse();
  expect(system({ files })).toBe(
    ["You are Ada.", ...PROMPT_FILES.map((name) => `text of ${name}`), "Your name is Ada."].join("\n\n"),
  );
  expect(PROMPT_FILES.map((name) => name.slice(0, -3)).join()).toBe("AGENTS,SOUL,IDENTITY,USER,TOOLS,BOOTSTRAP,MEMORY");
});

test("a missing default file is named, an empty one is not", () => {
  const files = [{ name: "SOUL.md", text: "  \n" }];
  const text = system({ files });
  for (const name of ["AGENTS.md", "IDENTITY.md", "USER.md"]) expect(text).toContain(`There is no ${name}`);
  for (const name of ["SOUL.md", "MEMORY.md", "BOOTSTRAP.md"]) expect(text).not.toContain(name);
});

test("a long file is cut in its middle, with a visible mark: 20,000 characters a file, 60,000 in all", () => {
  const text = cut(`${"a".repeat(30_000)}${"z".repeat(30_000)}`, 20_000);
  expect(text).toHaveLength(20_000);
  const [head = "", tail = ""] = text.split(/\n\[….*…\]\n/u);
  expect(head).toMatch(/^a+$/);
  expect(tail).toMatch(/^z+$/);
  expect(head.length / (head.length + tail.length)).toBeCloseTo(0.75, 3);
  const files = PROMPT_FILES.map((name) => ({ name, text: name.repeat(10_000) }));
  const all = system({ files, model: { contextTokens: 1_000_000, tools: true } });
  expect(all.length).toBeGreaterThan(59_000);
  expect(all.length).toBeLessThan(61_000);
  expect(all.match(/\[….*…\]/gu)).toHaveLength(PROMPT_FILES.length);
});

test("a cut does not leave half a character", () => {
  for (let most = 60; most < 70; most++) expect(cut("🎈".repeat(100), most).isWellFormed()).toBe(true);
});

test("a small model gets a prompt that fits it", () => {
  const files = PROMPT_FILES.map((name) => ({ name, text: name.repeat(2_000) }));
  const messages = toMessages(
    buildPrompt(run({ files, model: { contextTokens: 2_048, tools: false }, conversation: turns(101, 500) })),
  );
  const size = messages.reduce((sum, { content }) => sum + content.length, 0);
  expect(size).toBeLessThan(2_048 * 3);
  expect(messages.at(-1)?.content.trim()).toBe("100");
});

test("skills are there by name and description, and by their text as far as there is room", () => {
  const skills = ["one", "two", "three"].map((name) => ({
    name,
    description: `about ${name}`,
    instructions: `how to ${name} ${"x".repeat(1_000)}`,
  }));
  const wide = system({ skills });
  const narrow = system({ skills, files: [], model: { contextTokens: 2_600, tools: false } });
  for (const { name, description } of skills) {
    expect(wide).toContain(`- ${name}: ${description}\nhow to ${name}`);
    expect(narrow).toContain(`- ${name}: ${description}`);
  }
  expect(narrow).toContain("how to one");
  expect(narrow).not.toContain("how to three");
});

test("the oldest turns are dropped some at a time, and the prompt says so", () => {
  const starts = new Set<number>();
  for (let count = 81; count < 121; count += 2) {
    const prompt = buildPrompt(
      run({ files: [], model: { contextTokens: 4_000, tools: false }, conversation: turns(count, 300) }),
    );
    const first = Number(prompt.turns[0]?.text);
    expect(prompt.turns.at(-1)?.text.trim()).toBe(String(count - 1));
    expect(toMessages(prompt)[0]?.content).toContain("not shown");
    starts.add(first);
  }
  // In steps: most messages find the prompt before them unchanged.
  expect(starts.size).toBeLessThan(8);
  expect(toMessages(buildPrompt(run()))[0]?.content).not.toContain("not shown");
});

test("the message to answer is there however long it is", () => {
  const conversation: Turn[] = [...turns(4, 100), { role: "user", text: "y".repeat(30_000) }];
  const prompt = buildPrompt(run({ model: { contextTokens: 2_048, tools: false }, conversation }));
  expect(prompt.turns).toHaveLength(1);
  expect(prompt.turns[0]?.text).toContain("yyy");
});
