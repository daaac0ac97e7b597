/** Gives up its capabilities where the kernel refuses the call for that, as the filter of a systemd unit does. */
import { ptr } from "bun:ffi";
import { dropPrivileges, must, numberOf, openSystemCalls } from "../../src/sandbox/system-calls.ts";

const PR_SET_NO_NEW_PRIVS = 38;
const call = openSystemCalls();
if (process.argv[2] === "without any") dropPrivileges(call);
must("PR_SET_NO_NEW_PRIVS", call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));

/** Classic BPF, each with its code, two jumps and an operand: `capset` is EPERM, and everything else allowed. */
const program = [
  [0x20, 0, 0, 0],
  [0x15, 0, 1, numberOf("capset")],
  [0x06, 0, 0, 0x00050001],
  [0x06, 0, 0, 0x7fff0000],
] as const;
const filter = new DataView(new ArrayBuffer(8 * program.length));
for (const [at, [code, ifTrue, ifFalse, operand]] of program.entries()) {
  filter.setUint16(8 * at, code, true);
  filter.setUint8(8 * at + 2, ifTrue);
  filter.setUint8(8 * at + 3, ifFalse);
  filter.setUint32(8 * at + 4, operand, true);
}
const head = new BigUint64Array([BigInt(program.length), BigInt(ptr(filter))]);
must("seccomp", call("seccomp", 1, 0, ptr(head)));

try {
  dropPrivileges(call);
  console.log("dropped");
} catch (error) {
  console.log(String(error));
}
