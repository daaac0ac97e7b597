import { expect, test } from "bun:test";
import type { ToolDescription } from "../../src/models/engine.ts";
import { seededRandom } from "../../src/models/local/sampling.ts";
import { buildPrompt, conversationRoom, type Frame, PROMPT_FILES, toMessages } from "../../src/runtime/prompt.ts";
import { canReadSkills, chooseFiles, chooseSkills, chooseTurns, cut, roomOf } from "../../src/runtime/prompt-room.ts";
import type { RunInput, Turn } from "../../src/runtime/protocol.ts";
import { tokensOfTurn } from "../../src/runtime/tokens.ts";
import { promptOfEverything } from "./prompt-whole.ts";

/** Everything stored for a run, and the run that the host prepares from it for a model. */
interface Stored extends Pick<RunInput, "files" | "conversation" | "model"> {
  tools: ToolDescription[];
  skills: { name: string; description: string; instructions: string; companionBytes?: number }[];
}
/** The prepared run, and how many characters of text were read for it. */
function prepare(change: Partial<Stored> = {}): { run: RunInput; read: number } {
  const { files, skills, conversation, model, tools }: Stored = {
    files: PROMPT_FILES.map((name) => ({ name, text: `text of ${name}` })),
    skills: [],
    tools: [],
    model: { contextTokens: 32_000, tools: true, prompt: "full" },
    conversation: [{ role: "user", text: "hi" }],
    ...change,
  };
  const room = roomOf(model.contextTokens);
  let read = 0;
  const reading = (text: string): string => {
    read += text.length;
    return text;
  };
  const bytesOf = (text: string) => Buffer.byteLength(text);
  const outlines = skills.map(({ name, description, instructions, companionBytes }) => ({
    name,
    description,
    bytes: bytesOf(instructions),
    textBytes: bytesOf(instructions) + (companionBytes ?? 0),
  }));
  const textOf = (name: string) => skills.find((skill) => skill.name === name)?.instructions ?? "";
  const turns = conversation.map((turn) => ({
    role: turn.role,
    tokens: tokensOfTurn(turn),
    read: () => ({ ...turn, text: reading(turn.text) }),
  }));
  const frame: Frame = {
    runId: "run_a",
    agentName: "Ada",
    files: chooseFiles(files, room),
    ...chooseSkills(outlines, room, canReadSkills(tools) ? null : (name) => reading(textOf(name))),
    readsSkills: canReadSkills(tools),
    model,
    journal: [],
  };
  const run = { ...frame, ...chooseTurns(turns, conversationRoom(frame, tools)) };
  return { run, read };
}
const run = (change?: Partial<Stored>): RunInput => prepare(change).run;
const system = (change?: Partial<Stored>): string => toMessages(buildPrompt(run(change)))[0]?.content ?? "";
const turns = (count: number, size: number): Turn[] =>
  Array.from({ length: count }, (_, at) => ({ role: at % 2 === 0 ? "user" : "assistant", text: `${at}`.padEnd(size) }));

test("the prompt has the files in its own order, whatever order they were found in", () => {
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

test("a long file is cut in the middle, with a visible mark: 20,000 characters a file, 60,000 in all", () => {
  const text = cut(`${"a".repeat(30_000)}${"z".repeat(30_000)}`, 20_000);
  expect(text).toHaveLength(20_000);
  const [head = "", tail = ""] = text.split(/\n\[….*…\]\n/u);
  expect(head).toMatch(/^a+$/);
  expect(tail).toMatch(/^z+$/);
  expect(head.length / (head.length + tail.length)).toBeCloseTo(0.75, 3);
  const files = PROMPT_FILES.map((name) => ({ name, text: name.repeat(10_000) }));
  const all = system({ files, model: { contextTokens: 1_000_000, tools: true, prompt: "full" } });
  expect(all.length).toBeGreaterThan(59_000);
  expect(all.length).toBeLessThan(61_000);
  expect(all.match(/\[….*…\]/gu)).toHaveLength(PROMPT_FILES.length);
});

test("a cut does not split a character", () => {
  for (let most = 60; most < 70; most++) expect(cut("🎈".repeat(100), most).isWellFormed()).toBe(true);
});

test("a small model gets a prompt that fits it", () => {
  const files = PROMPT_FILES.map((name) => ({ name, text: name.repeat(2_000) }));
  const messages = toMessages(
    buildPrompt(
      run({ files, model: { contextTokens: 2_048, tools: false, prompt: "full" }, conversation: turns(101, 500) }),
    ),
  );
  const size = messages.reduce((sum, { content }) => sum + content.length, 0);
  expect(size).toBeLessThan(2_048 * 3);
  expect(messages.at(-1)?.content.trim()).toBe("100");
});

test("skills are included by name and description, and by their text while there is room", () => {
  const skills = ["one", "two", "three"].map((name) => ({
    name,
    description: `about ${name}`,
    instructions: `how to ${name} ${"x".repeat(1_000)}`,
  }));
  const wide = system({ skills });
  const narrow = system({ skills, files: [], model: { contextTokens: 2_600, tools: false, prompt: "full" } });
  for (const { name, description } of skills) {
    expect(wide).toContain(`- ${name}: ${description}\nhow to ${name}`);
    expect(narrow).toContain(`- ${name}: ${description}`);
  }
  expect(narrow).toContain("how to one");
  expect(narrow).not.toContain("how to three");
});

test("a model that can read skills gets their names and descriptions only, and is told to read them", () => {
  const skills = [{ name: "one", description: "about one", instructions: "how to one" }];
  const tools = [{ name: "read_skill", description: "", inputSchema: {} }];
  const stored = { skills, files: [], tools };
  expect(system(stored)).toContain(
    "When one fits the request, first read it with read_skill, then follow it:\n- one: about one\n\nYour name",
  );
  const conversation = [{ role: "user" as const, text: "" }];
  expect(prepare({ ...stored, conversation }).read).toBe(0);
  // A model whose owner denies it the tool has only its prompt.
  expect(system({ ...stored, tools: [] })).toContain(
    "When one fits the request, follow it:\n- one: about one\nhow to one",
  );
});

test("of skills with many files, no more than a megabyte is read", () => {
  const skills = Array.from({ length: 8 }, (_, at) => ({
    name: `skill-${at}`,
    description: "short",
    instructions: `the text of ${at}`,
    companionBytes: 300 * 1024,
  }));
  const told = run({ skills }).skills.map(({ instructions }) => instructions !== null);
  expect(told).toEqual([true, true, true, false, false, false, false, false]);
});

test("skills for which there is no room are counted, and no text is read that cannot fit", () => {
  const skills = Array.from({ length: 100 }, (_, at) => ({
    name: `skill-${at}`,
    description: "d".repeat(1_000),
    instructions: "x".repeat(256 * 1024),
  }));
  const conversation = turns(100, 32_000);
  for (const [contextTokens, shown] of [
    [1_024, 47],
    [32_768, 100],
  ] as const) {
    const model = { contextTokens, tools: false, prompt: "full" } as const;
    const { run, read } = prepare({ skills, conversation, model });
    const told = system({ skills, conversation, model });
    expect(told.match(/^- skill-\d+/gm)).toHaveLength(shown);
    if (shown < 100) expect(told).toContain(`(${100 - shown} more skills are installed`);
    else expect(told).not.toContain("more skills are installed");
    expect(read).toBeLessThanOrEqual(Math.max(32_000, roomOf(contextTokens)));
    // The worker gets what its prompt can hold: at most a third more, for the message to answer.
    expect(JSON.stringify(run).length).toBeLessThan(Math.max(40_000, 1.3 * roomOf(contextTokens)));
  }
});

test("where descriptions take too much room, the longest are shortened, so that no skill goes unnamed", () => {
  const skills = Array.from({ length: 100 }, (_, at) => ({
    name: `skill-${at}`,
    description: at < 50 ? `does ${at}` : "🎈".repeat(460),
    instructions: "x".repeat(1_000),
  }));
  const model = { contextTokens: 128_000, tools: true, prompt: "full" } as const;
  const tools = [{ name: "read_skill", description: "", inputSchema: {} }];
  const told = system({ skills, tools, model });
  const lines = told.split("\n").filter((line) => line.startsWith("- skill-"));
  expect(lines).toHaveLength(100);
  for (let at = 0; at < 50; at++) expect(lines[at]).toBe(`- skill-${at}: does ${at}`);
  const cut = lines.slice(50);
  for (const line of cut) expect(line).toMatch(/^- skill-\d+: 🎈+…$/u);
  const length = lines.join("\n").length;
  expect(length).toBeLessThanOrEqual(20_000);
  expect(length).toBeGreaterThan(19_500);
});

test("the oldest turns are dropped in groups, and the prompt says so", () => {
  const starts = new Set<number>();
  for (let count = 81; count < 121; count += 2) {
    const prompt = buildPrompt(
      run({
        files: [],
        model: { contextTokens: 4_000, tools: false, prompt: "full" },
        conversation: turns(count, 300),
      }),
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

test("the message to answer is included however long it is, cut to what the model can hold", () => {
  const conversation: Turn[] = [...turns(4, 100), { role: "user", text: "y".repeat(30_000) }];
  const prompt = buildPrompt(run({ model: { contextTokens: 2_048, tools: false, prompt: "full" }, conversation }));
  expect(prompt.turns).toHaveLength(1);
  expect(prompt.turns[0]?.text).toContain("yyy");
  expect(prompt.turns[0]?.text).toContain("cut here");
});

test("a prompt from the chosen parts is the same as one from everything stored", () => {
  const draw = seededRandom(9);
  const upTo = (most: number) => Math.floor(draw() * (most + 1));
  const textOf = (most: number) => ["a", "é", "日", "🎈", " x"][upTo(4)]?.repeat(upTo(most)) ?? "";
  let dropped = 0;
  let cutSkills = 0;
  for (let round = 0; round < 3_000; round++) {
    const contextTokens = [2_048, 4_000, 8_000, 32_768][upTo(3)] ?? 2_048;
    const files = PROMPT_FILES.filter(() => draw() < 0.5).map((name) => ({ name, text: textOf(4_000) }));
    const skills = Array.from({ length: upTo(8) }, (_, at) => ({
      name: `skill-${at}`,
      description: "d".repeat(1 + upTo(60)),
      instructions: textOf(2_000).trim(),
    }));
    const conversation = Array.from(
      { length: 1 + upTo(99) },
      (_, at): Turn => ({ role: at % 2 === 0 ? "user" : "assistant", text: textOf(at % 9 === 0 ? 2_000 : 100) }),
    );
    // A longer message to answer could be cut, which prompt-whole.ts does not do.
    conversation.push({ role: "user", text: textOf(400) });
    const stored = {
      files,
      skills,
      conversation,
      model: { contextTokens, tools: draw() < 0.5, prompt: "full" as const },
    };
    const chosen = run(stored);
    const messages = toMessages(buildPrompt(chosen));
    expect(messages).toEqual(promptOfEverything({ agentName: "Ada", ...stored }));
    if (chosen.earlier > 0) dropped++;
    if (chosen.skills.some(({ instructions }) => instructions === null)) cutSkills++;
  }
  // Often not everything fits: otherwise the test proves nothing.
  expect(dropped).toBeGreaterThan(100);
  expect(cutSkills).toBeGreaterThan(100);
});
