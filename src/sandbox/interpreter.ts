/**
 * QuickJS in WebAssembly, with a memory that cannot grow past its maximum. Only text crosses the border: a script has its
 * input, `console` and what the language itself offers; no timers, no modules, nothing of the process around it.
 */

import variant from "@jitl/quickjs-wasmfile-release-sync";
import wasmFile from "@jitl/quickjs-wasmfile-release-sync/wasm" with { type: "file" };
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSWASMModule,
} from "quickjs-emscripten-core";
import { messageOf } from "../lib/message-of.ts";
import { type Job, LIMITS, MIB_BYTES, SOURCE_NAME, type Thrown } from "./protocol.ts";

export type Ending = { type: "result"; json: string | null } | { type: "thrown"; error: Thrown };

const PAGE_BYTES = 64 * 1024;
const FIRST_PAGES = 256;
/** Below the maximum, so that a script meets an error that it can catch before the module has no memory left at all. */
const HEADROOM_BYTES = 8 * MIB_BYTES;
const STACK_BYTES = 256 * 1024;
/** Top-level `await`; the value of the last statement is the promise's `value`. Not among the library's own flags. */
const EVALUATE_ASYNC = 1 << 7;

/**
 * Runs before the script, which cannot reach the functions that are taken here. The result has one form of JSON for what
 * JSON would lose: maps and sets as arrays, large integers as text, errors as their message.
 */
const PRELUDE = `((write) => {
  "use strict";
  const { parse, stringify } = JSON;
  const { Map, Set, Error, String, Array } = globalThis;
  const text = (value) => { try { return String(value); } catch { return "[unprintable]"; } };
  const replace = (key, value) => {
    if (typeof value === "bigint") return text(value);
    if (value instanceof Map || value instanceof Set) return [...value];
    if (value instanceof Error) return text(value);
    return value;
  };
  const encode = (value) => stringify(value, replace);
  const show = (value) => {
    if (typeof value !== "object" || value === null || value instanceof Error) return text(value);
    try { return encode(value) ?? text(value); } catch { return text(value); }
  };
  const line = (...values) => {
    let all = "";
    for (let at = 0; at < values.length; at++) all += (at > 0 ? " " : "") + show(values[at]);
    write(all);
  };
  const read = (thrown, key) => { try { const value = thrown[key]; return value === undefined ? "" : text(value); } catch { return ""; } };
  const describe = (thrown) => {
    const isError = typeof thrown === "object" && thrown !== null && (thrown instanceof Error || "message" in thrown);
    return isError
      ? stringify({ name: read(thrown, "name"), message: read(thrown, "message"), stack: read(thrown, "stack") })
      : stringify({ name: "", message: show(thrown), stack: "" });
  };
  globalThis.console = { log: line, info: line, warn: line, error: line, debug: line };
  const setInput = (json) => { globalThis.input = json === undefined ? undefined : parse(json); };
  return { encode, describe, setInput };
})`;

const WRAPPER = "(async () => {";
const NOT_IN_A_FUNCTION = "return not in a function";

export interface Interpreter {
  /** Runs one job, and is used up. `write` gets each line of the console. Never throws. */
  run(job: Job, write: (line: string) => void): Ending;
}

export async function createInterpreter(): Promise<Interpreter> {
  const wasmModule = new WebAssembly.Module(await Bun.file(wasmFile).arrayBuffer());
  const wasmMemory = new WebAssembly.Memory({ initial: FIRST_PAGES, maximum: LIMITS.scriptBytes / PAGE_BYTES });
  const quickJs = await newQuickJSWASMModuleFromVariant(newVariant(variant, { wasmModule, wasmMemory }));
  const guest = createGuest(quickJs, wasmMemory);
  return {
    run(job, write) {
      try {
        return runJob(guest, job, write);
      } catch (error) {
        // The module itself has failed, for lack of memory or by a fault of QuickJS. Nothing in it can be used any more.
        const message = messageOf(error);
        return thrown({ name: "InternalError", message: `the interpreter failed: ${message}`, stack: "" });
      }
    },
  };
}

const thrown = (error: Thrown): Ending => ({ type: "thrown", error });

interface Guest {
  vm: QuickJSContext;
  /** Functions inside. */
  encode: QuickJSHandle;
  describe: QuickJSHandle;
  setInput: QuickJSHandle;
  setWrite(write: (line: string) => void): void;
  /** Whether most of the memory is in use. */
  isFull(): boolean;
}

/** A runtime with everything that a script finds there, but its input. */
function createGuest(quickJs: QuickJSWASMModule, memory: WebAssembly.Memory): Guest {
  const runtime = quickJs.newRuntime();
  runtime.setMemoryLimit(LIMITS.scriptBytes - HEADROOM_BYTES);
  runtime.setMaxStackSize(STACK_BYTES);
  const vm = runtime.newContext();
  let write: (line: string) => void = () => {};
  const writer = vm.newFunction("write", (line) => write(vm.getString(line)));
  const prepare = vm.unwrapResult(vm.evalCode(PRELUDE, "prelude.js"));
  const prepared = vm.unwrapResult(vm.callFunction(prepare, vm.undefined, writer));
  const get = (name: string) => vm.getProp(prepared, name);
  return {
    vm,
    encode: get("encode"),
    describe: get("describe"),
    setInput: get("setInput"),
    isFull: () => memory.buffer.byteLength > LIMITS.scriptBytes * 0.75,
    setWrite(given) {
      write = given;
    },
  };
}

function runJob(guest: Guest, job: Job, write: (line: string) => void): Ending {
  const { vm, encode, describe, setInput } = guest;
  guest.setWrite(write);
  const input = job.input === null ? vm.undefined : vm.newString(job.input);
  vm.unwrapResult(vm.callFunction(setInput, vm.undefined, input));
  const evaluation = job.kind === "module" ? evaluateModule(vm, job.source) : evaluateScript(vm, job.source);
  if ("error" in evaluation) return failure(evaluation.error);
  const settled = settle(evaluation.promise);
  if (settled === null) return never();
  if ("error" in settled) return failure(settled.error);
  if (job.kind === "script") return ended(evaluation.unwrap(settled.value));

  const main = vm.getProp(settled.value, "default");
  if (vm.typeof(main) !== "function") {
    return thrown({ name: "TypeError", message: "the module's default export is not a function", stack: "" });
  }
  const called = vm.callFunction(main, vm.undefined, vm.getProp(vm.global, "input"));
  return called.error ? failure(called.error) : ended(called.value);

  /** The value may be a promise, which is waited for. */
  function ended(value: QuickJSHandle): Ending {
    const last = settle(value);
    if (last === null) return never();
    return "error" in last ? failure(last.error) : encoded(last.value);
  }

  /** Runs what the promise waits for. Null if nothing is left that could settle it. A value that is no promise is its own. */
  function settle(promise: QuickJSHandle): { value: QuickJSHandle } | { error: QuickJSHandle } | null {
    const jobs = vm.runtime.executePendingJobs();
    if (jobs.error) return { error: jobs.error };
    const state = vm.getPromiseState(promise);
    if (state.type === "pending") return null;
    return state.type === "rejected" ? { error: state.error } : { value: state.value };
  }

  function encoded(value: QuickJSHandle): Ending {
    const json = vm.callFunction(encode, vm.undefined, value);
    if (json.error) return failure(json.error);
    if (vm.typeof(json.value) !== "string") return { type: "result", json: null };
    const text = vm.getString(json.value);
    if (text.length <= LIMITS.resultChars) return { type: "result", json: text };
    const message = `the result is ${text.length} characters of JSON, and may be ${LIMITS.resultChars}: return less`;
    return thrown({ name: "RangeError", message, stack: "" });
  }

  function failure(error: QuickJSHandle): Ending {
    const described = vm.callFunction(describe, vm.undefined, error);
    const text: Thrown | null = described.error ? null : JSON.parse(vm.getString(described.value));
    // QuickJS throws null where it has no memory for an error.
    if (text === null || (text.message === "null" && guest.isFull())) {
      return thrown({ name: "InternalError", message: "out of memory", stack: "" });
    }
    return thrown("stack" in evaluation ? { ...text, stack: evaluation.stack(text.stack) } : text);
  }
}

function never(): Ending {
  const message = "the script waits for a promise that nothing settles: there are no timers and no requests here";
  return thrown({ name: "Error", message, stack: "" });
}

type Evaluation =
  | { error: QuickJSHandle }
  | { promise: QuickJSHandle; unwrap(value: QuickJSHandle): QuickJSHandle; stack(stack: string): string };

/** A script that returns is the body of a function; any other is a program with the value of its last statement. */
function evaluateScript(vm: QuickJSContext, source: string): Evaluation {
  const program = vm.evalCode(source, SOURCE_NAME, EVALUATE_ASYNC);
  if (!program.error) {
    return { promise: program.value, unwrap: (value) => vm.getProp(value, "value"), stack: (stack) => stack };
  }
  const message = vm.getProp(program.error, "message").consume(vm.getString);
  if (message !== NOT_IN_A_FUNCTION) return { error: program.error };
  const body = vm.evalCode(`${WRAPPER}${source}\n})()`, SOURCE_NAME);
  if (body.error) return { error: body.error };
  return { promise: body.value, unwrap: (value) => value, stack: withoutWrapper };
}

/** The columns of the first line as its author counts them. */
const withoutWrapper = (stack: string): string =>
  stack.replaceAll(new RegExp(`\\b${SOURCE_NAME}:1:(\\d+)`, "g"), (_, column) => {
    return `${SOURCE_NAME}:1:${Math.max(1, Number(column) - WRAPPER.length)}`;
  });

function evaluateModule(vm: QuickJSContext, source: string): Evaluation {
  const module = vm.evalCode(source, SOURCE_NAME, { type: "module" });
  if (module.error) return { error: module.error };
  return { promise: module.value, unwrap: (value) => value, stack: (stack) => stack };
}
