/**
 * `npm run eval -- tools` measures on the committed cases which tools the embedded model calls rightly, and how often it
 * calls one where none is wanted, and writes `docs/eval-tools.md`. `--half tuning --show` shows what went wrong there; the
 * other half is never shown.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { runModelProcess } from "../../src/models/local/process.ts";
import { createLocalEngine } from "../../src/models/local.ts";
import { readPersonas } from "../cases.ts";
import { createAnswering, type ToolAnswer } from "./answers.ts";
import { TOOL_CASES, type ToolCase } from "./cases.ts";
import { type Result, writeToolReport } from "./report.ts";
import { isRight } from "./rules.ts";

if (process.argv[2] === "model-process") await runModelProcess();

const { values: options } = parseArgs({
  args: process.argv.slice(2).filter((argument) => argument !== "tools"),
  options: {
    seeds: { type: "string", default: "5" },
    half: { type: "string", default: "all" },
    show: { type: "boolean", default: false },
  },
});
const seeds = Array.from({ length: Number(options.seeds) }, (_, at) => at + 1);
const cases = TOOL_CASES.filter(({ half }) => options.half === "all" || half === options.half);
/** Ordinary conversation, in three languages: none of it wants a tool. */
const chats = readPersonas().flatMap(({ conversations }) => conversations.flat().map(({ say }) => say));

const answering = createAnswering();
const cacheDir = mkdtempSync(join(tmpdir(), "roost-eval-"));
const results: Result[] = [];
const disturbed: string[] = [];
try {
  await answering.check();
  for (const seed of seeds) await answerAll(seed);
} finally {
  await answering.close();
  rmSync(cacheDir, { recursive: true, force: true });
}
const asked = options.half === "all" ? chats.length : 0;
const text = writeToolReport(results, { asked, disturbed: disturbed.length }, seeds.length);
for (const say of new Set(disturbed)) console.error(`called a tool: ${say}`);
if (options.half === "all" && seeds.length >= 5) {
  writeFileSync(join(resolve(import.meta.dir, "../.."), "docs/eval-tools.md"), text);
}
console.log(text);
process.exit();

async function answerAll(seed: number): Promise<void> {
  const engine = createLocalEngine({
    ...{ cacheDir, seed, idleMs: 600_000, log: { info() {}, warn() {} } },
    command: [process.execPath, "--no-env-file", import.meta.path, "model-process"],
  });
  try {
    for (const one of cases) {
      const answer = await answering.answer(engine, one.say);
      const right = isRight(one, answer);
      results.push({ ...one, called: answer.calls.length > 0, right });
      if (options.show && !right && one.half === "tuning") show(one, answer);
    }
    // Whether a tool is called is not sampled, so once is enough.
    for (const say of seed === 1 && options.half === "all" ? chats : []) {
      const { calls } = await answering.answer(engine, say);
      if (calls.length > 0) disturbed.push(say);
    }
  } finally {
    await engine.close();
  }
  console.error(`seed ${seed}: ${results.length} answers`);
}

function show({ id, say }: ToolCase, { calls, text }: ToolAnswer): void {
  const made = calls.map(({ name, input }) => `${name} ${JSON.stringify(input)}`).join(", ");
  console.log(
    `${id}: ${say}\n  → ${made === "" ? "no call" : made}\n  → ${text.replaceAll("\n", " ⏎ ").slice(0, 300)}`,
  );
}
