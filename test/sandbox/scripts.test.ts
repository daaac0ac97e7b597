import { afterAll, expect, test } from "bun:test";
import { LIMITS } from "../../src/sandbox/protocol.ts";
import { never, openSandbox, script } from "./opened.ts";

const sandbox = openSandbox();
afterAll(() => sandbox.close());

const run = (source: string, input?: unknown) => script(sandbox, source, input);
const json = async (source: string, input?: unknown) => {
  const outcome = await run(source, input);
  return outcome.type === "result" ? outcome.json : outcome;
};
const thrown = async (source: string) => {
  const outcome = await run(source);
  return outcome.type === "thrown" ? outcome.error : expect.unreachable();
};
const module = (source: string, input?: unknown) =>
  sandbox.run(
    { kind: "module", source, input: input === undefined ? null : JSON.stringify(input) },
    { instanceId: "inst_a", signal: never },
  );

test("the result is what a script returns, or the value of its last statement", async () => {
  expect(await json("return { sum: input.a + input.b }", { a: 40, b: 2 })).toBe('{"sum":42}');
  expect(await json("const double = (n) => 2 * n;\ndouble(input)", 21)).toBe("42");
  expect(await json("({ a: [1, null, 'ü€😀'] })")).toBe('{"a":[1,null,"ü€😀"]}');
  expect(await json("if (input > 1) { 'many' } else { 'one' }", 3)).toBe('"many"');
});

test("await works in both forms, and a promise is waited for", async () => {
  expect(await json("const n = await Promise.resolve(20); n + 22")).toBe("42");
  expect(await json("return (await Promise.all([1, 2].map(async (n) => n * 21)))[1]")).toBe("42");
  expect(await json("Promise.resolve().then(() => 42)")).toBe("42");
});

test("a result that JSON would lose has a form of its own; one without a form is none", async () => {
  expect(
    await json("({ big: 2n ** 70n, map: new Map([['a', 1]]), set: new Set([1, 2]), error: new RangeError('no') })"),
  ).toBe('{"big":"1180591620717411303424","map":[["a",1]],"set":[1,2],"error":"RangeError: no"}');
  for (const nothing of ["", "let a = 1;", "return", "() => 1", "undefined"]) expect(await json(nothing)).toBeNull();
});

test("without an input, there is none", async () => {
  expect(await json("typeof input")).toBe('"undefined"');
  expect(await json("input", null)).toBe("null");
});

test("the console shows each line in order, whatever is written", async () => {
  const outcome = await run(
    "console.log('n', 1, [2], { a: 3 }); console.error(new TypeError('bad')); console.info(undefined, 5n, () => 1, Symbol('s')); console.warn(); console.debug('two\\nlines'); 1",
  );
  expect(outcome.console.split("\n")).toEqual([
    'n 1 [2] {"a":3}',
    "TypeError: bad",
    "undefined 5 () => 1 Symbol(s)",
    "",
    "two",
    "lines",
  ]);
});

test("an error has its name, its message and every place, with the lines of the author", async () => {
  expect(await thrown("const a = null;\nfunction inner() {\n  return a.b;\n}\ninner()")).toEqual({
    name: "TypeError",
    message: "cannot read property 'b' of null",
    stack: "    at inner (script.js:3:11)\n    at <eval> (script.js:5:6)\n",
  });
  // The same in a script that is the body of a function, also in its first line.
  expect((await thrown("null.b; return 1")).stack).toContain("script.js:1:5");
  expect((await thrown("const a = 1;\nreturn a.b.c")).stack).toContain("script.js:2:11");
});

test("a script that cannot be parsed says where", async () => {
  expect(await thrown("const a = 1;\nconst = 2;")).toMatchObject({
    name: "SyntaxError",
    stack: expect.stringContaining("script.js:2:7"),
  });
  expect(await thrown("const a = 1;\nreturn a +;")).toMatchObject({
    name: "SyntaxError",
    stack: expect.stringContaining("script.js:2:11"),
  });
});

test("whatever is thrown is an error", async () => {
  expect(await thrown("throw 'text'")).toEqual({ name: "", message: "text", stack: "" });
  expect(await thrown("throw { code: 7 }")).toEqual({ name: "", message: '{"code":7}', stack: "" });
  expect(await thrown("await Promise.reject(new Error('later'))")).toMatchObject({ name: "Error", message: "later" });
  expect(await thrown("throw undefined")).toMatchObject({ message: "undefined" });
});

test("what a script lacks is named as missing", async () => {
  for (const name of ["fetch", "require", "process", "Bun", "setTimeout", "WebAssembly", "XMLHttpRequest", "Deno"]) {
    expect(await thrown(`${name}.toString()`)).toMatchObject({
      name: "ReferenceError",
      message: `'${name}' is not defined`,
    });
  }
  expect(await thrown("await import('node:fs')")).toMatchObject({ message: "could not load module 'node:fs'" });
});

test("a module's default export gets the input, and what it returns is the result", async () => {
  const main =
    "const twice = (n) => 2 * n;\nexport default async function main({ n }) {\n  console.log('n is', n);\n  return twice(n);\n}";
  expect(await module(main, { n: 21 })).toEqual({ type: "result", json: "42", console: "n is 21", leftOut: 0 });
  expect(await module("const ready = await Promise.resolve(42);\nexport default () => ready;")).toMatchObject({
    json: "42",
  });
});

test("a module without a function, with an import or with an error says so", async () => {
  expect(await module("export const a = 1;")).toMatchObject({
    type: "thrown",
    error: { message: "the module's default export is not a function" },
  });
  expect(await module("import fs from 'fs';\nexport default () => fs;")).toMatchObject({
    type: "thrown",
    error: { message: "could not load module 'fs'" },
  });
  expect(await module("export default (input) => {\n  return input.a.b;\n}", {})).toMatchObject({
    type: "thrown",
    error: { name: "TypeError", stack: expect.stringContaining("script.js:2:17") },
  });
});

test("a script and its input have a largest size", async () => {
  const large = (job: object) =>
    sandbox.run({ kind: "script", source: "1", input: null, ...job }, { instanceId: "inst_a", signal: never });
  await expect(large({ source: " ".repeat(LIMITS.sourceBytes + 1) })).rejects.toThrow(
    "the code has 262145 bytes, and may have 262144",
  );
  await expect(large({ input: JSON.stringify("a".repeat(LIMITS.inputBytes)) })).rejects.toThrow(
    "bytes of JSON, and may have",
  );
  expect(await json("input.length", "a".repeat(LIMITS.inputBytes - 2))).toBe(String(LIMITS.inputBytes - 2));
});

test("a result has a largest size, and one that fits arrives whole", async () => {
  expect(await thrown(`'x'.repeat(${LIMITS.resultChars})`)).toMatchObject({
    message: expect.stringContaining("return less"),
  });
  const whole = await json(`'"'.repeat(${LIMITS.resultChars / 2 - 1})`);
  expect(whole).toHaveLength(LIMITS.resultChars);
});

test("a console that is full leaves out the rest, and the script still ends", async () => {
  const outcome = await run("for (let n = 0; n < 20_000; n++) console.log('line', n);\n'done'");
  expect(outcome).toMatchObject({ type: "result", json: '"done"' });
  expect(outcome.console.length).toBeLessThanOrEqual(LIMITS.consoleChars);
  expect(outcome.leftOut).toBeGreaterThan(100_000);
  const empty = await run("for (let n = 0; n < 70_000; n++) console.log();\n1");
  expect(empty.console.length).toBeLessThanOrEqual(LIMITS.consoleChars);
});

test("long work with much garbage ends with the right result", async () => {
  expect(await json("let s = 0; for (let i = 0; i < 2e5; i++) { const o = { i, a: [i] }; s += o.a[0] % 7; } s")).toBe(
    "599994",
  );
});

test("a script keeps nothing for the next one", async () => {
  await run("globalThis.kept = 1; Object.prototype.kept = 1; Array.prototype.map = null;");
  expect(await json("[typeof kept, typeof {}.kept, typeof [].map]")).toBe('["undefined","undefined","function"]');
});

test("a script without memory is told so, whatever it filled it with; a null that it throws is its own", async () => {
  for (const greedy of [
    "all.push({ a: [1, 2, 3] })",
    "all.push(new Uint8Array(1 << 20).fill(1))",
    "all.push('x'.repeat(1e6) + all.length)",
  ]) {
    expect(await thrown(`const all = []; for (;;) ${greedy}`)).toMatchObject({ message: "out of memory" });
  }
  expect(await thrown("throw null")).toMatchObject({ message: "null" });
  expect(
    await json("let n = 0; try { const all = []; for (;;) all.push('x'.repeat(1e6) + n++) } catch { n > 50 }"),
  ).toBe("true");
});
