/**
 * Opens folders beneath a root with `openat2`: the kernel refuses every way out, even while folders are being swapped.
 */
import { dlopen, FFIType, ptr, read } from "bun:ffi";
import fs from "node:fs";
import { asFound, FOLDER_FLAGS, type Folder, type OpenFolder } from "./jail-portable.ts";

const SYS_OPENAT2 = 437; // the same on every architecture
const O_CLOEXEC = 0o2000000; // x64 and arm64; not among node's constants
const RESOLVE_NO_MAGICLINKS = 0x02;
const RESOLVE_NO_SYMLINKS = 0x04;
const RESOLVE_BENEATH = 0x08;
const HOW = new BigUint64Array([
  BigInt(FOLDER_FLAGS | O_CLOEXEC),
  0n,
  BigInt(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS),
]);
const ERRNO = { ENOENT: 2, ENOTDIR: 20, EXDEV: 18, ELOOP: 40 } as const;

/**
 * Undefined if `openat2` is missing or forbidden by seccomp, or if `/proc` is not mounted: an open folder is used as
 * `/proc/self/fd/N`, which names the folder itself, even if its path has changed.
 */
export function probeLinux(): OpenFolder | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const openat2 = openSyscall();
    const root = openRoot("/");
    if (root === "absent" || root === "blocked") return undefined;
    try {
      if (openat2(root.fd, "proc/self/fd") !== -ERRNO.ELOOP) return undefined; // `self` is a link: the kernel must refuse
      fs.lstatSync(`${root.path}/.`);
    } finally {
      fs.closeSync(root.fd);
    }
    return (rootPath, parts) => openBeneath(openat2, rootPath, parts);
  } catch {
    return undefined; // another libc, or no /proc: use the portable way
  }
}

type Openat2 = (folder: number, path: string) => number;

/** The new descriptor, or the negated errno. */
function openSyscall(): Openat2 {
  const n = FFIType.i64_fast;
  const libc = dlopen("libc.so.6", {
    syscall: { args: [n, n, FFIType.ptr, FFIType.ptr, n], returns: n },
    __errno_location: { args: [], returns: FFIType.ptr },
  }).symbols;
  const errnoAt = libc.__errno_location(); // of this thread
  if (errnoAt === null) throw new Error("no errno");
  return (folder, path) => {
    const name = Buffer.from(`${path}\0`);
    const result = Number(libc.syscall(SYS_OPENAT2, folder, ptr(name), ptr(HOW), HOW.byteLength));
    return result >= 0 ? result : -read.i32(errnoAt, 0);
  };
}

const folderOf = (fd: number): Folder => ({ fd, path: `/proc/self/fd/${fd}` });

function openRoot(path: string): ReturnType<OpenFolder> {
  return asFound(() => folderOf(fs.openSync(path, FOLDER_FLAGS)));
}

function openBeneath(openat2: Openat2, rootPath: string, parts: readonly string[]): ReturnType<OpenFolder> {
  const root = openRoot(rootPath);
  if (root === "absent" || root === "blocked" || parts.length === 0) return root;
  try {
    const fd = openat2(root.fd, parts.join("/"));
    if (fd >= 0) return folderOf(fd);
    if (fd === -ERRNO.ENOENT) return "absent";
    if (fd === -ERRNO.ELOOP || fd === -ERRNO.ENOTDIR || fd === -ERRNO.EXDEV) return "blocked";
    throw new Error(`openat2: errno ${-fd}`);
  } finally {
    fs.closeSync(root.fd);
  }
}
