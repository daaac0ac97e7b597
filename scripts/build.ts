/** Builds `dist/roost`: one file that contains Bun, Roost, ONNX Runtime, the models, the personas and the skills. */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { hashInputs } from "./build-inputs.ts";
import { compile, HERE } from "./compile.ts";
import { recordStart } from "./record-start.ts";

const ROOT = resolve(import.meta.dir, "..");
const DIST = join(ROOT, "dist");
const BINARY = join(DIST, "roost");
const INPUTS = join(DIST, ".inputs");

/** Compiles elsewhere, then renames: a running binary is not disturbed, an aborted build leaves no half file. */
async function build(): Promise<void> {
  const inputs = hashInputs(ROOT);
  if (existsSync(BINARY) && existsSync(INPUTS) && (await Bun.file(INPUTS).text()) === inputs) return;

  mkdirSync(DIST, { recursive: true });
  removeAbortedBuilds();
  const folder = join(DIST, `.build-${process.pid}`);
  const progress = showProgress("building dist/roost");
  try {
    await compile(join(folder, "roost"), HERE, await recordStart(folder));
    renameSync(join(folder, "roost"), BINARY);
    writeFileSync(INPUTS, inputs);
  } catch (error) {
    progress.end("failed");
    throw error;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  progress.end(`${Math.round(statSync(BINARY).size / 1e6)} MB`);
}

function removeAbortedBuilds(): void {
  for (const name of readdirSync(DIST)) {
    const pid = /^\.build-(\d+)$/.exec(name)?.[1];
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(DIST, name), { recursive: true, force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function showProgress(what: string): { end(result: string): void } {
  const started = performance.now();
  const seconds = () => ((performance.now() - started) / 1000).toFixed(1);
  const terminal = process.stderr.isTTY;
  const write = (text: string) => process.stderr.write(text);
  if (!terminal) write(`${what}\n`);
  const timer = setInterval(() => terminal && write(`\r${what} … ${seconds()} s`), 100);
  return {
    end(result) {
      clearInterval(timer);
      write(`${terminal ? "\r" : ""}${what}: ${seconds()} s, ${result}\n`);
    },
  };
}

try {
  await build();
} catch (error) {
  console.error(error);
  process.exit(1);
}
