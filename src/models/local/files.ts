/**
 * Where the models and ONNX Runtime are on disk. From source they are in the checkout. A compiled binary unpacks its
 * own once: a library can only be loaded from a file, and a model loaded from a file needs 85–165 MiB less memory than
 * one from a buffer. Before a file is loaded, its hash is compared with the one that the build computed.
 */
import { chmod, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { keepOwner, makePrivateFolder } from "../../lib/private-file.ts";
import type { EmbeddedFiles } from "./embedded.ts";
import { LIBRARY } from "./library.ts";

export interface ModelFiles {
  /** Holds a folder for each model, in Hugging Face layout. */
  modelsFolder: string;
  /** ONNX Runtime's shared library. */
  library: string;
  /**
   * Call it before loading files whose names begin with this prefix, `native/` or `models/<name>/`. A file that was
   * changed on disk is unpacked again, once; throws if it still differs.
   */
  verify(beginning: string): Promise<void>;
}

export const CHAT_MODEL = "smollm2-135m-instruct";
/** In the folder of the chat model. */
export const CHAT_MODEL_FILE = "onnx/model_q4.onnx";
const UNPACKED_PREFIX = "models-";
const OLD_AFTER_MS = 3_600_000;
const READ_BYTES = 1024 * 1024;

export async function locateModelFiles(cacheDir: string): Promise<ModelFiles> {
  if (!import.meta.path.includes("$bunfs")) return filesOfCheckout();
  const { embeddedFiles } = await import("./embedded.ts");
  const folder = await unpack(embeddedFiles, cacheDir);
  // The build makes onnxruntime-node open this path in place of a `require`; set before transformers.js is imported.
  Object.assign(globalThis, { __ORT_BINDING: join(folder, "native/onnxruntime_binding.node") });
  return {
    modelsFolder: join(folder, "models"),
    library: join(folder, "native", LIBRARY),
    verify: (beginning) => verify(embeddedFiles, folder, beginning),
  };
}

function filesOfCheckout(): ModelFiles {
  const binaries = resolve(dirname(Bun.resolveSync("onnxruntime-node/package.json", import.meta.dir)), "bin/napi-v6");
  return {
    modelsFolder: resolve(import.meta.dir, "../../../models"),
    library: join(binaries, process.platform, process.arch, LIBRARY),
    verify: async () => {}, // nothing was unpacked
  };
}

/**
 * Unpacks `files` into a folder of `cacheDir` named for their contents, and returns that folder. One rename makes it
 * appear complete: several processes may unpack at once, and a crash leaves nothing half done.
 */
export async function unpack(files: EmbeddedFiles, cacheDir: string): Promise<string> {
  const contents = Object.entries(files).map(([name, { sha256 }]) => `${name} ${sha256}`);
  const digest = new Bun.CryptoHasher("sha256").update(contents.join("\n")).digest("hex");
  const folder = join(cacheDir, UNPACKED_PREFIX + digest.slice(0, 16));
  makePrivateFolder(cacheDir);
  await chmod(cacheDir, 0o700);
  if (await isWhole(folder, files)) return folder;

  const fresh = `${folder}.${process.pid}.tmp`;
  await rm(fresh, { recursive: true, force: true });
  try {
    for (const [name, { path }] of Object.entries(files)) await write(path, join(fresh, name));
    await putInPlace(fresh, folder, files);
  } finally {
    // On a full disk, what was unpacked so far is the space that everything else waits for.
    await rm(fresh, { recursive: true, force: true });
  }
  await removeOld(cacheDir, folder);
  return folder;
}

/** Like `ModelFiles.verify`, for files that `unpack` has put into `folder`. */
export async function verify(files: EmbeddedFiles, folder: string, beginning: string): Promise<void> {
  for (const [name, { path, sha256 }] of Object.entries(files)) {
    if (!name.startsWith(beginning)) continue;
    const target = join(folder, name);
    if ((await sha256Of(target)) === sha256) continue;
    // A thread of this process may do the same at this moment.
    const fresh = `${target}.${crypto.randomUUID()}.tmp`;
    await write(path, fresh);
    await rename(fresh, target); // files that another process has loaded stay as they are
    const found = await sha256Of(target);
    if (found === sha256) continue;
    throw new Error(
      `${target} is not what was unpacked: expected SHA-256 ${sha256}, found ${found}, even after unpacking it again. ` +
        "The disk is failing, or another program writes there.",
    );
  }
}

async function write(from: string, target: string): Promise<void> {
  makePrivateFolder(dirname(target));
  await Bun.write(target, Bun.file(from));
  await chmod(target, 0o600);
  keepOwner(dirname(target), target);
}

/** A megabyte at a time, so that no model is held in memory only to hash it. */
export async function sha256Of(path: string): Promise<string | undefined> {
  const file = await open(path).catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const hash = new Bun.CryptoHasher("sha256");
    const buffer = Buffer.allocUnsafe(READ_BYTES);
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, READ_BYTES);
      if (bytesRead === 0) return hash.digest("hex");
      hash.update(buffer.subarray(0, bytesRead));
    }
  } finally {
    await file.close();
  }
}

/** Never removes what is there: another process may have unpacked it just now, and be about to load it. */
async function putInPlace(fresh: string, folder: string, files: EmbeddedFiles): Promise<void> {
  const isNew = await rename(fresh, folder).then(
    () => true,
    () => false,
  );
  if (isNew) return;
  for (const [name, { path }] of Object.entries(files)) {
    const target = join(folder, name);
    if (await hasSize(target, path)) continue;
    makePrivateFolder(dirname(target));
    await rename(join(fresh, name), target);
  }
}

/** By names and sizes: contents are checked when they are loaded. */
async function isWhole(folder: string, files: EmbeddedFiles): Promise<boolean> {
  const have = Object.entries(files).map(([name, { path }]) => hasSize(join(folder, name), path));
  return (await Promise.all(have)).every(Boolean);
}

async function hasSize(target: string, path: string): Promise<boolean> {
  const found = await stat(target).catch(() => undefined);
  return found?.size === Bun.file(path).size;
}

/**
 * Removes the folders of other versions, 160 MB each, except recent ones, which another process may be about to open.
 */
async function removeOld(cacheDir: string, current: string): Promise<void> {
  for (const name of await readdir(cacheDir)) {
    const folder = join(cacheDir, name);
    if (!name.startsWith(UNPACKED_PREFIX) || folder === current) continue;
    // Another process may have moved or removed it already, and what another user has left there is in nobody's way.
    const found = await stat(folder).catch(() => undefined);
    if (found === undefined || Date.now() - found.mtimeMs <= OLD_AFTER_MS) continue;
    await rm(folder, { recursive: true, force: true }).catch(() => undefined);
  }
}
