/** Landlock: rules about files, TCP, abstract sockets and signals, which a process sets for itself and never gets rid of. */
import { ptr } from "bun:ffi";
import { cString } from "../lib/c-string.ts";
import { ERRNO } from "./protocol.ts";
import { must, type SystemCall } from "./system-calls.ts";

const CREATE_RULESET_VERSION = 1;
const RULE_PATH_BENEATH = 1;
const EXECUTE = 1n << 0n;
const READ_FILE = 1n << 2n;
const READ_DIR = 1n << 3n;
/** BIND_TCP and CONNECT_TCP. */
const NET = 3n;
/** ABSTRACT_UNIX_SOCKET and SIGNAL. */
const SCOPE = 3n;
/** From this version on, it has rules about TCP; older ones leave that to the filter of system calls. */
export const NETWORK_ABI = 4;
const AT_FDCWD = -100;
const O_PATH_CLOEXEC = 0o12000000;

/** The kernel's version of Landlock's interface; 0 if it has none, or if it is switched off. */
export const landlockAbi = (call: SystemCall): number =>
  Math.max(0, call("landlockCreateRuleset", 0, 0, CREATE_RULESET_VERSION));

/** Every right about files that this version knows. */
const fileRights = (abi: number): bigint => (abi >= 5 ? 0xffffn : abi >= 3 ? 0x7fffn : abi >= 2 ? 0x3fffn : 0x1fffn);

/**
 * Allows the calling thread, and what it starts from now on, to read and execute `readable` (files, and folders with all
 * below them) and no other file; with `"all"`, also no TCP, no abstract socket and no signal to the outside. Other threads
 * that already run are not bound (before Landlock 8), see stages.ts: rules about signals for one thread alone would cut it
 * off from the others.
 */
export function restrictToReading(call: SystemCall, readable: readonly string[], what: "files" | "all"): void {
  const abi = landlockAbi(call);
  if (abi === 0) throw new Error("the kernel has no Landlock");
  const all = what === "all";
  const handled = new BigUint64Array([
    fileRights(abi),
    all && abi >= NETWORK_ABI ? NET : 0n,
    all && abi >= 6 ? SCOPE : 0n,
  ]);
  const size = abi >= 6 ? 24 : abi >= NETWORK_ABI ? 16 : 8;
  const ruleset = must("landlock_create_ruleset", call("landlockCreateRuleset", ptr(handled), size, 0));
  for (const path of readable) {
    const name = cString(path);
    const fd = call("openat", AT_FDCWD, ptr(name), O_PATH_CLOEXEC);
    if (fd < 0) continue; // what is not there needs no rule
    const allow = (rights: bigint) => {
      const rule = new DataView(new ArrayBuffer(12)); // packed: 64 bits of rights, then a descriptor
      rule.setBigUint64(0, rights, true);
      rule.setInt32(8, fd, true);
      return call("landlockAddRule", ruleset, RULE_PATH_BENEATH, ptr(new Uint8Array(rule.buffer)), 0);
    };
    const asFolder = allow(EXECUTE | READ_FILE | READ_DIR);
    if (asFolder === -ERRNO.EINVAL) must(`the rule for ${path}`, allow(EXECUTE | READ_FILE));
    else must(`the rule for ${path}`, asFolder);
    call("close", fd);
  }
  must("landlock_restrict_self", call("landlockRestrictSelf", ruleset, 0));
  call("close", ruleset);
}
