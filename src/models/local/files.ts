/**
 * Where the models and ONNX Runtime lie on disk. From source they are in the checkout; a compiled binary unpacks its
 * own once, since a library can only be loaded from a file, and a model loaded from a file needs 85–165 MiB less memory
 * than one from a buffer.
 */
import { chmod, mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";

export interface ModelFiles {
  /** Holds a folder for each model, in Hugging Face layout. */
  modelsFolder: string;
  /** ONNX Runtime's shared library. */
  library: string;
}

const UNPACKED_PREFIX = "models-";
const OLD_AFTER_MS = 3_600_000;

export async function locateModelFiles(cacheDir: string): Promise<ModelFiles> {
  if (!import.meta.path.includes("$bunfs")) return filesOfCheckout();
  const { embeddedFiles } = await import("./embedded.ts");
  const folder = await unpack(embeddedFiles, cacheDir);
  // The build makes onnxruntime-node open this path in place of a `require`; set before transformers.js is imported.
  Object.assign(globalThis, { __ORT_BINDING: join(folder, "native/onnxruntime_binding.node") });
  return { modelsFolder: join(folder, "models"), library: join(folder, "native/libonnxruntime.so.1") };
}

function filesOfCheckout(): ModelFiles {
  const binaries = resolve(dirname(Bun.resolveSync("onnxruntime-node/package.json", import.meta.dir)), "bin/napi-v6");
  const names: Record<string, string> = { darwin: "libonnxruntime.1.dylib", win32: "onnxruntime.dll" };
  return {
    modelsFolder: resolve(import.meta.dir, "../../../models"),
    library: join(binaries, process.platform, process.arch, names[process.platform] ?? "libonnxruntime.so.1"),
  };
}

/**
 * Unpacks `files` (name → where to read it) into a folder of `cacheDir` named for their contents, and gives that folder.
 * The folder appears whole, by one rename: two processes may unpack at once, and a crash leaves nothing half done.
 */
export async function unpack(files: Readonly<Record<string, string>>, cacheDir: string): Promise<string> {
  // The bundler puts a hash of the content into an embedded file's path: a changed file makes another folder.
  const contents = Object.entries(files).map(([name, path]) => `${name} ${path} ${Bun.file(path).size}`);
  const folder = join(cacheDir, UNPACKED_PREFIX + Bun.hash(contents.join("\n")).toString(36));
  if (await isWhole(folder, files)) return folder;

  await mkdir(cacheDir, { recursive: true, mode: 0o700 });
  const fresh = `${folder}.${process.pid}.tmp`;
  await rm(fresh, { recursive: true, force: true });
  for (const [name, path] of Object.entries(files)) {
    const target = join(fresh, name);
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    await Bun.write(target, Bun.file(path));
    await chmod(target, 0o600);
  }
  await replaceFolder(fresh, folder, files);
  await removeOld(cacheDir, folder);
  return folder;
}

async function replaceFolder(fresh: string, folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  if (!(await isWhole(folder, files))) await rm(folder, { recursive: true, force: true });
  try {
    await rename(fresh, folder);
  } catch (error) {
    await rm(fresh, { recursive: true, force: true });
    if (!(await isWhole(folder, files))) throw error; // otherwise another process was first
  }
}

async function isWhole(folder: string, files: Readonly<Record<string, string>>): Promise<boolean> {
  const sizes = Object.entries(files).map(async ([name, path]) => {
    const found = await stat(join(folder, name)).catch(() => undefined);
    return found?.size === Bun.file(path).size;
  });
  return (await Promise.all(sizes)).every(Boolean);
}

/** Folders of other versions, 160 MB each. Young ones stay: another process may be about to open them. */
async function removeOld(cacheDir: string, current: string): Promise<void> {
  for (const name of await readdir(cacheDir)) {
    const folder = join(cacheDir, name);
    if (!name.startsWith(UNPACKED_PREFIX) || folder === current) continue;
    // Gone already where another process has moved or removed it meanwhile.
    const found = await stat(folder).catch(() => undefined);
    if (found && Date.now() - found.mtimeMs > OLD_AFTER_MS) await rm(folder, { recursive: true, force: true });
  }
}
