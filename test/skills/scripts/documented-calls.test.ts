import { expect, test } from "bun:test";
import { builtIn } from "../service.ts";
import { loadScript } from "./load-script.ts";

const WITH_SCRIPTS = ["calculator", "data-analysis", "dates", "rss-digest", "text-tools"];
const SALES = "city,product,price\nOslo,Tea,3.10\nOslo,Coffee,4.20\nRome,Tea,2.05\n";
/** What stands in the files that the instructions name. */
const FILES: Record<string, string> = {
  "data/sales.csv": SALES,
  "drafts/old.md": "One.\n",
  "drafts/new.md": "Two.\n",
  "drafts/letter.md": "Dear Ada.\n",
  "speech.md": "word ".repeat(912),
  "the file that was named.xml": "<rss><channel><title>News</title></channel></rss>",
};

interface Call {
  code: string;
  input: Record<string, unknown>;
}

async function run({ code, input }: Call): Promise<unknown> {
  const script = await loadScript(code.replace(/^skill:/, ""));
  const filled = Object.entries(input).map(([key, value]) => {
    const name = (value as { $file?: string } | null)?.$file;
    if (name !== undefined && FILES[name] === undefined) throw new Error(`there is no file ${name}`);
    return [key, name === undefined ? value : FILES[name]];
  });
  return script(Object.fromEntries(filled));
}

/** Calls in code blocks and between backquotes, each with what stands behind it. */
const callsOf = (skill: string): { call: Call; behind: string }[] => {
  const { instructions } = builtIn(skill);
  const shown = instructions.matchAll(/^ *```json\n([\s\S]*?)^ *```$|`(\{ "code": .+?\})`/gm);
  return Array.from(shown, ({ 0: whole, 1: block, 2: inline, index }) => ({
    call: JSON.parse(block ?? inline ?? "") as Call,
    behind: instructions.slice(index + whole.length).trimStart(),
  })).filter(({ call }) => call.code !== undefined);
};

test.each(WITH_SCRIPTS)("every call that %s shows can be made", async (skill) => {
  const calls = callsOf(skill);
  expect(calls).not.toBeEmpty();
  for (const { call } of calls) expect(await run(call)).toBeObject();
});

test("the results that are shown are those of the calls before them", async () => {
  const compared: string[] = [];
  // The one of data analysis is of a table that only its reader has.
  for (const { call, behind } of WITH_SCRIPTS.filter((skill) => skill !== "data-analysis").flatMap(callsOf)) {
    const [, shown] = /^Result: `(\{.+\})`/.exec(behind) ?? [];
    if (shown === undefined) continue;
    const isWhole = !shown.includes("…");
    const told = JSON.parse(isWhole ? shown : shown.replace(/, (\{ )?…(?= ?[\]}])/g, ""));
    if (isWhole) expect(await run(call)).toEqual(told);
    else expect(await run(call)).toMatchObject(told);
    compared.push(call.code);
  }
  expect(compared).toEqual(["skill:calculator/calculate.js", "skill:dates/dates.js", "skill:text-tools/statistics.js"]);
});

test("every input that the skill for dates lists is taken", async () => {
  const sections = builtIn("dates")
    .instructions.split(/^## Inputs of `(skill:[^`]+)`$/m)
    .slice(1);
  let inputs = 0;
  for (let at = 0; at < sections.length; at += 2) {
    const table = sections[at + 1]?.split(/^## /m)[0] ?? "";
    for (const [, input = ""] of table.matchAll(/^\| .+? \| `(\{.+?\})`/gm)) {
      expect(await run({ code: sections[at] ?? "", input: JSON.parse(input) })).toBeObject();
      inputs++;
    }
  }
  expect(inputs).toBe(9);
});

test("every expression and unit that the calculator names is taken", async () => {
  const { instructions } = builtIn("calculator");
  const [, table = ""] = /## What an expression may contain\n([\s\S]*?)\n## Units/.exec(instructions) ?? [];
  const [, functions = ""] = /\| functions \| `(.+?)` \|/.exec(table) ?? [];
  const two = new Set(["mod", "gcd", "lcm"]);
  for (const name of functions.split(" ")) {
    const expression = `${name}(${two.has(name) ? "6, 4" : "1"})`;
    expect(await run({ code: "skill:calculator/calculate.js", input: { expression } })).toBeObject();
  }
  const expressions = ["15% of 80", "80 * 120%", "80 * 80%", "round(2.345, 2)", "average(1, 2, 4)", "1234.5", "1e6"];
  for (const expression of [...expressions, "10000 * (1 + 3.5%)^10"]) {
    expect(instructions).toContain(`\`${expression}\``);
    expect(await run({ code: "skill:calculator/calculate.js", input: { expression } })).toBeObject();
  }
  const units = instructions.split("## Units")[1]?.split("## Example")[0] ?? "";
  const names = Array.from(units.matchAll(/`([^`{]+)`/g), ([, name]) => name);
  expect(names.length).toBeGreaterThan(10);
  for (const from of names) {
    expect(await run({ code: "skill:calculator/convert.js", input: { value: "300", from, to: from } })).toBeObject();
  }
});

test("the questions of data analysis are taken together, and give what its example shows", async () => {
  const { instructions } = builtIn("data-analysis");
  const code = "skill:data-analysis/table.js";
  const forms = Array.from(instructions.matchAll(/^\| `(where|groupBy|aggregate|select|sort)` \| `(.+?)`/gm));
  expect(forms).toHaveLength(5);
  const input = Object.fromEntries(forms.map(([, key = "", form = ""]) => [key, JSON.parse(form)]));
  expect(await run({ code, input: { text: SALES, ...input } })).toMatchObject({
    rows: [{ city: "Oslo", "sum of price": "7.3" }],
  });
  const [, operators = ""] = /`is`: (.+?); all must hold/.exec(instructions) ?? [];
  for (const [, is] of operators.matchAll(/`(.+?)`/g)) {
    expect(await run({ code, input: { text: SALES, where: [{ column: "city", is, value: "Oslo" }] } })).toBeObject();
  }
  const [, functions = ""] = /`fn`: (.+?) \|$/m.exec(instructions) ?? [];
  for (const [, fn] of functions.matchAll(/`(.+?)`/g)) {
    expect(await run({ code, input: { text: SALES, aggregate: [{ fn, column: "price" }] } })).toBeObject();
  }
  const [example] = callsOf("data-analysis").slice(-1);
  expect(await run(example?.call ?? { code, input: {} })).toEqual({
    total: 2,
    shown: 2,
    notes: [],
    rows: [
      { product: "Coffee", "sum of price": "4.2" },
      { product: "Tea", "sum of price": "3.1" },
    ],
  });
});
