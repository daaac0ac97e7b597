/** What a script that had broken out of the interpreter would try, tried for real. Runs in the child only. */
import { ptr } from "bun:ffi";
import type { Tries } from "./protocol.ts";
import { CALL, cString, type SystemCall } from "./system-calls.ts";

const AT_FDCWD = -100;
const O_RDONLY = 0;
/** A file without a name: should this succeed, nothing is left behind. */
const O_TMPFILE_RDWR = 0o20200002;
const AF_INET = 2;
const SOCK_STREAM = 1;

/** `fork` only where the filter would stop it. */
export function tryForbidden(call: SystemCall, parent: number | null, port: number, filtered: boolean): Tries {
  const open = (path: string, flags: number) => {
    const name = cString(path);
    const fd = call(CALL.openat, AT_FDCWD, ptr(name), flags, 0o600);
    if (fd >= 0) call(CALL.close, fd);
    return fd;
  };
  const program = cString("/bin/true");
  const nothing = ptr(new BigUint64Array(1));
  return {
    read: open("/etc/passwd", O_RDONLY),
    readParent: open(`/proc/${parent ?? 1}/environ`, O_RDONLY),
    write: open("/tmp", O_TMPFILE_RDWR),
    connect: connect(call, port),
    signal: call(CALL.kill, call(CALL.getppid), 0),
    fork: filtered ? forked(call) : null,
    // Last, for if it succeeds, this process is another program, which will not answer.
    execute: call(CALL.execve, ptr(program), nothing, nothing),
  };
}

function connect(call: SystemCall, port: number): number {
  const socket = call(CALL.socket, AF_INET, SOCK_STREAM, 0);
  if (socket < 0) return socket;
  const address = new Uint8Array([AF_INET, 0, port >> 8, port & 255, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
  const result = call(CALL.connect, socket, ptr(address), address.length);
  call(CALL.close, socket);
  return result;
}

function forked(call: SystemCall): number {
  const result = call(CALL.fork);
  if (result === 0) call(CALL.exitGroup, 0);
  return result;
}
