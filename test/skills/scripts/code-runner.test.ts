import { expect, test } from "bun:test";
import { UntrustedError } from "../../../src/lib/untrusted.ts";
import { type CodeJob, createCodeRunner } from "../../../src/skills/scripts.ts";

const SKILL = new Map([
  ["SKILL.md", ""],
  ["scripts/add.js", "export default ({ a, b }) => a + b;"],
  ["scripts/inner/deep.js", "export default () => 1;"],
  ["references/notes.js", "export default () => 2;"],
]);
const FILES: Record<string, { text: string; isTainted: boolean }> = {
  "sales.csv": { text: "a,b\n1,2", isTainted: false },
  "page.html": { text: "<p>", isTainted: true },
  "large.txt": { text: "x".repeat(1_500_000), isTainted: false },
};
const CONTEXT = { instanceId: "inst_1", agentId: "agt_1" };

function openRunner(ran: () => Promise<string> = async () => "done") {
  const jobs: CodeJob[] = [];
  const runner = createCodeRunner({
    skills: {
      read(instanceId, name) {
        if (instanceId !== "inst_1" || name !== "sums") throw new Error("skill not found");
        return { instructions: "", files: SKILL };
      },
    },
    async readFile(context, name) {
      const file = context === CONTEXT ? FILES[name] : undefined;
      if (!file) throw new Error(`there is no file ${name}`);
      return file;
    },
    async run(job, context) {
      expect(context).toBe(CONTEXT);
      jobs.push(job);
      return await ran();
    },
  });
  return { jobs, run: (code: string, input?: unknown) => runner({ code, input }, CONTEXT) };
}

test("code of an agent is run as it is written", async () => {
  const { run, jobs } = openRunner();
  for (const code of ["1 + 1", "// skill:sums/add.js\n2", '"skill:sums/add.js"']) await run(code, { a: 1 });
  expect(jobs.map(({ kind, source }) => [kind, source])).toEqual([
    ["script", "1 + 1"],
    ["script", "// skill:sums/add.js\n2"],
    ["script", '"skill:sums/add.js"'],
  ]);
  expect(jobs[0]?.input).toBe('{"a":1}');
  expect(await run("3")).toEqual({ result: "done", isTainted: false });
  expect(jobs.at(-1)).toEqual({ kind: "script", source: "3", input: null });
});

test("a script of a skill is run in place of code, named with its folder or without", async () => {
  const { run, jobs } = openRunner();
  const names = ["skill:sums/add.js", " skill:sums/scripts/add.js\n", "skill: sums/add.js"];
  for (const code of names) await run(code, { a: 1, b: 2 });
  const job: CodeJob = { kind: "module", source: "export default ({ a, b }) => a + b;", input: '{"a":1,"b":2}' };
  expect(jobs).toEqual([job, job, job]);
});

test("a script that is not there is refused with those that are", async () => {
  const { run, jobs } = openRunner();
  await expect(run("skill:sums/sub.js")).rejects.toThrow('the skill sums has no script "sub.js"; it has: add.js');
  await expect(run("skill:sums/notes.js")).rejects.toThrow("it has: add.js");
  await expect(run("skill:other/add.js")).rejects.toThrow("skill not found");
  expect(jobs).toEqual([]);
});

test("what begins as the name of a script is never code, and no file of a skill but its scripts can be run", async () => {
  const { run, jobs } = openRunner();
  for (const script of ["../references/notes.js", "inner/deep.js", "add.mjs", "SKILL.md", "add.js\nadd.js"]) {
    await expect(run(`skill:sums/${script}`)).rejects.toThrow(
      `the skill sums has no script "${script}"; it has: add.js`,
    );
  }
  const expected = "code: expected a skill's script as skill:NAME/SCRIPT.js, or JavaScript";
  for (const code of ["skill:../sums/add.js", "skill:sums", "skill:sums/", " skill: ", "skill:Sums/add.js"]) {
    await expect(run(code)).rejects.toThrow(expected);
  }
  const long = "x".repeat(500);
  await expect(run(`skill:sums/${long}`)).rejects.toThrow(`no script "${"x".repeat(100)}";`);
  expect(jobs).toEqual([]);
});

test("a file that the input names takes its place, and its taint goes to the result", async () => {
  const { run, jobs } = openRunner();
  expect(await run("skill:sums/add.js", { text: { $file: "sales.csv" }, n: 1 })).toEqual({
    result: "done",
    isTainted: false,
  });
  expect(JSON.parse(jobs[0]?.input ?? "")).toEqual({ text: "a,b\n1,2", n: 1 });
  expect(await run("1", { a: { $file: "sales.csv" }, b: { $file: "page.html" } })).toEqual({
    result: "done",
    isTainted: true,
  });
});

test("what a script says as it fails is a stranger's once a tainted file may have a part in it", async () => {
  const { run } = openRunner(() => Promise.reject(new Error("obey")));
  await expect(run("1", { a: { $file: "sales.csv" } })).rejects.not.toBeInstanceOf(UntrustedError);
  const failed = run("1", { a: { $file: "page.html" } });
  await expect(failed).rejects.toBeInstanceOf(UntrustedError);
  await expect(failed).rejects.toThrow("obey");
});

test("only a value that names a file and nothing else is one", async () => {
  const { run, jobs } = openRunner();
  const inputs = [
    { a: { $file: "sales.csv", b: 1 } },
    { a: { b: { $file: "sales.csv" } } },
    { a: { $file: 1 } },
    [{ $file: "sales.csv" }],
    "$file",
  ];
  for (const input of inputs) await run("1", input);
  expect(jobs.map(({ input }) => JSON.parse(input ?? ""))).toEqual(inputs);
});

test("a file that cannot be read, too many of them and too much text are refused before anything is run", async () => {
  const { run, jobs } = openRunner();
  await expect(run("1", { a: { $file: "none.csv" } })).rejects.toThrow("there is no file none.csv");
  const many = Object.fromEntries(Array.from({ length: 9 }, (_, at) => [`f${at}`, { $file: "sales.csv" }]));
  await expect(run("1", many)).rejects.toThrow("input: expected at most 8 files");
  const large = { a: { $file: "large.txt" }, b: { $file: "large.txt" } };
  await expect(run("1", large)).rejects.toThrow("input: expected files of at most 2000000 characters");
  expect(jobs).toEqual([]);
});
