/** The filter of system calls: a program for the kernel that decides about each call of each thread. */
import { ptr } from "bun:ffi";
import { ERRNO } from "./protocol.ts";
import { type CallName, numberOf, type SystemCall } from "./system-calls.ts";

const SET_MODE_FILTER = 1;
const FILTER_FLAG_TSYNC = 1;

const ALLOW = 0x7fff0000;
const KILL_PROCESS = 0x80000000;
const REFUSE = 0x00050000 | ERRNO.EPERM;
const LOOK_ABSENT = 0x00050000 | 38; // ENOSYS
/** The kernel's names of the architectures: AUDIT_ARCH_AARCH64 and AUDIT_ARCH_X86_64. */
const ARCHITECTURE = process.arch === "arm64" ? 0xc00000b7 : 0xc000003e;
/** Of calls of x64 with short pointers; arm64 has none. */
const X32_BIT = 0x40000000;

/** What JavaScriptCore, its allocator and reading and writing the pipes need once everything is loaded. */
const ALLOWED: readonly CallName[] = [
  ...(["read", "write", "close", "fstat", "poll", "ppoll", "lseek", "readv", "writev"] as const),
  ...(["munmap", "brk", "mremap", "madvise"] as const),
  ...(["rtSigaction", "rtSigprocmask", "rtSigreturn", "sigaltstack"] as const),
  ...(["schedYield", "nanosleep", "futex", "restartSyscall", "clockNanosleep"] as const),
  ...(["getpid", "gettid", "getrusage", "sysinfo", "gettimeofday", "time", "clockGettime", "clockGetres"] as const),
  ...(["schedGetaffinity", "getcpu", "exit", "exitGroup", "setRobustList", "setTidAddress", "rseq"] as const),
  ...(["membarrier", "getrandom"] as const),
  ...(["epollWait", "epollCtl", "epollPwait", "epollPwait2", "timerfdSettime", "timerfdGettime"] as const),
];

const CLONE_THREAD = 0x10000;
const PROT_EXEC = 4;
const F_GETFD = 1;
const F_GETFL = 3;
const PR_SET_NAME = 15;
const PR_SET_VMA = 0x53564d41;

/** One instruction of classic BPF: code, jump if true, jump if false, operand. */
type Instruction = [code: number, ifTrue: number, ifFalse: number, operand: number];

const NUMBER_AT = 0;
const ARCHITECTURE_AT = 4;
/** The lower half of an argument. The allowed values are small, so the upper half can only make a call fail. */
const argumentAt = (index: number): number => 16 + 8 * index;

const load = (offset: number): Instruction => [0x20, 0, 0, offset];
const answer = (what: number): Instruction => [0x06, 0, 0, what];
const ifEqual = (value: number, skipIfTrue: number, skipIfFalse: number): Instruction => [
  0x15,
  skipIfTrue,
  skipIfFalse,
  value,
];
const ifAtLeast = (value: number, skipIfTrue: number, skipIfFalse: number): Instruction => [
  0x35,
  skipIfTrue,
  skipIfFalse,
  value,
];
const ifAnyBit = (bits: number, skipIfTrue: number, skipIfFalse: number): Instruction => [
  0x45,
  skipIfTrue,
  skipIfFalse,
  bits,
];

/** Skips so many instructions if it is another call. */
const ifCalled = (name: CallName, skip: number): Instruction => ifEqual(numberOf(name), 0, skip);

/** Allows a call if one of its arguments has one of these values. */
function allowIfArgument(name: CallName, index: number, values: readonly number[]): Instruction[] {
  const tests = values.map((value, at) => ifEqual(value, values.length - at, 0));
  return [ifCalled(name, tests.length + 3), load(argumentAt(index)), ...tests, answer(REFUSE), answer(ALLOW)];
}

/** Allows a call if one of its arguments has these bits, or has not. */
const allowIfBits = (name: CallName, index: number, bits: number, wanted: "set" | "clear"): Instruction[] => [
  ifCalled(name, 4),
  load(argumentAt(index)),
  wanted === "set" ? ifAnyBit(bits, 1, 0) : ifAnyBit(bits, 0, 1),
  answer(REFUSE),
  answer(ALLOW),
];

const exists = (name: CallName): boolean => numberOf(name) >= 0;

function filterFor(pid: number): Instruction[] {
  return [
    load(ARCHITECTURE_AT),
    ifEqual(ARCHITECTURE, 1, 0),
    answer(KILL_PROCESS),
    load(NUMBER_AT),
    ifAtLeast(X32_BIT, 0, 1),
    answer(KILL_PROCESS),
    ...ALLOWED.filter(exists).flatMap((name) => [ifCalled(name, 1), answer(ALLOW)]),
    // clone3 hides its flags behind a pointer. If it looks absent, glibc falls back to clone, whose flags can be seen.
    ifCalled("clone3", 1),
    answer(LOOK_ABSENT),
    ...allowIfBits("clone", 0, CLONE_THREAD, "set"),
    // JavaScriptCore has reserved its executable memory at its start.
    ...allowIfBits("mmap", 2, PROT_EXEC, "clear"),
    ...allowIfBits("mprotect", 2, PROT_EXEC, "clear"),
    // The garbage collector stops threads of this process with signals.
    ...allowIfArgument("tgkill", 0, [pid]),
    ...allowIfArgument("fcntl", 1, [F_GETFD, F_GETFL]),
    ...allowIfArgument("prctl", 0, [PR_SET_NAME, PR_SET_VMA]),
    answer(REFUSE),
  ];
}

/** Filters the calls of all threads, for good. Needs `PR_SET_NO_NEW_PRIVS`. */
export function filterSystemCalls(call: SystemCall): void {
  const instructions = filterFor(process.pid);
  const code = new DataView(new ArrayBuffer(instructions.length * 8));
  for (const [index, [operation, ifTrue, ifFalse, operand]] of instructions.entries()) {
    code.setUint16(index * 8, operation, true);
    code.setUint8(index * 8 + 2, ifTrue);
    code.setUint8(index * 8 + 3, ifFalse);
    code.setUint32(index * 8 + 4, operand >>> 0, true);
  }
  const bytes = new Uint8Array(code.buffer);
  const program = new DataView(new ArrayBuffer(16));
  program.setUint16(0, instructions.length, true);
  program.setBigUint64(8, BigInt(ptr(bytes)), true);
  const result = call("seccomp", SET_MODE_FILTER, FILTER_FLAG_TSYNC, ptr(new Uint8Array(program.buffer)));
  if (result > 0) throw new Error(`the filter cannot be set for thread ${result}`);
  if (result < 0) throw new Error(`seccomp failed with errno ${-result}`);
}
