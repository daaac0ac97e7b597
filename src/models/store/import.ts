/** Adds a model from a folder on this machine. */
import { constants } from "node:fs";
import { copyFile, readdir, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { keepOwner, makePrivateFolder } from "../../lib/private-file.ts";
import { sha256Of } from "../local/files.ts";
import {
  type Added,
  type AddOptions,
  filesFolder,
  finish,
  requireFewModels,
  requireSpace,
  whileHolding,
} from "./add.ts";
import type { Dtype } from "./dtypes.ts";
import { pickFiles, readFacts, UnusableModel } from "./inspect.ts";
import type { ModelFile } from "./manifest.ts";
import { isSafePath } from "./names.ts";
import { findModel, missingFiles } from "./store.ts";

export interface ImportOptions extends AddOptions {
  /** In Hugging Face layout. */
  folder: string;
  dtype: Dtype | null;
  onProgress(done: number, total: number): void;
}

/** Copies the model's files; on a file system that can share them, without taking space. Throws `UnusableModel`. */
export async function importModel(options: ImportOptions): Promise<Added> {
  const { dataDir, name, folder, onProgress } = options;
  requireFewModels(options);
  const existing = findModel(dataDir, name);
  if (existing !== null && missingFiles(existing).length === 0) {
    throw new UnusableModel(`there is a model ${name} already; remove it first, or use --name`);
  }
  const { dtype, paths } = pickFiles(await pathsIn(folder), options.dtype);
  readFacts(folder); // refuses what is no text-generation model before anything is copied
  const sizes = await Promise.all(paths.map(async (path) => (await stat(join(folder, path))).size));
  const total = sizes.reduce((sum, size) => sum + size, 0);
  await requireSpace(dataDir, total);

  return whileHolding(options, async () => {
    const target = filesFolder(dataDir, name);
    await rm(target, { recursive: true, force: true });
    const files: ModelFile[] = [];
    let done = 0;
    try {
      for (const [at, path] of paths.entries()) {
        const copy = join(target, path);
        makePrivateFolder(dirname(copy));
        await copyFile(join(folder, path), copy, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
        keepOwner(target, copy);
        files.push({ path, size: (await stat(copy)).size, sha256: (await sha256Of(copy)) ?? "" });
        done += sizes[at] ?? 0;
        onProgress(done, total);
      }
      return await finish(options, { dtype, files, source: { folder: resolve(folder) } });
    } catch (error) {
      await rm(target, { recursive: true, force: true });
      throw error;
    }
  });
}

/** Files that a model may have, by their paths below the folder. Throws if it cannot be read. */
async function pathsIn(folder: string): Promise<string[]> {
  if (!(await stat(folder)).isDirectory()) {
    throw new UnusableModel("it is a file; give the folder that has the model's files, in Hugging Face layout");
  }
  const names = await readdir(folder);
  const below = names.includes("onnx") ? await readdir(join(folder, "onnx")) : [];
  return [...names, ...below.map((name) => `onnx/${name}`)].filter(isSafePath);
}
