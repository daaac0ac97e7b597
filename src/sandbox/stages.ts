/**
 * The process that runs one script, in two stages. Landlock binds only the thread that calls it (before its version 8), and
 * Bun has other threads before the first line of a program runs. So the first stage allows itself nothing but to read its
 * own executable, and starts that again in its place: `execve` ends every other thread, and all threads of the new image are
 * born inside. The second stage loads QuickJS, gives up the executable too, filters system calls on all threads at once, and
 * only then reads the script. From there on, its two pipes are all it has.
 */

import { ptr } from "bun:ffi";
import { closeSync, readFileSync, readSync, writeFileSync, writeSync } from "node:fs";
import { cString } from "../lib/c-string.ts";
import { messageOf } from "../lib/message-of.ts";
import { volunteerForOutOfMemory } from "../lib/out-of-memory.ts";
import { tryForbidden } from "./attempts.ts";
import { landlockAbi, NETWORK_ABI, restrictToReading } from "./landlock.ts";
import { type Attempts, type Frame, LIMITS, MIB_BYTES, type Start } from "./protocol.ts";
import { filterSystemCalls } from "./seccomp.ts";
import { dropPrivileges, limit, must, openSystemCalls, pageBytes, type SystemCall } from "./system-calls.ts";

/** Of a bubblewrap session among all sessions. */
const AUTOGROUP_NICENESS = 10;
/** How long it works at a stretch, in nanoseconds: longer than others, who then need not wait for the end of it. */
const STRETCH_NS = 10_000_000n;
/** What JavaScriptCore needs besides the script's memory. */
const OWN_BYTES = 48 * MIB_BYTES;
const FILES_WHILE_LOADING = 64;

/** Locks what must be locked before the program starts anew, and starts it with `role`. Never returns. */
export function enterSandbox(role: string, startJson: string): never {
  try {
    return enter(role, startJson);
  } catch (error) {
    return giveUp(error);
  }
}

/** Tells the host why, as long as nothing of a script is here. */
function giveUp(error: unknown): never {
  send({ type: "fault", reason: messageOf(error) });
  process.exit(1);
}

function enter(role: string, startJson: string): never {
  const start: Start = JSON.parse(startJson);
  const call = openSystemCalls();
  volunteerForOutOfMemory(1_000);
  yieldToHost(call, start);
  limit(call, "core", 0);
  limit(call, "fsize", 0);
  limit(call, "nofile", FILES_WHILE_LOADING);
  limit(call, "cpu", start.cpuSeconds, start.cpuSeconds + 1);
  const sizesName = cString("/proc/self/statm");
  // Without O_CLOEXEC: the second stage may not open it any more.
  const sizes = must("opening /proc/self/statm", call("openat", 0, ptr(sizesName), 0));
  dropPrivileges(call);
  // The host may have died before the line above.
  if (start.parent !== null && call("getppid") !== start.parent) process.exit(1);
  if (start.landlock) {
    // JavaScriptCore asks libc where its stack is, which reads the maps, and aborts if it gets no answer.
    restrictToReading(call, [...mappedFiles(), "/proc/self/maps", ...start.readable], "all");
  }
  const words = [...start.command, role, startJson, String(sizes)].map(cString);
  const [path] = words;
  if (path === undefined) throw new Error("there is no command to start");
  const argv = new BigUint64Array([...words.map((word) => BigInt(ptr(word))), 0n]);
  const environment = new BigUint64Array([0n]);
  throw new Error(`execve failed with errno ${-call("execve", ptr(path), ptr(argv), ptr(environment))}`);
}

/**
 * Where Linux has autogroups, it shares the processor among sessions first, and a process's priority counts only within
 * its session. So this one stays in the host's, in a group of its own, which interrupts of its terminal do not reach.
 * Bubblewrap has begun another session: there the session itself has to yield.
 */
function yieldToHost(call: SystemCall, { landlock, niceness }: Start): void {
  call("setpriority", 0, 0, niceness);
  workInStretches(call, niceness);
  if (landlock) {
    call("setpgid", 0, 0);
    return;
  }
  try {
    writeFileSync("/proc/self/autogroup", String(AUTOGROUP_NICENESS));
  } catch {
    // There are none, or too many processes ask at once.
  }
}

/**
 * A priority decides how much of the processor a process gets, not when: who wakes up waits for the end of the stretch that
 * a script is in, some milliseconds at each step of a message. Since Linux 6.12, who asks for shorter stretches than the
 * one that works does not wait. Before, nothing changes.
 */
function workInStretches(call: SystemCall, niceness: number): void {
  const attributes = new DataView(new ArrayBuffer(48)); // struct sched_attr, with policy 0: an ordinary process
  attributes.setUint32(0, attributes.byteLength, true);
  attributes.setInt32(16, niceness, true);
  attributes.setBigUint64(24, STRETCH_NS, true);
  call("schedSetattr", 0, ptr(attributes), 0);
}

/** The executable and its shared libraries. */
const mappedFiles = (): string[] => [
  ...new Set(Array.from(readFileSync("/proc/self/maps", "latin1").matchAll(/ (\/.*)$/gm), ([, path = ""]) => path)),
];

/** Given the job's text, and a way to send frames. */
export type Work = (job: string, send: (frame: Frame) => void) => void | Promise<void>;

/**
 * Locks the rest, then waits for a job, gives it to the work, and exits. Or, if told to probe, tries what is forbidden.
 * `prepare` runs before the process is locked, while files can still be read.
 */
export async function workInSandbox(startJson: string, sizes: number, prepare: () => Promise<Work>): Promise<never> {
  const start: Start = JSON.parse(startJson);
  const call = openSystemCalls();
  const { work, attempts } = await prepareAndLock();
  if (attempts !== null) send({ type: "probed", attempts });
  else await serve(work);
  // At once: an orderly exit would need more than the filter allows.
  call("exitGroup", 0);
  throw new Error("this process should have ended");

  async function prepareAndLock() {
    try {
      return { work: await prepare(), attempts: lock(call, start, sizes) };
    } catch (error) {
      return giveUp(error);
    }
  }
}

async function serve(work: Work): Promise<void> {
  send({ type: "ready" });
  const job = readAll();
  if (job !== "") await work(job, send);
}

/** Returns what was tried, if it was told to try. */
function lock(call: SystemCall, start: Start, sizes: number): Attempts | null {
  limitMemory(call, sizes);
  const abi = landlockAbi(call);
  if (start.landlock) restrictToReading(call, [], "files");
  const { parent, landlock, command, probe: port } = start;
  // This program has just given up itself, and is everywhere; bubblewrap shows it, and no shell.
  const executable = landlock ? (command[0] ?? "") : "/bin/sh";
  const folders = landlock ? ["/tmp", "/dev/shm", "/var/tmp", "/"] : ["/tmp"];
  const tryAll = (port: number | null, filtered: boolean) =>
    tryForbidden(call, { parent, port, executable, folders, filtered });
  const outer = port === null ? null : tryAll(landlock && abi < NETWORK_ABI ? null : port, false);
  // No new descriptor of any kind, so no UDP socket either. Not earlier: without a descriptor, nothing else is tried.
  limit(call, "nofile", 0);
  filterSystemCalls(call);
  return outer && { landlockAbi: abi, outer, filtered: tryAll(port, true) };
}

/**
 * JavaScriptCore reserves gigabytes of addresses that it never touches. So the limits can only be what is mapped now, and a
 * little more.
 */
function limitMemory(call: SystemCall, sizes: number): void {
  const pages = Buffer.alloc(256);
  const [total = 0, , , , , data = 0] = pages.toString("latin1", 0, readSync(sizes, pages)).split(" ").map(Number);
  closeSync(sizes);
  const more = LIMITS.scriptBytes + OWN_BYTES;
  const unit = pageBytes();
  limit(call, "as", total * unit + more);
  limit(call, "data", data * unit + more);
}

const STDIN = 0;
const STDOUT = 1;

/** Everything up to the end of the input; empty if the host has died. */
function readAll(): string {
  const parts: Buffer[] = [];
  for (;;) {
    const part = Buffer.allocUnsafe(65_536);
    const count = readSync(STDIN, part);
    if (count === 0) return Buffer.concat(parts).toString();
    parts.push(part.subarray(0, count));
  }
}

function send(frame: Frame): void {
  let rest = Buffer.from(`${JSON.stringify(frame)}\n`);
  while (rest.length > 0) rest = rest.subarray(writeSync(STDOUT, rest));
}
