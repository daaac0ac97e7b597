/**
 * `npm run bench`: every figure of the documentation beside its goal, each as a ratio against a baseline of the same
 * run, since machines differ and wander. `-- --json` for machines; `-- start messages` runs some of it.
 */
import { cpus } from "node:os";
import { formatRows, type Row } from "./figure.ts";
import { benchMessages } from "./messages.ts";
import { benchModel } from "./model.ts";
import { benchRequests } from "./requests.ts";
import { benchScale } from "./scale.ts";
import { benchStart } from "./start.ts";

const BENCHES: Record<string, () => Promise<Row[]>> = {
  start: benchStart,
  requests: () => benchRequests(),
  messages: () => benchMessages(),
  scale: benchScale,
  model: async () => (await benchModel()).map(({ name, value, unit }) => ({ figure: name, value, unit })),
};

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
