/** Gives memory back to the system that a process no longer needs but would keep. Does nothing but on Linux. */
import { dlopen, ptr } from "bun:ffi";

const DONT_NEED = 4;
const PAGE = 4_096;

/** Of glibc; another C library has no use for the second, and may not be found under this name. */
const openLibc = () =>
  dlopen("libc.so.6", {
    madvise: { args: ["ptr", "u64", "i32"], returns: "i32" },
    malloc_trim: { args: ["u64"], returns: "i32" },
  }).symbols;

let opened: ReturnType<typeof openLibc> | null | undefined;

function libc(): ReturnType<typeof openLibc> | null {
  if (opened !== undefined) return opened;
  try {
    opened = process.platform === "linux" ? openLibc() : null;
  } catch {
    opened = null;
  }
  return opened;
}

/** Releases the whole pages inside a range, which then read as zero. */
export function releasePages(range: Float32Array): void {
  if (range.byteLength < PAGE) return;
  const skip = (PAGE - (ptr(range) % PAGE)) % PAGE;
  const bytes = Math.floor((range.byteLength - skip) / PAGE) * PAGE;
  if (bytes > 0) libc()?.madvise(ptr(range, skip), BigInt(bytes), DONT_NEED);
}

/** Releases what C code has freed. */
export function releaseFreed(): void {
  libc()?.malloc_trim(0n);
}
