import { join, resolve } from "node:path";
import type { Child, Outcome } from "../../src/sandbox/child.ts";
import { startLocked, type Time } from "../../src/sandbox/probe.ts";
import { createSandbox, type Sandbox, type SandboxOptions } from "../../src/sandbox/sandbox.ts";

export const never = new AbortController().signal;

/** A sandbox as the host has it, or with less time for each script, and every process that it starts. */
export function openSandbox({ time, ...options }: Partial<SandboxOptions> & { time?: Time } = {}): Sandbox & {
  started: Child[];
} {
  const started: Child[] = [];
  const sandbox = createSandbox({
    log: { warn() {} },
    accountOf: (instanceId) => instanceId,
    start(level) {
      const child = startLocked(level, null, undefined, time);
      started.push(child);
      return child;
    },
    ...options,
  });
  return { ...sandbox, started };
}

/** Runs statements; the outcome without what most tests have nothing of. */
export async function script(sandbox: Sandbox, source: string, input?: unknown): Promise<Outcome> {
  const json = input === undefined ? null : JSON.stringify(input);
  return await sandbox.run({ kind: "script", source, input: json }, { instanceId: "inst_a", signal: never });
}

const CHECKOUT = resolve(import.meta.dir, "../..");

/** Programs whose job is native code of a test: one locked like those for scripts, one not locked at all. */
export const NATIVE = nativeProgram("native-process.ts");
export const UNLOCKED = nativeProgram("unlocked-process.ts");

function nativeProgram(file: string) {
  return {
    command: [process.execPath, "--no-env-file", "--no-install", join(import.meta.dir, file)],
    readable: [CHECKOUT],
  };
}

export type Program = typeof NATIVE;

/** Runs the body of an async function that knows `call`, `ptr`, `cString`, `fs` and `memory` in such a program. */
export async function native(program: Program, source: string): Promise<Outcome> {
  const child = startLocked("landlock", null, program);
  return await child.run({ kind: "script", source, input: null }, never);
}

/** What it returned. Throws if it did not. */
export async function returned(program: Program, source: string): Promise<unknown> {
  const outcome = await native(program, source);
  if (outcome.type !== "result") throw new Error(JSON.stringify(outcome));
  return JSON.parse(outcome.json ?? "null");
}
