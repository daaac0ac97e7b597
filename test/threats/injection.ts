/**
 * System calls in another process, by ptrace: what code would do there that had taken it over, whatever it runs. The process
 * is the binary's own, so nothing of the tests has to be inside it. Linux x64 only.
 */
import { ptr } from "bun:ffi";
import { closeSync, openSync, readFileSync, readSync, writeSync } from "node:fs";
import { must, openSystemCalls } from "../../src/sandbox/system-calls.ts";

const PTRACE = { singleStep: 9, getRegisters: 12, setRegisters: 13, attach: 16, detach: 17 };
const CALL = { ptrace: 101, wait4: 61 };
/** For threads, too. */
const WAIT_ALL = 0x40000000;
/** Places in `user_regs_struct`, in words of 8 bytes. */
const AT = { r10: 7, r9: 8, r8: 9, rax: 10, rdx: 12, rsi: 13, rdi: 14, originalRax: 15, rip: 16, rsp: 19 };
const REGISTERS = 27;
/** Below the stack pointer, beyond what a leaf function may use. */
const SCRATCH_BELOW = 16_384n;
const SYSCALL = 0x050f;

/** A number, or text or bytes that are put into the memory of the process and passed by their address. */
export type Argument = number | string | Uint8Array;

export interface Taken {
  /** Makes a system call in the thread. Returns what the kernel answers: a result, or the negated errno. */
  call(number: number, ...args: Argument[]): number;
  release(): void;
}

/** Takes over a thread, once it waits in a system call. Throws if this process may not. */
export async function takeOver(thread: number): Promise<Taken> {
  const call = openSystemCalls();
  const trace = (request: number, data = 0) => must(`ptrace ${request}`, call(CALL.ptrace, request, thread, 0, data));
  const wait = () => must("wait4", call(CALL.wait4, thread, 0, WAIT_ALL, 0));
  const saved = new BigUint64Array(REGISTERS);
  const memory = openSync(`/proc/${thread}/mem`, "r+");
  const found = Buffer.alloc(2);
  let instruction = 0n;
  for (;;) {
    // One that waits for a page of its memory shows -1.
    while (/^(running|-1)/.test(readFileSync(`/proc/${thread}/syscall`, "latin1"))) await new Promise(setImmediate);
    trace(PTRACE.attach);
    wait();
    trace(PTRACE.getRegisters, ptr(saved));
    // If it waits in the kernel, before the next instruction is the one that called.
    instruction = (saved[AT.rip] ?? 0n) - 2n;
    readSync(memory, found, 0, 2, Number(instruction));
    if (found.readUInt16LE(0) === SYSCALL) break;
    // It went on before it was stopped.
    trace(PTRACE.detach);
    await new Promise(setImmediate);
  }

  /** Writes into the scratch space; returns the address. */
  function put(bytes: Uint8Array, place: number): bigint {
    const address = (saved[AT.rsp] ?? 0n) - SCRATCH_BELOW + BigInt(place * 512);
    writeSync(memory, bytes, 0, bytes.length, Number(address));
    return address;
  }

  return {
    call(number, ...args) {
      const words = args.map((value, place) => {
        if (typeof value === "number") return BigInt.asUintN(64, BigInt(value));
        return put(typeof value === "string" ? Buffer.from(`${value}\0`) : value, place);
      });
      const registers = saved.slice();
      [AT.rdi, AT.rsi, AT.rdx, AT.r10, AT.r8, AT.r9].forEach((at, place) => {
        registers[at] = words[place] ?? 0n;
      });
      registers[AT.rax] = BigInt(number);
      // No call is under way that the kernel should restart.
      registers[AT.originalRax] = 0xffff_ffff_ffff_ffffn;
      registers[AT.rip] = instruction;
      trace(PTRACE.setRegisters, ptr(registers));
      trace(PTRACE.singleStep);
      wait();
      trace(PTRACE.getRegisters, ptr(registers));
      return Number(BigInt.asIntN(64, registers[AT.rax] ?? 0n));
    },
    release() {
      closeSync(memory);
      trace(PTRACE.setRegisters, ptr(saved));
      call(CALL.ptrace, PTRACE.detach, thread, 0, 0);
    },
  };
}
