/**
 * `npm run bench`: every figure of the documentation beside its goal, each as a ratio against a baseline of the same
 * run, since machines differ and their speed varies. `-- --json` for machines; `-- start messages` runs some of it.
 */
import { cpus } from "node:os";
import { formatRows, type Row } from "./figure.ts";
import { benchMemory } from "./memory.ts";
import { benchMessages } from "./messages.ts";
import { benchMetering } from "./metering.ts";
import { benchModel, FIRST_WORDS, type Figure } from "./model.ts";
import { benchNeighbours } from "./neighbours.ts";
import { benchOpenAi } from "./openai.ts";
import { benchPrompts } from "./prompts.ts";
import { benchRequests } from "./requests.ts";
import { benchScale } from "./scale.ts";
import { benchScripts } from "./scripts.ts";
import { benchStart } from "./start.ts";
import { benchTools } from "./tools.ts";
import { benchWeb } from "./web.ts";
import { benchYear } from "./year.ts";

const BENCHES: Record<string, () => Promise<Row[]>> = {
  start: benchStart,
  requests: () => benchRequests(),
  messages: () => benchMessages(),
  openai: () => benchOpenAi(),
  prompts: benchPrompts,
  scale: benchScale,
  metering: benchMetering,
  scripts: benchScripts,
  tools: benchTools,
  memory: benchMemory,
  neighbours: () => benchNeighbours(),
  web: benchWeb,
  year: () => benchYear(),
  model: async () => modelRows(await benchModel()),
};

/** The model's figures, each with the one of the same run that it is compared with. */
function modelRows(figures: Figure[]): Row[] {
  const figureOf = (name: string) => figures.find((figure) => figure.name === name)?.value ?? Number.NaN;
  const cold = "first token, 1,390-token prompt, cold";
  const one = "decode at 512 tokens of context";
  return figures.map(({ name, value, unit }) => {
    const row: Row = { figure: name, value, unit };
    if (name === "first token, 1,390-token prompt, warm") {
      return {
        ...row,
        baseline: { what: "cold", value: figureOf(cold) },
        goal: "≤ 0.1 × cold",
        met: value <= 0.1 * figureOf(cold),
      };
    }
    if (name === "four conversations at once, in all") {
      return { ...row, baseline: { what: "one conversation", value: figureOf(one) } };
    }
    if (name === FIRST_WORDS.guarded) {
      const bare = figureOf(FIRST_WORDS.bare);
      return { ...row, baseline: { what: "unguarded", value: bare }, goal: "≤ 3 × unguarded", met: value <= 3 * bare };
    }
    if (name === "process start to first token") return { ...row, goal: "≤ 600 ms", met: value <= 600 };
    if (name.startsWith("peak of the model process")) return { ...row, goal: "≤ 400 MiB", met: value <= 400 };
    return row;
  });
}

const wanted = process.argv.slice(2).filter((word) => !word.startsWith("-"));
const asJson = process.argv.includes("--json");
const unknown = wanted.find((name) => !(name in BENCHES));
if (unknown) {
  console.error(`there is no bench "${unknown}"; there are: ${Object.keys(BENCHES).join(", ")}`);
  process.exit(2);
}

const rows: Row[] = [];
for (const [name, bench] of Object.entries(BENCHES)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  if (!asJson) console.error(`… ${name}`);
  rows.push(...(await bench()));
}
if (asJson) console.log(JSON.stringify(rows, null, 2));
else
  console.log(
    `\n${formatRows(rows)}\n\n${cpus().length} × ${cpus()[0]?.model ?? "unknown processor"}, ${process.platform} ${process.arch}`,
  );
process.exit(0);
