/** What holds on this machine: found out by trying, in a process that is locked as those for scripts are. */

import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { messageOf } from "../lib/message-of.ts";
import { type Child, startChild } from "./child.ts";
import { type Attempts, ERRNO, LIMITS, type Start, scriptNiceness, type Tries } from "./protocol.ts";

/**
 * What a script's process is locked with (docs/contract/runtime.md, Scripts). `landlock`: Landlock, and a filter of system
 * calls. `bubblewrap`: namespaces of its own instead of Landlock, and the same filter. `none`: no scripts are run.
 */
export type Level = "landlock" | "bubblewrap" | "none";

export interface Probe {
  level: Level;
  /** For the operator: what holds, or why nothing does. */
  detail: string;
}

/** The command that this program is started with again: the executable itself, or Bun and the source. */
const SOURCE = import.meta.path.includes("$bunfs") ? null : resolve(import.meta.dir, "..");
const SELF =
  SOURCE === null ? [process.execPath] : [process.execPath, "--no-env-file", "--no-install", join(SOURCE, "main.ts")];

/** Another program than this one, for tests: how it is started, and what it is loaded from. */
export interface Program {
  command: string[];
  readable: string[];
}

/** Bun looks for packages in the whole checkout; a binary is loaded from itself alone. */
const OWN_PROGRAM: Program = { command: SELF, readable: SOURCE === null ? [] : [dirname(SOURCE)] };

/** How long a script may take: in processor time, and in all. */
export interface Time {
  cpuSeconds: number;
  runMs: number;
}

/** Starts a process that is locked to this level; with a port, one that probes. */
export function startLocked(
  level: Exclude<Level, "none">,
  probe: number | null = null,
  program: Program = OWN_PROGRAM,
  time: Time = LIMITS,
): Child {
  const inside = level === "bubblewrap";
  const start: Start = {
    ...program,
    landlock: level === "landlock",
    niceness: scriptNiceness(),
    parent: inside ? null : process.pid,
    cpuSeconds: time.cpuSeconds,
    probe,
  };
  const { runMs } = time;
  const command = [...program.command, ENTRY_ROLE, JSON.stringify(start)];
  return inside
    ? startChild(inBubblewrap(program, command), { runMs, ownSession: true })
    : startChild(command, { runMs });
}

/** The role that locks itself and becomes the other one, see main.ts. */
const ENTRY_ROLE = "sandbox-enter";

function inBubblewrap({ command: [executable = ""], readable }: Program, command: string[]): string[] {
  const bwrap = Bun.which("bwrap") ?? "bwrap";
  const visible = [executable, ...readable, "/lib", "/lib64", "/usr/lib", "/usr/lib64"].filter((path) =>
    existsSync(path),
  );
  return [
    bwrap,
    ..."--unshare-all --die-with-parent --new-session --clearenv --cap-drop ALL --proc /proc --dev /dev".split(" "),
    ...visible.flatMap((path) => ["--ro-bind", path, path]),
    ..."--chdir / --".split(" "),
    ...command,
  ];
}

/** What the numbers of system calls are known for (system-calls.ts). */
const ARCHITECTURES: readonly string[] = ["x64", "arm64"];

/**
 * The level of this machine. Takes as long as one process takes to start and to try: some tens of milliseconds, three times
 * that at most.
 */
export async function probeLevel(program?: Program): Promise<Probe> {
  if (process.platform !== "linux" || !ARCHITECTURES.includes(process.arch)) {
    const detail = `scripts are run on Linux only (x64 or arm64), and this is ${process.platform} ${process.arch}`;
    return { level: "none", detail };
  }
  const problems: string[] = [];
  for (const level of ["landlock", "bubblewrap"] as const) {
    if (level === "bubblewrap" && Bun.which("bwrap") === null) {
      problems.push("bubblewrap (bwrap) is not installed");
      continue;
    }
    const { attempts, reached, fault } = await attempt(level, program);
    const hole = attempts === null ? fault : findHole(level, attempts, reached);
    if (hole === null) return { level, detail: detailOf(level, attempts?.landlockAbi ?? 0) };
    problems.push(`${level}: ${hole}`);
  }
  return { level: "none", detail: problems.join("; ") };
}

const detailOf = (level: Level, abi: number): string =>
  level === "landlock" ? `Landlock ${abi} and seccomp hold` : "bubblewrap and seccomp hold";

async function attempt(level: Exclude<Level, "none">, program?: Program) {
  let reached = false;
  // A real listener: that nobody answers at a port would prove nothing.
  using listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        reached = true;
        socket.end();
      },
      data() {},
    },
  });
  try {
    const child = startLocked(level, listener.port, program);
    const attempts = await child.probed;
    child.kill();
    await child.gone;
    return { attempts, reached, fault: child.fault() ?? "its process died as it started" };
  } catch (error) {
    return { attempts: null, reached, fault: messageOf(error) };
  }
}

/**
 * How the host's process is kept from a script. Where /proc is mounted with `hidepid`, as systemd's `ProtectProc=` does, a
 * process that Landlock keeps from tracing the host does not even see it.
 */
const HIDDEN: ReadonlySet<number> = new Set([ERRNO.EACCES, ERRNO.ENOENT, ERRNO.EPERM]);

/** What would let a script out; null if nothing does. */
function findHole(
  level: Exclude<Level, "none">,
  { landlockAbi, outer, filtered }: Attempts,
  reached: boolean,
): string | null {
  if (reached) return "a process inside reached the network";
  const through = (tries: Tries) =>
    Object.entries(tries).find(([, result]) => result !== null && !(Number(result) < 0))?.[0];
  const passed = through(filtered);
  if (passed !== undefined) return `the filter of system calls let ${passed} through`;
  const refused = Object.entries(filtered).find(([, result]) => result !== -ERRNO.EPERM)?.[0];
  if (refused !== undefined) return `the filter of system calls did not see ${refused}`;
  // Signal and connect are Landlock's since its later versions, and the filter's in any case.
  const { read, readParent, write, execute, connect, signal } = outer;
  if (level === "landlock") {
    // Where everything is read-only, nothing is written in any case.
    const written = write === -ERRNO.EROFS ? -ERRNO.EACCES : write;
    const mine = [read, written, execute, ...(landlockAbi >= 4 ? [connect] : [])];
    if (mine.some((result) => result !== -ERRNO.EACCES) || !HIDDEN.has(-readParent))
      return `Landlock let something through: ${show(outer)}`;
    if (landlockAbi >= 6 && signal !== -ERRNO.EPERM) return `Landlock let a signal through: ${show(outer)}`;
    return null;
  }
  return read < 0 && write < 0 && connect !== null && connect < 0 && execute < 0
    ? null
    : `bubblewrap let something through: ${show(outer)}`;
}

const show = (tries: Tries): string => JSON.stringify(tries);
