/** What a process can take away from itself on Linux, through libc's `syscall`. Runs in the child only. */
import { dlopen, FFIType, ptr, read } from "bun:ffi";

/** The kernel's numbers on x64 and on arm64, which never change; -1 where there is no such call. */
const NUMBERS = {
  read: [0, 63],
  write: [1, 64],
  close: [3, 57],
  fstat: [5, 80],
  poll: [7, -1],
  ppoll: [-1, 73],
  lseek: [8, 62],
  readv: [19, 65],
  writev: [20, 66],
  mmap: [9, 222],
  mprotect: [10, 226],
  munmap: [11, 215],
  brk: [12, 214],
  mremap: [25, 216],
  madvise: [28, 233],
  rtSigaction: [13, 134],
  rtSigprocmask: [14, 135],
  rtSigreturn: [15, 139],
  sigaltstack: [131, 132],
  schedYield: [24, 124],
  nanosleep: [35, 101],
  clockNanosleep: [230, 115],
  futex: [202, 98],
  restartSyscall: [219, 128],
  getpid: [39, 172],
  gettid: [186, 178],
  getppid: [110, 173],
  getrusage: [98, 165],
  sysinfo: [99, 179],
  gettimeofday: [96, 169],
  time: [201, -1],
  clockGettime: [228, 113],
  clockGetres: [229, 114],
  schedGetaffinity: [204, 123],
  schedSetattr: [314, 274],
  getcpu: [309, 168],
  exit: [60, 93],
  exitGroup: [231, 94],
  setRobustList: [273, 99],
  setTidAddress: [218, 96],
  rseq: [334, 293],
  membarrier: [324, 283],
  getrandom: [318, 278],
  epollWait: [232, -1],
  epollCtl: [233, 21],
  epollPwait: [281, 22],
  epollPwait2: [441, 441],
  timerfdSettime: [286, 86],
  timerfdGettime: [287, 87],
  clone: [56, 220],
  clone3: [435, 435],
  execve: [59, 221],
  kill: [62, 129],
  tgkill: [234, 131],
  fcntl: [72, 25],
  openat: [257, 56],
  socket: [41, 198],
  connect: [42, 203],
  setpgid: [109, 154],
  setpriority: [141, 140],
  capget: [125, 90],
  capset: [126, 91],
  prctl: [157, 167],
  prlimit: [302, 261],
  seccomp: [317, 277],
  landlockCreateRuleset: [444, 444],
  landlockAddRule: [445, 445],
  landlockRestrictSelf: [446, 446],
} as const;

export type CallName = keyof typeof NUMBERS;

/** A call's number on this processor; -1 where there is no such call. */
export const numberOf = (name: CallName): number => NUMBERS[name][process.arch === "arm64" ? 1 : 0];

const n = FFIType.i64_fast;

type Argument = number | bigint;
/** By name, or by number. */
export type SystemCall = (which: CallName | number, ...args: Argument[]) => number;

/** Loads libc. Its calls return the kernel's result, or the negated errno. */
export function openSystemCalls(): SystemCall {
  const libc = dlopen("libc.so.6", {
    syscall: { args: [n, n, n, n, n, n, n], returns: n },
    __errno_location: { args: [], returns: FFIType.ptr },
  }).symbols;
  const errnoAt = libc.__errno_location(); // of this thread
  if (errnoAt === null) throw new Error("libc has no errno");
  return (which, a = 0, b = 0, c = 0, d = 0, e = 0, f = 0) => {
    // The types know only numbers; a pointer above 2^53 does not exist.
    const args = [a, b, c, d, e, f].map(Number) as [number, number, number, number, number, number];
    const number = typeof which === "number" ? which : numberOf(which);
    const result = Number(libc.syscall(number, ...args));
    return result === -1 ? -read.i32(errnoAt, 0) : result;
  };
}

/** The unit of /proc/PID/statm, which is not the same on every arm64. */
export const pageBytes = (): number =>
  dlopen("libc.so.6", { getpagesize: { returns: FFIType.i32 } }).symbols.getpagesize();

/** The result, if it is none of the errors. */
export function must(what: string, result: number): number {
  if (result < 0) throw new Error(`${what} failed with errno ${-result}`);
  return result;
}

const RESOURCE = { cpu: 0, fsize: 1, data: 2, core: 4, nofile: 7, as: 9 } as const;

/** Sets a limit of this process (`setrlimit`), in bytes, seconds or descriptors. */
export function limit(call: SystemCall, what: keyof typeof RESOURCE, soft: number, hard = soft): void {
  const limits = new BigUint64Array([BigInt(soft), BigInt(hard)]);
  must(`the limit ${what}`, call("prlimit", 0, RESOURCE[what], ptr(limits), 0));
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
  must("PR_SET_PDEATHSIG", call("prctl", PR_SET_PDEATHSIG, SIGKILL));
  call("prctl", PR_SET_SECUREBITS, SECBITS_LOCKED_NO_ROOT); // fails for those who have no capabilities to lose
  call("prctl", PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL);
  const header = new Uint32Array([CAPABILITY_VERSION_3, 0]);
  const none = new Uint32Array(6);
  const dropped = call("capset", ptr(header), ptr(none));
  // A filter such as that of the systemd unit refuses the call even to those who have none.
  if (dropped < 0 && hasCapabilities(call, header)) must("capset", dropped);
  must("PR_SET_NO_NEW_PRIVS", call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

function hasCapabilities(call: SystemCall, header: Uint32Array): boolean {
  // Effective, permitted and inheritable ones, twice.
  const held = new Uint32Array(6);
  must("capget", call("capget", ptr(header), ptr(held)));
  return [0, 1, 3, 4].some((at) => held[at] !== 0);
}
