/** The table of `docs/eval.md`. */
import { VARIANTS, type Variant } from "./answers.ts";
import type { Half } from "./cases.ts";
import { type Judged, RULES } from "./rules.ts";

export function writeReport(judged: readonly Judged[], seeds: number): string {
  const held = judged.filter(({ half }) => half === "held");
  const tuning = judged.filter(({ half }) => half === "tuning");
  return `${[
    "# What the built-in model answers",
    "Written by `npm run eval`. Each answer is judged by rules that a program checks (`eval/rules.ts`): no echo, no leak of " +
      "the prompt, no loop, not on as the user, what it must say (its name), the persona's words, the length and the language " +
      "that were asked for, a whole sentence at its end, and on topic: the cosine (MiniLM) with a reference answer. Good is an " +
      "answer that breaks none. *Roost* is the product's prompt and guards, *plain* the same model and sampling with the " +
      "`SOUL.md` alone as system prompt and the whole conversation.",
    `${whatRan(judged, seeds)} The prompt, the guards and the sampling were tuned on one half of the cases; the other was ` +
      "held back. Which is which is decided by the case's id.",
    "What a program does not see: whether German or Spanish is more than words of that language in a row (it often is not: " +
      "the model was made for English), and whether what is said is true. The plain model is not told its name, so it cannot " +
      "say it; and it stops where its tokens end, which breaks most of its lengths and whole sentences.",
    ...(held.length > 0 ? ["## The held half", table(held, ({ asked }) => asked.kind)] : []),
    ...(held.length > 0 ? ["### By persona", table(held, ({ persona }) => persona.name)] : []),
    ...(tuning.length > 0 ? ["## The tuning half", table(tuning, ({ asked }) => asked.kind)] : []),
    "## Which rules are broken",
    ruleTable(judged),
    "## Until the first words",
    timeTable(judged),
  ].join("\n\n")}\n`;
}

function whatRan(judged: readonly Judged[], seeds: number): string {
  const halves = (["held", "tuning"] as const).filter((half) => judged.some((one) => one.half === half));
  const cases = new Set(judged.map(({ id }) => id)).size;
  return (
    `This run: the ${halves.join(" and the ")} half, ${cases} cases, ${seeds} seeds for each, in all ` +
    `${of(judged, "roost").length} answers of Roost and ${of(judged, "plain").length} of the plain model.`
  );
}

const percent = (part: readonly Judged[]): string =>
  part.length === 0
    ? "–"
    : `${Math.round((100 * part.filter(({ broken }) => broken.length === 0).length) / part.length)} %`;

const of = (judged: readonly Judged[], variant: Variant) => judged.filter((one) => one.variant === variant);

function table(judged: readonly Judged[], groupOf: (one: Judged) => string): string {
  const groups = Object.entries(Object.groupBy(judged, groupOf)).sort(([a], [b]) => a.localeCompare(b));
  const rows = groups.map(([name, group = []]) => row(name, group));
  return ["| | cases | Roost | plain |", "|---|---:|---:|---:|", ...rows, row("**all**", judged)].join("\n");
}

const row = (name: string, group: readonly Judged[]): string =>
  `| ${name} | ${new Set(group.map(({ id }) => id)).size} | ${percent(of(group, "roost"))} | ${percent(of(group, "plain"))} |`;

function ruleTable(judged: readonly Judged[]): string {
  const share = (half: Half, variant: Variant, rule: Judged["broken"][number]) => {
    const part = of(judged, variant).filter((one) => one.half === half);
    if (part.length === 0) return "–";
    return `${((100 * part.filter(({ broken }) => broken.includes(rule)).length) / part.length).toFixed(1)} %`;
  };
  return [
    "| | held: Roost | held: plain | tuning: Roost | tuning: plain |",
    "|---|---:|---:|---:|---:|",
    ...RULES.map((rule) => {
      const cells = (["held", "tuning"] as const).flatMap((half) =>
        VARIANTS.map((variant) => share(half, variant, rule)),
      );
      return `| ${rule} | ${cells.join(" | ")} |`;
    }),
  ].join("\n");
}

function timeTable(judged: readonly Judged[]): string {
  const median = (variant: Variant, value: (one: Judged) => number) => {
    const values = of(judged, variant)
      .map(value)
      .sort((a, b) => a - b);
    return values[Math.floor(values.length / 2)] ?? 0;
  };
  const line = (what: string, value: (one: Judged) => number, unit: string) => {
    const [roost, plain] = [median("roost", value), median("plain", value)];
    return `| ${what} | ${roost} ${unit} | ${plain} ${unit} | ${plain > 0 ? (roost / plain).toFixed(1) : "–"} × |`;
  };
  return [
    "Four conversations at once, medians: what the guards hold back, and write anew, is waited for.",
    [
      "| | Roost | plain | ratio |",
      "|---|---:|---:|---:|",
      line("first words", ({ firstMs }) => firstMs, "ms"),
      line("tokens of an answer", ({ tokens }) => tokens, ""),
    ].join("\n"),
  ].join("\n\n");
}
