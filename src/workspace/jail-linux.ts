/**
 * Opens folders beneath a root with `openat2`: the kernel refuses every way out, even while folders are being swapped.
 */
import { dlopen, FFIType, ptr, read } from "bun:ffi";
import fs from "node:fs";
import { cString } from "../lib/c-string.ts";
import { asFound, type FileVersion, FOLDER_FLAGS, type Folder, type OpenFolder, statFile } from "./jail-portable.ts";

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
const AT_SYMLINK_NOFOLLOW = 0x100;
const STATX_BASIC_STATS = 0x7ff;
/** Places in `struct statx`, the same on every architecture. */
const STATX = { mode: 28, inode: 32, size: 40, ctime: 96, mtime: 112 } as const;
const IS_LITTLE_ENDIAN = true;
const MAX_NAMES = 64;
const S_IFMT = 0o170000;
const ERRNO = { ENOENT: 2, ENOTDIR: 20, EXDEV: 18, ELOOP: 40 } as const;

/**
 * Undefined if `openat2` is missing or forbidden by seccomp, or if `/proc` is not mounted: an open folder is used as
 * `/proc/self/fd/N`, which names the folder itself, even if its path has changed.
 */
export function probeLinux(): OpenFolder | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const { openat2, stat } = openSyscalls();
    const folderOf: FolderOf = (fd) => ({ fd, path: pathOf(fd), stat: (name) => stat(fd, name) });
    const root = openRoot("/", folderOf);
    if (root === "absent" || root === "blocked") return undefined;
    try {
      if (openat2(root.fd, "proc/self/fd") !== -ERRNO.ELOOP) return undefined; // `self` is a link: the kernel must refuse
      fs.lstatSync(`${root.path}/.`);
    } finally {
      fs.closeSync(root.fd);
    }
    return (rootPath, parts) => openBeneath(openat2, rootPath, parts, folderOf);
  } catch {
    return undefined; // another libc, or no /proc: use the portable way
  }
}

/** The new descriptor, or the negated errno. */
type Openat2 = (folder: number, path: string) => number;
type FolderOf = (fd: number) => Folder;

const pathOf = (fd: number): string => `/proc/self/fd/${fd}`;

function openSyscalls(): { openat2: Openat2; stat(folder: number, name: string): FileVersion | null } {
  const n = FFIType.i64_fast;
  const libc = dlopen("libc.so.6", {
    syscall: { args: [n, n, FFIType.ptr, FFIType.ptr, n], returns: n },
    statx: { args: [FFIType.i32, FFIType.ptr, FFIType.i32, FFIType.u32, FFIType.ptr], returns: FFIType.i32 },
    __errno_location: { args: [], returns: FFIType.ptr },
  }).symbols;
  const errnoAt = libc.__errno_location(); // of this thread
  if (errnoAt === null) throw new Error("no errno");
  const errno = () => read.i32(errnoAt, 0);
  const found = new DataView(new ArrayBuffer(256));
  const foundAt = ptr(found);
  // In halves: a BigInt for each of the numbers takes longer than the system call.
  const low = (at: number) => found.getUint32(at, IS_LITTLE_ENDIAN);
  const numberAt = (at: number) => low(at) + low(at + 4) * 2 ** 32;
  const msAt = (at: number) =>
    (low(at) + found.getInt32(at + 4, IS_LITTLE_ENDIAN) * 2 ** 32) * 1_000 + low(at + 8) / 1_000_000;
  /** As C reads them. Bounded, since a workspace may have any names. */
  const names = new Map<string, Buffer>();
  function nameOf(text: string): Buffer {
    const known = names.get(text);
    if (known) return known;
    if (names.size === MAX_NAMES) names.clear();
    const made = cString(text);
    names.set(text, made);
    return made;
  }
  return {
    openat2(folder, path) {
      const name = cString(path);
      const result = Number(libc.syscall(SYS_OPENAT2, folder, ptr(name), ptr(HOW), HOW.byteLength));
      return result >= 0 ? result : -errno();
    },
    // Every prompt looks at seven files: the way through /proc takes four times as long.
    stat(folder, name) {
      if (libc.statx(folder, nameOf(name), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, foundAt) !== 0) {
        return errno() === ERRNO.ENOENT ? null : statFile(`${pathOf(folder)}/${name}`);
      }
      const isFile = (found.getUint16(STATX.mode, IS_LITTLE_ENDIAN) & S_IFMT) === fs.constants.S_IFREG;
      if (!isFile) return null;
      const { size, inode, mtime, ctime } = STATX;
      return { size: numberAt(size), mtimeMs: msAt(mtime), inode: numberAt(inode), ctimeMs: msAt(ctime) };
    },
  };
}

function openRoot(path: string, folderOf: FolderOf): ReturnType<OpenFolder> {
  return asFound(() => folderOf(fs.openSync(path, FOLDER_FLAGS)));
}

function openBeneath(
  openat2: Openat2,
  rootPath: string,
  parts: readonly string[],
  folderOf: FolderOf,
): ReturnType<OpenFolder> {
  const root = openRoot(rootPath, folderOf);
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
