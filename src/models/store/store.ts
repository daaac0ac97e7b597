/**
 * The models that the operator has added: a folder for each in `models/` of the data folder, in Hugging Face layout, with
 * a manifest. A folder appears and disappears by a rename, so a running server finds a model whole or not at all.
 */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Manifest, readManifest } from "./manifest.ts";
import { MODEL_NAME } from "./names.ts";

export const modelsFolder = (dataDir: string): string => join(dataDir, "models");
export const modelFolder = (dataDir: string, name: string): string => join(modelsFolder(dataDir), name);
/** Where a model is put together before it appears. */
export const workFolder = (dataDir: string, name: string): string => join(modelsFolder(dataDir), ".work", name);

/** The host has at most so many models. */
export const MAX_MODELS = 100;

export interface StoredModel {
  manifest: Manifest;
  folder: string;
}

/** By name, without `local:`. */
export function listModels(dataDir: string): StoredModel[] {
  return namesIn(modelsFolder(dataDir)).flatMap((name) => findModel(dataDir, name) ?? []);
}

/** Null if there is no model of this name. */
export function findModel(dataDir: string, name: string): StoredModel | null {
  if (!MODEL_NAME.test(name)) return null;
  const folder = modelFolder(dataDir, name);
  const manifest = readManifest(folder);
  return manifest?.name === name ? { manifest, folder } : null;
}

/** Names of models whose download has begun and not ended. */
export const unfinishedModels = (dataDir: string): string[] => namesIn(join(modelsFolder(dataDir), ".work"));

/**
 * Files that are missing or have another size. After a backup was restored, all of them are: it holds the manifests, from
 * which a model can be fetched again.
 */
export const missingFiles = ({ manifest, folder }: StoredModel): string[] =>
  manifest.files
    .filter(({ path, size }) => statSync(join(folder, path), { throwIfNoEntry: false })?.size !== size)
    .map(({ path }) => path);

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => MODEL_NAME.test(name))
      .sort();
  } catch {
    return [];
  }
}
