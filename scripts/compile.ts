import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { bundleConsole } from "../src/console/bundle.ts";
import { CHAT_MODEL, CHAT_MODEL_FILE } from "../src/models/local/files.ts";
import { embedConsole, embedModels } from "./build-plugin.ts";
import { splitWeights } from "./split-weights.ts";

const ROOT = resolve(import.meta.dir, "..");

/** The binary's own entry point, and those of the threads it starts (`new Worker`). */
const ENTRY_POINTS = [
  "src/main.ts",
  "src/runtime/worker.ts",
  "src/tools/page/worker.ts",
  "src/memory/search/worker.ts",
  "src/models/local/session-thread.ts",
];
/** Readable in the binary through `src/lib/embedded-folder.ts`. */
const EMBEDDED_FOLDERS = ["workspaces", "skills"];

/** How many times more often than usual code must run before the JIT compiles it. */
const START_JIT_POLICY = 30;

/** What an executable is for. */
export interface Platform {
  os: "linux" | "darwin";
  arch: "x64" | "arm64";
}

export const HERE = { os: process.platform, arch: process.arch } as Platform;

/**
 * Compiles the sources into one executable; for another platform, it fetches that platform's Bun from the package registry.
 * `order` is the file by `recordStart` that its code is laid out by, or null. Returns the paths of the files that it is
 * made of.
 */
export async function compile(outfile: string, platform: Platform, order: string | null): Promise<string[]> {
  await mkdir(dirname(outfile), { recursive: true });
  const folder = await mkdtemp(`${outfile}.split-`);
  try {
    const split = await splitWeights(join(ROOT, "models", CHAT_MODEL, CHAT_MODEL_FILE), folder);
    return await bundle(outfile, platform, order, split);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function bundle(
  outfile: string,
  platform: Platform,
  bytecodeOrder: string | null,
  split: readonly string[],
): Promise<string[]> {
  const isHere = platform.os === HERE.os && platform.arch === HERE.arch;
  const consoleFiles = await bundleConsole();
  const { metafile } = await Bun.build({
    entrypoints: ENTRY_POINTS.map((path) => join(ROOT, path)),
    // Entry points in the binary are addressed relative to this folder: `./runtime/worker.ts`.
    root: join(ROOT, "src"),
    compile: {
      outfile,
      assets: EMBEDDED_FOLDERS.map((path) => join(ROOT, path)),
      // Files in the folder that the binary is started from must not change what it does.
      autoloadDotenv: false,
      autoloadBunfig: false,
      // What a start uses lies together, so less of the file is read: saves `serve` 6 MiB and a few milliseconds.
      bytecodeOrder,
      // What runs a few times is not compiled to machine code, until main.ts or serve.ts asks for it: saves `serve` a
      // quarter of its CPU time and 2 MiB.
      jitPolicy: START_JIT_POLICY,
      ...(isHere ? {} : { target: `bun-${platform.os}-${platform.arch}` as Bun.Build.CompileTarget }),
    },
    target: "bun",
    format: "esm",
    bytecode: true,
    minify: true,
    metafile: true,
    // Code that a process does not import is not even read: saves `serve` 15 ms and 9 MiB.
    splitting: true,
    define: { "process.env.NODE_ENV": '"production"' },
    plugins: [embedModels(ROOT, platform, split), embedConsole(consoleFiles)],
  });
  return Object.keys(metafile?.inputs ?? {});
}
