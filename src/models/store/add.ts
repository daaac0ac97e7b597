/** Puts a model together in a folder of work, tries it, and lets it appear. */
import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { shortageOf } from "../../lib/free-space.ts";
import { makePrivateFolder, syncFolder } from "../../lib/private-file.ts";
import { holdFile } from "../../storage/lock.ts";
import type { Dtype } from "./dtypes.ts";
import { type Facts, readFacts, UnusableModel } from "./inspect.ts";
import { type Manifest, type ModelFile, writeManifest } from "./manifest.ts";
import { listModels, MAX_MODELS, modelFolder, modelsFolder, workFolder } from "./store.ts";
import { type TrialOptions, tryOut } from "./trial.ts";

export interface ModelPlace {
  dataDir: string;
  /** Without `local:`. */
  name: string;
}

export type AddOptions = ModelPlace & TrialOptions;

/** What was added, and what it wrote on trial. */
export interface Added {
  manifest: Manifest;
  text: string;
  chatTemplate: boolean;
}

/** The name is taken by other work at this moment. */
export class BusyModel extends Error {}

/** Where a model's files are put before it appears. */
export const filesFolder = (dataDir: string, name: string): string => join(workFolder(dataDir, name), "files");

/**
 * Does the work while no other process adds or removes a model of this name. What it leaves in its folder stays for the
 * next time. Throws `BusyModel`.
 */
export async function whileHolding<T>({ dataDir, name }: ModelPlace, work: () => Promise<T>): Promise<T> {
  makePrivateFolder(workFolder(dataDir, name));
  const hold = holdFile(join(workFolder(dataDir, name), "lock"));
  if (hold === null) {
    throw new BusyModel(`another roost is working on ${name} at this moment; wait until it has ended`);
  }
  try {
    return await work();
  } finally {
    // What failed before it brought anything leaves nothing.
    if (!existsSync(filesFolder(dataDir, name))) await rm(workFolder(dataDir, name), { recursive: true, force: true });
    hold.release();
  }
}

/** Throws if the host has as many models as it may, and this one is not among them. */
export function requireFewModels({ dataDir, name }: ModelPlace): void {
  if (listModels(dataDir).filter(({ manifest }) => manifest.name !== name).length < MAX_MODELS) return;
  throw new UnusableModel(`the host has ${MAX_MODELS} models already; remove one first`);
}

/** Throws if the disk has no room for so many bytes more. */
export async function requireSpace(dataDir: string, bytes: number): Promise<void> {
  const shortage = await shortageOf(dataDir, bytes);
  if (shortage !== null) throw new UnusableModel(`it ${shortage}`);
}

/** More would be too slow on a processor, and take too much memory. */
const MAX_CONTEXT_TOKENS = 4_096;

/** Tries the model in its folder of work, and lets it appear in place of an earlier one. Throws `UnusableModel`. */
export async function finish(
  { dataDir, name, ...trial }: AddOptions,
  { dtype, files, source }: { dtype: Dtype; files: ModelFile[]; source: Manifest["source"] },
): Promise<Added> {
  const folder = filesFolder(dataDir, name);
  const facts = readFacts(folder);
  const contextTokens = Math.min(facts.contextTokens, MAX_CONTEXT_TOKENS);
  const { text, fast, callsTools } = await tryOut(
    { name, folder, dtype, contextTokens, fast: null },
    facts.shape,
    trial,
  );
  const { architecture, license, chatTemplate } = facts;
  const memoryBytes = memoryOf(files, facts, contextTokens, fast !== null);
  const addedAt = new Date().toISOString();
  const does = { contextTokens, memoryBytes, fast, callsTools };
  const manifest = { name, source, license, architecture, dtype, ...does, files, addedAt };
  writeManifest(folder, manifest);
  await appear(dataDir, name);
  return { manifest, text, chatTemplate };
}

/**
 * So many full contexts are kept in memory. A prompt with the descriptions of tools takes up to half of one, and to read it
 * anew takes a minute on one core: agents that take turns must not displace each other's.
 */
export const CACHED_CONTEXTS = 2;

/** A process with a tokenizer and ONNX Runtime. */
const PROCESS_BYTES = 224 * 1024 * 1024;
/** The runtime lays the weights out anew for its kernels, and keeps a part of the old ones. */
const WEIGHTS_FACTOR = 1.3;
/** transformers.js has the cache of the conversation that is at work twice more: as it comes out, and in between. */
const COPIES = 2;
const FLOAT_BYTES = 4;

/** An estimate of what the loaded model takes, with a full context. */
function memoryOf(files: ModelFile[], { shape }: Facts, contextTokens: number, isFast: boolean): number {
  const weights = files.reduce((sum, { path, size }) => sum + (path.startsWith("onnx/") ? size : 0), 0);
  const row = shape === undefined ? 0 : 2 * shape.layers * shape.kvHeads * shape.headDim * FLOAT_BYTES;
  const contexts = CACHED_CONTEXTS + (isFast ? 0 : COPIES);
  return Math.ceil(PROCESS_BYTES + weights * WEIGHTS_FACTOR + row * contextTokens * contexts);
}

async function appear(dataDir: string, name: string): Promise<void> {
  const [work, target] = [workFolder(dataDir, name), modelFolder(dataDir, name)];
  const old = join(work, "old");
  await rm(old, { recursive: true, force: true });
  if (existsSync(target)) await rename(target, old);
  await rename(filesFolder(dataDir, name), target);
  syncFolder(modelsFolder(dataDir));
  await rm(work, { recursive: true, force: true });
}
