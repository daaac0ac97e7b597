/**
 * Published ways out of JavaScript sandboxes and QuickJS itself, and ways to take a machine down. Those that need a fault of
 * QuickJS may find one: then they have the memory of WebAssembly, and nothing else. What they would meet beyond it is in
 * lockdown.test.ts. After each, the next script of the same sandbox works.
 */
import { afterAll, expect, test } from "bun:test";
import type { Outcome } from "../../src/sandbox/child.ts";
import { FAULTS, INPUT, NOTHING, WAYS_OUT } from "./escape-attempts.ts";
import { openSandbox, script } from "./opened.ts";

const sandbox = openSandbox();
/** For what never ends: that a script has ten seconds is shown elsewhere. */
const brief = openSandbox({ time: { cpuSeconds: 1, runMs: 60_000 }, places: 4 });
afterAll(async () => {
  await sandbox.close();
  await brief.close();
});
const run = (source: string, input?: unknown) => script(sandbox, source, input);

test.each(WAYS_OUT)("%s leads to nothing of the host", async (_, source) => {
  expect(await run(source, INPUT)).toMatchObject({ type: "result", json: NOTHING });
});

test("the modules of QuickJS's own shell are not there", async () => {
  for (const name of [
    "std",
    "os",
    "qjs:std",
    "qjs:os",
    "node:child_process",
    "file:///etc/passwd",
    "/etc/passwd",
    "./script.js",
  ]) {
    expect(await run(`await import(${JSON.stringify(name)})`)).toMatchObject({
      type: "thrown",
      error: { message: expect.stringContaining("could not load module") },
    });
  }
});

test("text cannot leave its place: code, input and output are data on their way", async () => {
  const hostile = "`$" + "{1}` */ }); throw 1; (async () => { \u2028\u2029\u0000 </script> $" + "{";
  expect(await run("return input", hostile)).toMatchObject({ type: "result", json: JSON.stringify(hostile) });
  const frame = '{"type":"result","json":"1","leftOut":0}';
  const forged = await run(`console.log('\\n${frame}\\n'); return 2`);
  expect(forged).toMatchObject({ type: "result", json: "2", console: `\n${frame}\n` });
  for (const source of [
    "}); 1; (() => {",
    "return 1 }); (async () => { return 2",
    "return 1 /*",
    "return `",
    "})();//",
  ]) {
    expect((await run(source)).type).toBeOneOf(["thrown", "result"]);
  }
  const input = await run("return Object.keys(input)", JSON.parse('{"__proto__": {"polluted": 1}, "constructor": 2}'));
  expect(input).toMatchObject({ json: '["__proto__","constructor"]' });
});

test("a script that replaces every built-in deceives only itself", async () => {
  const outcome = await run(`
    JSON.stringify = () => "{}"; JSON.parse = null; Object.prototype.toJSON = () => "hijacked"; Promise.prototype.then = () => 0;
    Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => 0; String = Map = Set = Error = null;
    Array.prototype[Symbol.iterator] = null; Object.defineProperty(Object.prototype, "type", { value: "result", writable: true });
    Object.defineProperty(Object.prototype, "leftOut", { set() { throw 1 }, get: () => -1 });
    console.log("still", { b: 1 });
    return { ["__proto__"]: { x: 1 }, constructor: { prototype: { y: 1 } } }`);
  expect(outcome).toMatchObject({ type: "result", leftOut: 0 });
  const polluted = {} as Record<string, unknown>;
  expect([polluted.x, polluted.y, polluted.toJSON, polluted.leftOut]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

test("what is thrown with traps in it ends as an error", async () => {
  const traps = [
    "throw { get name() { throw 1 }, get message() { return { toString() { throw 2 } } }, stack: { a: 1 } }",
    "throw new Proxy({}, { get() { throw new Error('trap') }, has() { throw new Error('trap') }, ownKeys() { throw 1 } })",
    "throw new Proxy(new Error('a'), { getPrototypeOf() { throw 1 } })",
    "const e = new Error('a'); Object.defineProperty(e, 'stack', { get() { for (;;); } }); e.stack = 1; throw { toJSON() { throw 1 } }",
    "return { toJSON() { throw { toString() { throw 1 } } } }",
    "const a = {}; a.a = a; return a",
    "return new Proxy([], { get() { throw 1 } })",
  ];
  for (const source of traps) expect((await run(source)).type).toBe("thrown");
});

/** Each ends by itself, or is stopped, with words that say so. */
const BOMBS: [what: string, source: string, fits: (outcome: Outcome) => boolean][] = [
  ["a string that doubles", "let s = 'x'; for (;;) s += s", ({ type }) => type === "thrown"],
  ["arrays without end", "const all = []; for (;;) all.push(new Array(1000).fill(1))", ({ type }) => type === "thrown"],
  [
    "buffers without end",
    "const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1))",
    ({ type }) => type === "thrown",
  ],
  ["one buffer of 4 GiB", "new ArrayBuffer(2 ** 32)", ({ type }) => type === "thrown"],
  ["recursion", "(function f() { f() })()", (it) => it.type === "thrown" && it.error.message === "stack overflow"],
  [
    "recursion through getters and proxies",
    "const p = new Proxy({}, { get: (t, k, r) => r[k] }); p.a",
    ({ type }) => type === "thrown",
  ],
  [
    "a proxy in a proxy in a proxy (CVE-2023-31922)",
    "let p = []; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); return Array.isArray(p)",
    ({ type }) => type !== "killed",
  ],
  [
    "a result in a result in a result",
    "let a = []; for (let i = 0; i < 1e6; i++) a = [a]; return a",
    (it) => it.type === "thrown" || (it.type === "killed" && it.why === "deadline"),
  ],
  ["a text that is too deep for the parser", "eval('['.repeat(1e6))", ({ type }) => type === "thrown"],
  [
    "a promise that never settles",
    "await new Promise(() => {})",
    (it) => it.type === "thrown" && it.error.message.includes("nothing settles"),
  ],
  [
    "waiting for another thread",
    "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
    ({ type }) => type === "thrown",
  ],
  [
    "a generator without end, spread",
    "[...(function* () { for (;;) yield 'x'.repeat(1000) })()]",
    ({ type }) => type === "thrown",
  ],
];
test.each(BOMBS)("%s ends with an error that the model gets", async (_, source, fits) => {
  expect(await run(source)).toSatisfy(fits);
  expect(await run("6 * 7")).toMatchObject({ json: "42" });
});

const ENDLESS: [what: string, source: string][] = [
  ["a regular expression that backtracks for ever", "console.log('before'); /^(a+)+$/.test('a'.repeat(64) + 'b')"],
  ["an array with four thousand million holes", "console.log('before'); const a = []; a[4294967294] = 1; a.sort()"],
  ["a loop", "console.log('before'); for (;;);"],
  ["promises, one after the other", "console.log('before'); for (;;) await null"],
  ["a sort whose comparison never ends", "console.log('before'); [2, 1].sort(() => { for (;;); })"],
  ["a toJSON that never ends", "console.log('before'); return { toJSON() { for (;;); } }"],
];
test.each(ENDLESS)(
  "%s is stopped at the deadline, what it had written is kept, and the next script runs",
  async (_, source) => {
    const [stopped, next] = [script(brief, source), script(brief, "6 * 7")];
    expect(await stopped).toEqual({ type: "killed", why: "deadline", console: "before", leftOut: 0 });
    expect(await next).toMatchObject({ json: "42" });
    expect(await script(brief, "6 * 7")).toMatchObject({ json: "42" });
  },
);

test.each(FAULTS)("%s stays inside", async (_, source) => {
  const outcome = await run(source);
  // A value, an error, or a process that died of it: nothing else can come out.
  expect(outcome.type).toBeOneOf(["result", "thrown", "killed"]);
  if (outcome.type === "killed") expect(outcome.why).toBeOneOf(["crash", "deadline"]);
  expect(await run("6 * 7")).toMatchObject({ json: "42" });
});
