/** What a script that had broken out of the interpreter would try, tried for real. Runs in the child only. */
import { ptr } from "bun:ffi";
import { constants } from "node:fs";
import { cString } from "../lib/c-string.ts";
import { ERRNO, type Tries } from "./protocol.ts";
import type { SystemCall } from "./system-calls.ts";

const AT_FDCWD = -100;
const O_RDONLY = 0;
/** A file without a name: should this succeed, nothing is left behind. */
const O_TMPFILE_RDWR = 0o20000002 | constants.O_DIRECTORY;
const AF_INET = 2;
const SOCK_STREAM = 1;
const SIGCHLD = 17;

/**
 * `port` is that of a listener on 127.0.0.1, or null if nothing would stop this process from reaching it; `executable` is a
 * file outside of what it may use, and so is the first of the `folders` that is there and can be written at all. It forks only where the filter would
 * stop it: a copy would only crash.
 */
export function tryForbidden(
  call: SystemCall,
  {
    parent,
    port,
    executable,
    folders,
    filtered,
  }: {
    parent: number | null;
    port: number | null;
    executable: string;
    folders: readonly string[];
    filtered: boolean;
  },
): Tries {
  const open = (path: string, flags: number) => {
    const name = cString(path);
    const fd = call("openat", AT_FDCWD, ptr(name), flags, 0o600);
    if (fd >= 0) call("close", fd);
    return fd;
  };
  const program = cString(executable);
  const nothing = ptr(new BigUint64Array(1));
  return {
    // A file that is there for sure: of what is not, nothing is refused.
    read: open(executable, O_RDONLY),
    readParent: open(`/proc/${parent ?? 1}/environ`, O_RDONLY),
    write: firstWritable(folders, (folder) => open(folder, O_TMPFILE_RDWR)),
    connect: port === null ? null : connect(call, port),
    signal: call("kill", call("getppid"), 0),
    fork: filtered ? forked(call) : null,
    // Last, for if it succeeds, this process is another program, which will not answer.
    execute: call("execve", ptr(program), nothing, nothing),
  };
}

/** The result for the first folder that is there, on a file system that is not read-only for everybody. */
function firstWritable(folders: readonly string[], attempt: (folder: string) => number): number {
  let result = -ERRNO.ENOENT;
  for (const folder of folders) {
    result = attempt(folder);
    if (result !== -ERRNO.ENOENT && result !== -ERRNO.EROFS) break;
  }
  return result;
}

function connect(call: SystemCall, port: number): number {
  const socket = call("socket", AF_INET, SOCK_STREAM, 0);
  if (socket < 0) return socket;
  const address = new Uint8Array([AF_INET, 0, port >> 8, port & 255, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
  const result = call("connect", socket, ptr(address), address.length);
  call("close", socket);
  return result;
}

function forked(call: SystemCall): number {
  const result = call("clone", SIGCHLD);
  if (result === 0) call("exitGroup", 0);
  return result;
}
