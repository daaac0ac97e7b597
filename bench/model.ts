/**
 * How fast the built-in model answers, as a client of the engine sees it. `bun bench/model.ts [threads]` prints the
 * figures; another script may import `benchModel`.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { ModelRequest } from "../src/models/engine.ts";
import { physicalCores } from "../src/models/local/physical-cores.ts";
import { runModelProcess } from "../src/models/local/process.ts";
import { createLocalEngine, type LocalEngine } from "../src/models/local.ts";
import { LOCAL_MODEL } from "../src/models/local-models.ts";
import { median } from "./figure.ts";

export interface Figure {
  name: string;
  value: number;
  unit: "tokens/s" | "ms" | "MiB";
}

const ROUNDS = 3;
/** First conversations as people have them, four at a time. */
const CHATS = [
  ["Good evening!", "What is your name?", "What should I read on a train?", "Do you like rain?"],
  ["Who are you?", "I had a long day.", "How can I learn to cook?", "What is your favourite book?"],
  ["Tell me about your day.", "I cannot sleep. What helps?", "Which is better, tea or coffee?", "Thank you!"],
];
export const FIRST_WORDS = {
  bare: "first words, four conversations at once, unguarded",
  guarded: "first words, four conversations at once, guarded",
};
const quiet = { info() {}, warn() {} };
const prose = await Bun.file(resolve(import.meta.dir, "../models/smollm2-135m-instruct/LICENSE")).text();

/** Takes about a minute. Each figure is the best of three, since other work on the machine only ever slows it. */
export async function benchModel(threads = physicalCores()): Promise<Figure[]> {
  const cacheDir = await mkdtemp(join(tmpdir(), "roost-bench-"));
  const open = (guarded: boolean): LocalEngine =>
    createLocalEngine({
      cacheDir,
      threads,
      idleMs: 600_000,
      log: quiet,
      guarded,
      seed: 1,
      command: [process.execPath, "--no-env-file", import.meta.path, "model-process"],
    });
  // Without guards: what the machine can do.
  const [engine, guarded] = [open(false), open(true)];
  try {
    return [...(await measure(engine)), ...(await measureFirstWords(engine, guarded))];
  } finally {
    await Promise.all([engine.close(), guarded.close()]);
    await rm(cacheDir, { recursive: true, force: true });
  }
}

/** Four at once, and the same ones with and without guards; medians. */
async function measureFirstWords(engine: LocalEngine, guarded: LocalEngine): Promise<Figure[]> {
  const signal = new AbortController().signal;
  // Both models are loaded before the clock starts.
  await Promise.all([guarded.embed(["load"], signal), answer(guarded, question("load", "Hello!"))]);
  const firstMs: Record<"bare" | "guarded", number[]> = { bare: [], guarded: [] };
  for (const [round, four] of CHATS.entries()) {
    for (const [kind, one] of [
      ["bare", engine],
      ["guarded", guarded],
    ] as const) {
      const answers = await Promise.all(four.map((say, at) => answer(one, question(`chat-${round}-${at}`, say))));
      firstMs[kind].push(...answers.map((run) => run.firstMs));
    }
  }
  return [
    { name: FIRST_WORDS.bare, value: median(firstMs.bare), unit: "ms" },
    { name: FIRST_WORDS.guarded, value: median(firstMs.guarded), unit: "ms" },
  ];
}

function question(salt: string, say: string): ModelRequest {
  const system = "You are a warm, well-read librarian.\n\nYour name is Odile.";
  const asked = request(salt, "", 64, say);
  return {
    ...asked,
    messages: [
      { role: "system", content: system },
      { role: "user", content: say },
    ],
    temperature: 0.2,
  };
}

async function measure(engine: LocalEngine): Promise<Figure[]> {
  const start = await answer(engine, request("Hello", "", 1));
  const figures: Figure[] = [{ name: "process start to first token", value: start.firstMs, unit: "ms" }];

  for (const [tokens, characters] of [
    [512, 2_350],
    [1_500, 6_900],
  ] as const) {
    const runs = await rounds((round) => answer(engine, request(`${tokens}-${round}`, prose.slice(0, characters), 65)));
    const decode = best(runs, (run) => (1_000 * (run.tokens - 1)) / run.restMs, Math.max);
    figures.push({ name: `decode at ${tokens} tokens of context`, value: decode, unit: "tokens/s" });
    const prefill = best(runs, (run) => (1_000 * run.newPromptTokens) / run.firstMs, Math.max);
    figures.push({ name: `prefill of ${tokens} tokens`, value: prefill, unit: "tokens/s" });
  }

  const system = prose.slice(0, 6_400);
  const cold = await rounds((round) => answer(engine, request(`cold-${round}`, system, 1)));
  const warm = await rounds((round) => answer(engine, request("cold-2", system, 1, `Question ${round}?`)));
  figures.push({ name: "first token, 1,390-token prompt, cold", value: best(cold, (run) => run.firstMs), unit: "ms" });
  figures.push({ name: "first token, 1,390-token prompt, warm", value: best(warm, (run) => run.firstMs), unit: "ms" });

  const four = await rounds(async (round) => {
    const startedAt = performance.now();
    const questions = ["sea", "sky", "sun", "moon"].map((what) => request(`${what}-${round}`, "", 64, what));
    const answers = await Promise.all(questions.map((question) => answer(engine, question)));
    return answers.reduce((sum, run) => sum + run.tokens, 0) / (performance.now() - startedAt);
  });
  figures.push({ name: "four conversations at once, in all", value: 1_000 * Math.max(...four), unit: "tokens/s" });

  await engine.embed(["load"], new AbortController().signal);
  const { pid } = engine.stats();
  const status = await Bun.file(`/proc/${pid}/status`)
    .text()
    .catch(() => "");
  const peakKiB = Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0);
  if (peakKiB > 0)
    figures.push({ name: "peak of the model process, both models in use", value: peakKiB / 1_024, unit: "MiB" });
  return figures;
}

/** `salt` comes first in the prompt, so that prompts with different salts share no prefix. */
function request(salt: string, system: string, maxTokens: number, user = "Go on at length."): ModelRequest {
  return {
    model: LOCAL_MODEL,
    messages: [
      { role: "system", content: `${salt}\n${system}` },
      { role: "user", content: user },
    ],
    tools: [],
    maxTokens,
    temperature: 0.7,
    accountId: salt,
    instanceId: salt,
  };
}

async function answer(engine: LocalEngine, request: ModelRequest) {
  const cachedBefore = engine.stats().cachedTokens;
  const startedAt = performance.now();
  let firstAt = 0;
  let usage = { promptTokens: 0, completionTokens: 0 };
  for await (const events of engine.stream(request, new AbortController().signal)) {
    firstAt ||= performance.now();
    for (const event of events) if (event.type === "usage") usage = event;
  }
  return {
    firstMs: firstAt - startedAt,
    restMs: performance.now() - firstAt,
    tokens: usage.completionTokens,
    newPromptTokens: usage.promptTokens - (engine.stats().cachedTokens - cachedBefore),
  };
}

async function rounds<T>(run: (round: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  for (let round = 0; round < ROUNDS; round++) results.push(await run(round));
  return results;
}

const best = <T>(runs: T[], value: (run: T) => number, choose: (...values: number[]) => number = Math.min): number =>
  choose(...runs.map(value));

if (process.argv[2] === "model-process") await runModelProcess();
else if (import.meta.main) {
  const threads = process.argv[2] === undefined ? physicalCores() : Number(process.argv[2]);
  console.log(`local model, ${threads} of ${physicalCores()} cores`);
  for (const { name, value, unit } of await benchModel(threads)) {
    console.log(`${name.padEnd(52)} ${value.toFixed(unit === "tokens/s" ? 1 : 0).padStart(8)} ${unit}`);
  }
}
