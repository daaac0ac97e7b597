/**
 * What a process can take away from itself on Linux, through libc's `syscall`. Only on x64: the numbers and the filter are
 * made for it. Runs in the child only.
 */
import { dlopen, FFIType, ptr, read } from "bun:ffi";

/** The numbers of the calls made by name here; they never change. */
export const CALL = {
  close: 3,
  exitGroup: 231,
  execve: 59,
  fork: 57,
  getppid: 110,
  setpgid: 109,
  kill: 62,
  connect: 42,
  socket: 41,
  openat: 257,
  capset: 126,
  setpriority: 141,
  prctl: 157,
  prlimit: 302,
  schedSetattr: 314,
  seccomp: 317,
  landlockCreateRuleset: 444,
  landlockAddRule: 445,
  landlockRestrictSelf: 446,
} as const;

const n = FFIType.i64_fast;

type Argument = number | bigint;
export type SystemCall = (number: number, ...args: Argument[]) => number;

/** Loads libc. Its calls return the kernel's result, or the negated errno. */
export function openSystemCalls(): SystemCall {
  const libc = dlopen("libc.so.6", {
    syscall: { args: [n, n, n, n, n, n, n], returns: n },
    __errno_location: { args: [], returns: FFIType.ptr },
  }).symbols;
  const errnoAt = libc.__errno_location(); // of this thread
  if (errnoAt === null) throw new Error("libc has no errno");
  return (number, a = 0, b = 0, c = 0, d = 0, e = 0, f = 0) => {
    // The types know only numbers; a pointer above 2^53 does not exist.
    const args = [a, b, c, d, e, f].map(Number) as [number, number, number, number, number, number];
    const result = Number(libc.syscall(number, ...args));
    return result === -1 ? -read.i32(errnoAt, 0) : result;
  };
}

/** The result, if it is none of the errors. */
export function must(what: string, result: number): number {
  if (result < 0) throw new Error(`${what} failed with errno ${-result}`);
  return result;
}

/** Text as C takes it. The buffer must live as long as the call. */
export const cString = (text: string): Buffer => Buffer.from(`${text}\0`);

const RESOURCE = { cpu: 0, fsize: 1, data: 2, core: 4, nofile: 7, as: 9 } as const;

/** Sets a limit of this process (`setrlimit`), in bytes, seconds or descriptors. */
export function limit(call: SystemCall, what: keyof typeof RESOURCE, soft: number, hard = soft): void {
  const limits = new BigUint64Array([BigInt(soft), BigInt(hard)]);
  must(`the limit ${what}`, call(CALL.prlimit, 0, RESOURCE[what], ptr(limits), 0));
}

const PR_SET_PDEATHSIG = 1;
const PR_SET_SECUREBITS = 28;
const PR_SET_NO_NEW_PRIVS = 38;
const PR_CAP_AMBIENT = 47;
const PR_CAP_AMBIENT_CLEAR_ALL = 4;
/** No capabilities for user 0 at the next `execve`, and no way to undo that. */
const SECBITS_LOCKED_NO_ROOT = 0b101111;
const CAPABILITY_VERSION_3 = 0x20080522;
const SIGKILL = 9;

/** Gives up every capability for good, and has the kernel kill this process when its parent dies. */
export function dropPrivileges(call: SystemCall): void {
  must("PR_SET_PDEATHSIG", call(CALL.prctl, PR_SET_PDEATHSIG, SIGKILL));
  call(CALL.prctl, PR_SET_SECUREBITS, SECBITS_LOCKED_NO_ROOT); // fails for those who have no capabilities to lose
  call(CALL.prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL);
  const header = new Uint32Array([CAPABILITY_VERSION_3, 0]);
  must("capset", call(CALL.capset, ptr(header), ptr(new Uint32Array(6))));
  must("PR_SET_NO_NEW_PRIVS", call(CALL.prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}
