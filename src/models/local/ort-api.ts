/**
 * The part of ONNX Runtime's C API that decoding needs, through `bun:ffi`. The API is one struct of function pointers
 * whose order never changes (new ones are appended), so an index is stable across versions.
 */
import { CString, dlopen, linkSymbols, type Pointer, ptr, read } from "bun:ffi";

const API_VERSION = 20;
/** `ONNXTensorElementDataType` of the header. */
export const FLOAT = 1;
export const INT64 = 7;

/** An address from C, kept as C keeps it: 64 bits. */
export type Handle = bigint;

type Status = Pointer | bigint | null;

export const pointer = (handle: Handle): Pointer => Number(handle) as Pointer;

export type OrtApi = ReturnType<typeof openOrtApi>;

/** Throws if the library cannot be opened or is too old for this API version. */
export function openOrtApi(library: string) {
  const { symbols } = dlopen(library, { OrtGetApiBase: { args: [], returns: "ptr" } });
  const base = symbols.OrtGetApiBase();
  if (base === null) throw new Error("onnxruntime has no API base");
  const { getApi } = linkSymbols({
    getApi: { ptr: read.ptr(base, 0) as Pointer, args: ["u32"], returns: "ptr" },
  }).symbols;
  const table = getApi(API_VERSION);
  if (table === null) throw new Error(`onnxruntime does not offer API version ${API_VERSION}`);
  const at = (index: number) => read.ptr(table, index * 8) as Pointer;

  const c = linkSymbols({
    getErrorMessage: { ptr: at(2), args: ["ptr"], returns: "ptr" },
    createEnv: { ptr: at(3), args: ["i32", "ptr", "ptr"], returns: "ptr" },
    createSession: { ptr: at(7), args: ["ptr", "ptr", "ptr", "ptr"], returns: "ptr" },
    run: { ptr: at(9), args: ["ptr", "ptr", "ptr", "ptr", "u64", "ptr", "u64", "ptr"], returns: "ptr" },
    createSessionOptions: { ptr: at(10), args: ["ptr"], returns: "ptr" },
    setGraphOptimizationLevel: { ptr: at(23), args: ["ptr", "i32"], returns: "ptr" },
    setIntraOpNumThreads: { ptr: at(24), args: ["ptr", "i32"], returns: "ptr" },
    setInterOpNumThreads: { ptr: at(25), args: ["ptr", "i32"], returns: "ptr" },
    createTensor: { ptr: at(49), args: ["ptr", "ptr", "u64", "ptr", "u64", "i32", "ptr"], returns: "ptr" },
    createCpuMemoryInfo: { ptr: at(69), args: ["i32", "i32", "ptr"], returns: "ptr" },
    releaseStatus: { ptr: at(93), args: ["ptr"], returns: "void" },
    releaseValue: { ptr: at(96), args: ["ptr"], returns: "void" },
  }).symbols;

  /** Every call returns a status: null is success, anything else has the message and must be released. */
  function check(status: Status): void {
    if (status === null || status === 0n) return;
    const message = c.getErrorMessage(status);
    const text = typeof message === "number" ? new CString(message).toString() : "unknown error";
    c.releaseStatus(status);
    throw new Error(`onnxruntime: ${text}`);
  }

  /** Calls a function whose last argument receives the handle of what it creates. */
  function make(call: (out: Pointer) => Status): Handle {
    const out = new BigUint64Array(1);
    check(call(ptr(out)));
    return out[0] ?? 0n;
  }

  return { c, check, make };
}
