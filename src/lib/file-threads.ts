import { dlopen, FFIType, ptr } from "bun:ffi";
import { cString } from "./c-string.ts";

/**
 * Enough for two commits, and the files of two accounts that are written at once, while the system looks up the names of all
 * servers that an operator usually gives: payments' six nodes, a model server, and a few more, each of which may take seconds.
 */
const FILE_THREADS = 16;
const NAME = "UV_THREADPOOL_SIZE";

/**
 * Calls that wait for the disk share threads, as many as there are cores: with two, and a disk that takes its time, a
 * commit waits for two files that somebody else writes. Call it before the first such call: Bun reads the number then, from
 * the environment that C knows, of which `process.env` is a copy. It comes too late for a program that runs from source,
 * which these threads have loaded. An operator's own number stays.
 */
export function moreFileThreads(): void {
  if (process.env[NAME] !== undefined) return;
  try {
    const { symbols } = dlopen("libc.so.6", {
      setenv: { args: [FFIType.ptr, FFIType.ptr, FFIType.i32], returns: FFIType.i32 },
    });
    const [name, value] = [cString(NAME), cString(String(FILE_THREADS))];
    symbols.setenv(ptr(name), ptr(value), 0);
  } catch {
    // Another system, which keeps Bun's number.
  }
}
