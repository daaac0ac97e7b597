/** Published ways out of JavaScript sandboxes, and published faults of QuickJS, as scripts. */

/** What a host of scripts would have, and a script must not find by any way. */
const HOST = "typeof process + typeof Bun + typeof require + typeof fetch + typeof Deno + typeof WebAssembly";
export const NOTHING = JSON.stringify("undefined".repeat(6));

/** What each of them is given. */
export const INPUT = { a: 1, list: [1] };
/** Each evaluates to NOTHING. */
export const WAYS_OUT: [what: string, source: string][] = [
  ["the constructor of the global object", `this.constructor.constructor("return ${HOST}")()`],
  ["the constructor of the console's functions", `console.log.constructor("return ${HOST}")()`],
  ["an asynchronous function's constructor", `await (async () => {}).constructor("return ${HOST}")()`],
  ["a generator's constructor", `[...(function* () {}).constructor("yield ${HOST}")()][0]`],
  [
    "an error's constructor",
    `let e; try { null.x } catch (error) { e = error } e.constructor.constructor("return ${HOST}")()`,
  ],
  [
    "an error of the console, thrown by a getter of what it shows",
    `let e; try { console.log({ get a() { throw new Error() } }); null.x } catch (error) { e = error } e.constructor.constructor("return ${HOST}")()`,
  ],
  ["an indirect eval", `(0, eval)(${JSON.stringify(HOST)})`],
  ["the input's constructor", `input.constructor.constructor("return ${HOST}")()`],
  [
    "a stack trace of one's own",
    `Error.prepareStackTrace = (_, frames) => frames; const { stack } = new Error(); typeof stack?.[0]?.getThis === "function" ? stack[0].getThis() : ${HOST}`,
  ],
  ["a proxy that is constructed", `new (new Proxy(class {}, { construct: () => Function("return ${HOST}") }))()()`],
  ["Reflect on a function of the host", `Reflect.apply(console.log.constructor, console.log, ["return ${HOST}"])()`],
  [
    "an asynchronous generator's constructor",
    `(await (async function* () {}).constructor("yield ${HOST}")().next()).value`,
  ],
  [
    "the accessor of a function's prototype (patriksimek/vm2 184)",
    `Object.getOwnPropertyDescriptor(console.log.__lookupGetter__("__proto__").call(console.log), "constructor").value("return ${HOST}")()`,
  ],
  [
    "the species of a promise that fails (CVE-2023-37466)",
    `let out; class Taken { constructor(run) { run(() => {}, (error) => { out = error.constructor.constructor("return ${HOST}")() }) } static get [Symbol.species]() { return Taken } }
     const failing = (async () => null.x)(); failing.constructor = Taken; failing.then(); await null; await null; await null; out`,
  ],
  [
    "the species of an array that the host made (patriksimek/vm2 562)",
    `input.list.constructor = { [Symbol.species]: function () { return input } }; input.list.map((one) => one); input.constructor.constructor("return ${HOST}")()`,
  ],
  [
    "an object's own way to be inspected (CVE-2023-37903)",
    `let out; console.log({ [Symbol.for("nodejs.util.inspect.custom")]: (depth, options, inspect) => { out = inspect.constructor("return ${HOST}")() } }); out ?? ${HOST}`,
  ],
  [
    "an error whose name is a symbol, made to a text",
    `let out; const error = new Error(); error.name = Symbol(); try { error.stack; String(error) } catch (thrown) { out = thrown.constructor.constructor("return ${HOST}")() } out`,
  ],
  [
    "the errors of an error",
    `let out; try { await Promise.any([(async () => null.x)()]) } catch ({ errors }) { out = errors[0].constructor.constructor("return ${HOST}")() } out`,
  ],
  [
    "an expression of a workflow (CVE-2025-68613)",
    `(function () { return this?.process?.mainModule?.require("child_process") ?? this.constructor.constructor("return ${HOST}")() })()`,
  ],
  [
    "a getter on the prototype of every object (CVE-2025-34146)",
    `"".sub.__proto__.__proto__.__defineGetter__("polluted", {}.constructor.constructor("return ${HOST}")); ({}).polluted`,
  ],
  [
    "a scope that has every name",
    `const names = new Proxy({}, { has: (_, name) => name !== "names", get: (_, name) => (name === Symbol.unscopables ? undefined : globalThis[name]) }); new Function("names", "with (names) return ${HOST}")(names)`,
  ],
];

/** Published faults of QuickJS: memory that is used after it was freed, or beyond its end. */
export const FAULTS: [what: string, source: string][] = [
  [
    "a typed array that is made of one which shrinks meanwhile (quickjs-ng/quickjs 1305)",
    "const ab = new ArrayBuffer(4096, { maxByteLength: 4096 }); const from = new Float64Array(ab); const evil = function () {}.bind(); Object.defineProperty(evil, 'prototype', { get() { ab.resize(8); return Uint8Array.prototype } }); try { Reflect.construct(Uint8Array, [from], evil).length } catch (e) { e.name }",
  ],
  [
    "an object that changes while the console shows it",
    "const a = Array.from({ length: 1000 }, (_, i) => ({ get x() { a.length = 0; return i } })); console.log(a); const m = new Map([[1, { get y() { m.clear(); return 1 } }], [2, 2]]); console.log(m, [...m]); 1",
  ],
  [
    "numbers with more digits than a counter holds",
    "try { BigInt('0x' + 'f'.repeat(1 << 22)) } catch {} try { BigInt('9'.repeat(1 << 16)) ** 99n } catch {} try { (2n ** 20000n).toString(3).length } catch {} try { Number('1'.repeat(1 << 20) + 'e-1048576') } catch {} 1",
  ],
  [
    "a typed array whose buffer is resized by its constructor's prototype (bellard/quickjs 478)",
    "const ab = new ArrayBuffer(64, { maxByteLength: 64 }); const evil = function () {}.bind(); Object.defineProperty(evil, 'prototype', { get() { ab.resize(0); return Uint8Array.prototype } }); const u = Reflect.construct(Uint8Array, [ab], evil); let s = 0; for (let i = 0; i < 1e6; i++) s += u[i] ?? 0; s",
  ],
  [
    "a sort that shrinks what it sorts (bellard/quickjs 477)",
    "const ab = new ArrayBuffer(256, { maxByteLength: 2560 }); const u = new Uint8Array(ab); for (let i = 0; i < 256; i++) u[i] = i; u[255] = 0; let n = 0; u.sort((a, b) => { if (++n === 1734 || n === 500) ab.resize(10); return a - b }); u.length",
  ],
  [
    "an atomic operation whose operand moves the buffer (bellard/quickjs 508)",
    "const ab = new ArrayBuffer(64, { maxByteLength: 1 << 20 }); const t = new Int32Array(ab); Atomics.add(t, 0, { valueOf() { ab.resize(1 << 20); return 1 } }); Atomics.store(t, 15, { valueOf() { ab.resize(0); return 7 } }); 1",
  ],
  [
    "TypedArray.with whose value shrinks the buffer (bellard/quickjs 492)",
    "const ab = new ArrayBuffer(4096, { maxByteLength: 4096 }); const t = new Int32Array(ab); try { t.with(0, { valueOf() { ab.resize(4); return 1 } }).length } catch (e) { e.name }",
  ],
  [
    "an array that changes while it is concatenated, sliced, spliced and sorted",
    "const a = Array.from({ length: 1000 }, (_, i) => i); Object.defineProperty(a, 5, { get() { a.length = 0; return 1 } }); [].concat(a, a).length + a.slice(0, 900).length; const b = [3, 2, 1, ...Array(500).fill(9)]; b.sort((x, y) => { b.length = 0; return x - y }); b.splice(0, { valueOf() { b.length = 0; return 3 } }); 1",
  ],
  [
    "a view whose buffer goes away under it",
    "const ab = new ArrayBuffer(1 << 16, { maxByteLength: 1 << 16 }); const v = new DataView(ab); try { v.setFloat64(1000, { valueOf() { ab.resize(0); return 1.5 } }) } catch {} try { new Uint8Array(ab).fill({ valueOf() { ab.resize(1 << 10); return 1 } }) } catch {} try { new Uint8Array(ab).set({ length: 1000, get 0() { ab.resize(0); return 1 } }) } catch {} 1",
  ],
  [
    "a finalizer and a weak reference while everything is freed",
    "const r = new FinalizationRegistry(() => { globalThis.x = [] }); for (let i = 0; i < 1e4; i++) { const o = { i }; r.register(o, i); globalThis.w = new WeakRef(o) } 1",
  ],
  [
    "an iterator that is closed while it is used",
    "function* g() { try { for (;;) yield 1 } finally { it.return() } } const it = g(); try { for (const x of it) it.return() } catch {} async function* h() { yield* h } try { await h().next() } catch {} 1",
  ],
  [
    "a regular expression that changes itself while it matches",
    "const re = /a/gy; re.exec = null; try { 'aaa'.replace({ __proto__: re, get flags() { re.compile('b'.repeat(1e4)); return 'g' } }, () => re.compile('(')) } catch {} try { re[Symbol.replace]('a', { toString() { re.compile('x'); return '$1' } }) } catch {} try { new RegExp('(?:'.repeat(5e4)) } catch {} try { new RegExp('(a{0,65535}){0,65535}'.repeat(20)).test('a'.repeat(50)) } catch {} 1",
  ],
];
