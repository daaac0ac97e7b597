/**
 * `npm run eval` judges the built-in model's answers to the committed cases by rules, and compares them with those of
 * the same model with only its SOUL.md. Without options it takes about an hour, continues where it was interrupted, and
 * writes `docs/eval.md`; so does `-- --half held` for that half, and `--write` with fewer than five seeds. For a quick
 * look, use `-- --half tuning --seeds 1 --kind advice --show`. `npm run eval -- tools` measures its tools (tools/run.ts).
 */
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { runModelProcess } from "../src/models/local/process.ts";
import { createLocalEngine, type LocalEngine } from "../src/models/local.ts";
import { converse, type Given, VARIANTS, type Variant } from "./answers.ts";
import { type Case, type Half, halfOf, type Persona, readPersonas } from "./cases.ts";
import { fingerprint } from "./fingerprint.ts";
import { writeReport } from "./report.ts";
import { type Judged, judge, type Rule } from "./rules.ts";

const ROOT = resolve(import.meta.dir, "..");
/** Conversations at once: as many as the model process has slots. */
const AT_ONCE = 4;

interface Talk {
  persona: Persona;
  half: Half;
  cases: Case[];
}

interface Kept extends Given {
  variant: Variant;
  seed: number;
}

if (process.argv[2] === "model-process") await runModelProcess();
// Ends the process.
if (process.argv[2] === "tools") await import("./tools/run.ts");
if (process.argv[2] === "memory") await import("./memory/run.ts");

const { values: options } = parseArgs({
  options: {
    seeds: { type: "string", default: "5" },
    half: { type: "string", default: "all" },
    kind: { type: "string" },
    persona: { type: "string" },
    variant: { type: "string" },
    minutes: { type: "string" },
    show: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
    fresh: { type: "boolean", default: false },
  },
});
const seeds = Array.from({ length: Number(options.seeds) }, (_, at) => at + 1);
const variants = VARIANTS.filter((variant) => options.variant === undefined || variant === options.variant);
const until = options.minutes === undefined ? Number.POSITIVE_INFINITY : Date.now() + Number(options.minutes) * 60_000;

const talks = readPersonas().flatMap((persona): Talk[] =>
  persona.conversations.map((cases) => ({ persona, half: halfOf(cases), cases })),
);
const wanted = talks.filter(
  ({ persona, half, cases }) =>
    (options.half === "all" || half === options.half) &&
    (options.persona === undefined ||
      cases[0]?.id.startsWith(`${options.persona}/`) === true ||
      persona.name === options.persona) &&
    (options.kind === undefined || cases.some(({ kind }) => kind === options.kind)),
);

const kept = new Map<string, Kept>();
const keyOf = ({ variant, seed, id }: Pick<Kept, "variant" | "seed" | "id">) => `${variant} ${seed} ${id}`;
// Computed once, because changes to the sources during the run do not affect its answers.
const files = Object.fromEntries(
  VARIANTS.map((variant) => [variant, join(ROOT, ".cache/eval", `${variant}-${fingerprint(ROOT, variant)}.jsonl`)]),
) as Record<Variant, string>;
const fileOf = (variant: Variant) => files[variant];
mkdirSync(join(ROOT, ".cache/eval"), { recursive: true });
for (const variant of variants) {
  if (options.fresh) rmSync(fileOf(variant), { force: true });
  if (!existsSync(fileOf(variant))) continue;
  for (const line of readFileSync(fileOf(variant), "utf8").split("\n")) {
    if (line === "") continue;
    const one: Kept = JSON.parse(line);
    kept.set(keyOf(one), one);
  }
}

const cacheDir = mkdtempSync(join(tmpdir(), "roost-eval-"));
const open = (variant: Variant, seed: number): LocalEngine =>
  createLocalEngine({
    cacheDir,
    idleMs: 600_000,
    slots: AT_ONCE,
    log: { info() {}, warn() {} },
    seed,
    guarded: variant === "roost",
    command: [process.execPath, "--no-env-file", import.meta.path, "model-process"],
  });

let complete = true;
try {
  // A seed's variants run one after the other, so that other load on the machine affects both.
  for (const seed of seeds) for (const variant of variants) await answerAll(variant, seed);
  await report();
} finally {
  rmSync(cacheDir, { recursive: true, force: true });
}

async function answerAll(variant: Variant, seed: number): Promise<void> {
  const todo = wanted.filter(({ cases }) => cases.some(({ id }) => !kept.has(keyOf({ variant, seed, id }))));
  if (todo.length === 0) return;
  const engine = open(variant, seed);
  const signal = AbortSignal.timeout(3_600_000);
  const next = todo[Symbol.iterator]();
  async function work(): Promise<void> {
    for (const { persona, cases } of next) {
      if (Date.now() > until) {
        complete = false;
        return;
      }
      for (const given of await converse(engine, variant, persona, cases, signal)) {
        const one: Kept = { variant, seed, ...given };
        kept.set(keyOf(one), one);
        appendFileSync(fileOf(variant), `${JSON.stringify(one)}\n`);
      }
    }
  }
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  } finally {
    await engine.close();
  }
  console.error(`${variant}, seed ${seed}: ${todo.length} conversations`);
}

async function report(): Promise<void> {
  const engine = open("plain", 1);
  const judged: Judged[] = [];
  try {
    for (const { persona, half, cases } of wanted) {
      for (const asked of cases) judged.push(...(await judgeCase(engine, persona, half, asked)));
    }
  } finally {
    await engine.close();
  }
  if (options.show) show(judged);
  const everyHeld = talks.every((talk) => talk.half === "tuning" || wanted.includes(talk));
  const enough = complete && everyHeld && variants.length === VARIANTS.length && (seeds.length >= 5 || options.write);
  const text = writeReport(judged, seeds.length);
  if (enough) writeFileSync(join(ROOT, "docs/eval.md"), text);
  console.log(text);
  if (!complete) console.log("Stopped after the given minutes; run the same command again to continue.");
}

async function judgeCase(engine: LocalEngine, persona: Persona, half: Half, asked: Case): Promise<Judged[]> {
  const never = new AbortController().signal;
  const answers = variants.flatMap((variant) =>
    seeds.flatMap((seed) => kept.get(keyOf({ variant, seed, id: asked.id })) ?? []),
  );
  if (answers.length === 0) return [];
  const vectors = await engine.embed([...asked.like, ...answers.map(({ text }) => text)], never);
  const good = vectors.slice(0, asked.like.length);
  return answers.map((answer, at) => {
    const vector = vectors[asked.like.length + at];
    const nearness = Math.max(...good.map((one) => one.reduce((sum, value, i) => sum + value * (vector?.[i] ?? 0), 0)));
    const broken: Rule[] = judge(asked, persona, { ...answer, nearness });
    return { ...answer, nearness, broken, asked, persona, half };
  });
}

function show(judged: readonly Judged[]): void {
  for (const { variant, seed, asked, half, text, broken, nearness } of judged) {
    // Answers to the held-out half are never shown, so that nobody tunes for them.
    if (half === "held" || broken.length === 0) continue;
    console.log(
      `${variant} ${seed} ${asked.id} [${broken.join(" ")}] ${nearness.toFixed(2)}\n  ${asked.say}\n  → ${text.replaceAll("\n", " ⏎ ")}`,
    );
  }
}
