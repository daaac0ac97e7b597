/** Has the kernel refuse a system call to this process, as file systems, and the filters of a systemd unit, do. */
import { ptr } from "bun:ffi";
import { must, type SystemCall } from "../../src/sandbox/system-calls.ts";

const PR_SET_NO_NEW_PRIVS = 38;
const EPERM = 1;

/** Calls of all threads with one of these numbers are EPERM, and all others allowed. */
export function refuseCalls(call: SystemCall, ...numbers: number[]): void {
  must("PR_SET_NO_NEW_PRIVS", call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  /** Classic BPF, each with its code, two jumps and an operand. */
  const program = [
    [0x20, 0, 0, 0],
    ...numbers.flatMap((number) => [
      [0x15, 0, 1, number],
      [0x06, 0, 0, 0x00050000 | EPERM],
    ]),
    [0x06, 0, 0, 0x7fff0000],
  ] as [code: number, ifTrue: number, ifFalse: number, operand: number][];
  const filter = new DataView(new ArrayBuffer(8 * program.length));
  for (const [at, [code, ifTrue, ifFalse, operand]] of program.entries()) {
    filter.setUint16(8 * at, code, true);
    filter.setUint8(8 * at + 2, ifTrue);
    filter.setUint8(8 * at + 3, ifFalse);
    filter.setUint32(8 * at + 4, operand, true);
  }
  const head = new BigUint64Array([BigInt(program.length), BigInt(ptr(filter))]);
  must("seccomp", call("seccomp", 1, 1, ptr(head)));
}
