/**
 * `npm run eval -- memory` searches for the answers to 200 questions in five languages, as the memory does and as plain
 * FTS5 and plain vectors would, and writes docs/eval-memory.md. With `--show`, it prints what the memory did not find.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createLocalEngine } from "../../src/models/local.ts";
import { type Places, type Question, readQuestions, searchAll, WAYS } from "./recall.ts";

const ROOT = resolve(import.meta.dir, "../..");
const LANGUAGES: Record<string, string> = { de: "German", en: "English", es: "Spanish", ja: "Japanese", zh: "Chinese" };

const cacheDir = mkdtempSync(join(tmpdir(), "roost-eval-"));
const log = { info() {}, warn: (fields: object, message: string) => console.error(message, fields) };
const engine = createLocalEngine({ cacheDir, idleMs: 60_000, log });
const questions = readQuestions();
const places = await searchAll(questions, (texts) => engine.embed(texts, AbortSignal.timeout(300_000)));
await engine.close();
rmSync(cacheDir, { recursive: true, force: true });

const share = (found: readonly boolean[]) => `${Math.round((100 * found.filter(Boolean).length) / found.length)} %`;
const within = (given: Places[keyof Places], which: readonly number[], first: number) =>
  share(which.map((at) => (given[at] ?? -1) >= 0 && (given[at] ?? -1) < first));

/** The weights were chosen with every second question, so the figures of those flatter the memory. */
const isTuning = (at: number) => at % 2 === 0;

function table(first: number): string {
  const rows = [...Object.entries(LANGUAGES), [null, "all"] as const, ["tuned", "*tuned with*"] as const].map(
    ([language, name]) => {
      const which = questions.flatMap((question: Question, at) =>
        isTuning(at) === (language === "tuned") &&
        (language === null || language === "tuned" || question.language === language)
          ? [at]
          : [],
      );
      return `| ${name} | ${which.length} | ${WAYS.map((way) => within(places[way], which, first)).join(" | ")} |`;
    },
  );
  return [`| | questions | ${WAYS.join(" | ")} |`, "|---|---:|---:|---:|---:|", ...rows].join("\n");
}

const page = `# How well memories are searched

\`npm run eval -- memory\` writes this page. ${questions.length} notes in five languages are one agent's memory. Each has a
question that it answers (\`eval/memory/notes/\`), which says it in other words where a person would. Plain FTS5 searches for any of
the question's words, plain vectors for the nearest sentence vectors (all-MiniLM-L6-v2, which was trained on English); the
memory does both, and also searches for parts of words. What it finds by words counts by its place, what it finds by meaning by
its cosine, which counts four times as much where the question is in English.

How much each counts was chosen with every second question, so the figures of those flatter the memory; they are the last line of
each table, and the others are of the other half. Plain FTS5 does not cut Chinese and Japanese into words,
which is why it finds nothing there.

The note is the first that is found:

${table(1)}

The note is among the first five:

${table(5)}
`;
console.log(page);
if (process.argv.includes("--show")) {
  for (const [at, { asked, note }] of questions.entries()) {
    const place = places.memory[at] ?? -1;
    if (place < 0 || place >= 5) console.log(`${place}\t${asked}\t${note}`);
  }
}
if (!process.argv.includes("--dry")) writeFileSync(join(ROOT, "docs/eval-memory.md"), page);
process.exit(0);
