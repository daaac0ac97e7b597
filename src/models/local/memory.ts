/** Gives memory back to the system that a process no longer needs but would keep. Does nothing but on Linux. */
import { dlopen, ptr } from "bun:ffi";

const DONT_NEED = 4;

/** Of glibc; another C library has no use for the second, and may not be found under this name. */
const openLibc = () =>
  dlopen("libc.so.6", {
    madvise: { args: ["ptr", "u64", "i32"], returns: "i32" },
    malloc_trim: { args: ["u64"], returns: "i32" },
    getpagesize: { args: [], returns: "i32" },
  }).symbols;

type Libc = ReturnType<typeof openLibc> & { pageBytes: number };

let opened: Libc | null | undefined;

function libc(): Libc | null {
  if (opened !== undefined) return opened;
  try {
    opened = process.platform === "linux" ? withPageSize(openLibc()) : null;
  } catch {
    opened = null;
  }
  return opened;
}

/** 4 KiB nearly everywhere, and 16 or 64 on some arm64, where half a page would take what follows the range with it. */
const withPageSize = (symbols: ReturnType<typeof openLibc>): Libc => ({ ...symbols, pageBytes: symbols.getpagesize() });

/** Releases the whole pages inside a range, which then read as zero. */
export function releasePages(range: Float32Array): void {
  const c = libc();
  if (c === null || range.byteLength < c.pageBytes) return;
  const skip = (c.pageBytes - (ptr(range) % c.pageBytes)) % c.pageBytes;
  const bytes = Math.floor((range.byteLength - skip) / c.pageBytes) * c.pageBytes;
  if (bytes > 0) c.madvise(ptr(range, skip), BigInt(bytes), DONT_NEED);
}

/** Releases what C code has freed. */
export function releaseFreed(): void {
  libc()?.malloc_trim(0n);
}
