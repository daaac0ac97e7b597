/** The filter of system calls: a program for the kernel that decides about each call of each thread. */
import { ptr } from "bun:ffi";
import { ERRNO } from "./protocol.ts";
import { CALL, type SystemCall } from "./system-calls.ts";

const SET_MODE_FILTER = 1;
const FILTER_FLAG_TSYNC = 1;

const ALLOW = 0x7fff0000;
const KILL_PROCESS = 0x80000000;
const REFUSE = 0x00050000 | ERRNO.EPERM;
const LOOK_ABSENT = 0x00050000 | 38; // ENOSYS
const AUDIT_ARCH_X86_64 = 0xc000003e;
const X32_BIT = 0x40000000;

/** What JavaScriptCore, its allocator and reading and writing the pipes need once everything is loaded. */
const ALLOWED = [
  [0, 1, 3, 5, 7, 8, 19, 20], // read write close fstat poll lseek readv writev
  [11, 12, 25, 28], // munmap brk mremap madvise
  [13, 14, 15, 131], // rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack
  [24, 35, 202, 219, 230], // sched_yield nanosleep futex restart_syscall clock_nanosleep
  [39, 186, 98, 99, 96, 201, 228, 229, 204, 309], // getpid gettid getrusage sysinfo, time and clocks, sched_getaffinity getcpu
  [60, 231, 273, 334, 324, 318, 218], // exit exit_group set_robust_list rseq membarrier getrandom set_tid_address
  [232, 233, 281, 441, 286, 287], // epoll_wait epoll_ctl epoll_pwait epoll_pwait2 timerfd_settime timerfd_gettime
].flat();

const NR = { mmap: 9, mprotect: 10, clone: 56, fcntl: 72, prctl: 157, tgkill: 234, clone3: 435 } as const;
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

/** Allows a call if one of its arguments has one of these values. */
function allowIfArgument(number: number, index: number, values: readonly number[]): Instruction[] {
  const tests = values.map((value, at) => ifEqual(value, values.length - at, 0));
  return [ifEqual(number, 0, tests.length + 3), load(argumentAt(index)), ...tests, answer(REFUSE), answer(ALLOW)];
}

/** Allows a call if one of its arguments has these bits, or has not. */
const allowIfBits = (number: number, index: number, bits: number, wanted: "set" | "clear"): Instruction[] => [
  ifEqual(number, 0, 4),
  load(argumentAt(index)),
  wanted === "set" ? ifAnyBit(bits, 1, 0) : ifAnyBit(bits, 0, 1),
  answer(REFUSE),
  answer(ALLOW),
];

function filterFor(pid: number): Instruction[] {
  return [
    load(ARCHITECTURE_AT),
    ifEqual(AUDIT_ARCH_X86_64, 1, 0),
    answer(KILL_PROCESS),
    load(NUMBER_AT),
    ifAtLeast(X32_BIT, 0, 1),
    answer(KILL_PROCESS),
    ...ALLOWED.flatMap((number) => [ifEqual(number, 0, 1), answer(ALLOW)]),
    // clone3 hides its flags behind a pointer. If it looks absent, glibc falls back to clone, whose flags can be seen.
    ifEqual(NR.clone3, 0, 1),
    answer(LOOK_ABSENT),
    ...allowIfBits(NR.clone, 0, CLONE_THREAD, "set"),
    // JavaScriptCore has reserved its executable memory at its start.
    ...allowIfBits(NR.mmap, 2, PROT_EXEC, "clear"),
    ...allowIfBits(NR.mprotect, 2, PROT_EXEC, "clear"),
    // The garbage collector stops threads of this process with signals.
    ...allowIfArgument(NR.tgkill, 0, [pid]),
    ...allowIfArgument(NR.fcntl, 1, [F_GETFD, F_GETFL]),
    ...allowIfArgument(NR.prctl, 0, [PR_SET_NAME, PR_SET_VMA]),
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
  const result = call(CALL.seccomp, SET_MODE_FILTER, FILTER_FLAG_TSYNC, ptr(new Uint8Array(program.buffer)));
  if (result > 0) throw new Error(`the filter cannot be set for thread ${result}`);
  if (result < 0) throw new Error(`seccomp failed with errno ${-result}`);
}
