/** What the store keeps about a model, beside its files, in `models/<name>/roost.json`. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { writePrivateFile } from "../../lib/private-file.ts";
import { DTYPE_NAMES } from "./dtypes.ts";
import { isSafePath, MODEL_NAME } from "./names.ts";

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

const CacheShape = z.lazy(() =>
  z.object({
    layers: z.int().positive(),
    kvHeads: z.int().positive(),
    headDim: z.int().positive(),
    vocabulary: z.int().positive(),
  }),
);

const Manifest = z.lazy(() =>
  z.object({
    name: z.string().regex(MODEL_NAME),
    source: z.union([
      z.object({ hub: z.string(), repository: z.string(), revision: z.string() }),
      z.object({ folder: z.string() }),
    ]),
    /** As the model's own page states it; null if it states none. */
    license: z.string().nullable(),
    /** Of transformers: `Qwen2ForCausalLM`. */
    architecture: z.string(),
    /** How its weights are written, in the words of transformers.js: `q4`. */
    dtype: z.enum(DTYPE_NAMES),
    /** Tokens of prompt and answer together. */
    contextTokens: z.int().positive(),
    /** Of memory, while it is loaded: an estimate. */
    memoryBytes: z.int().positive(),
    /** For the decoder with a shared cache; null if its graph has another form. */
    fast: z.object({ shape: CacheShape, positionIds: z.boolean(), logitsToKeep: z.boolean() }).nullable(),
    /** Whether it calls tools by its template; absent if it was added by a version that did not look. */
    callsTools: z.boolean().optional(),
    files: z.array(z.object({ path: z.string().refine(isSafePath), size: z.int().nonnegative(), sha256: Sha256 })),
    /** ISO 8601. */
    addedAt: z.string(),
  }),
);

export type Manifest = z.output<typeof Manifest>;
export type ModelFile = Manifest["files"][number];

/** Its name in the folder of its model. */
export const MANIFEST = "roost.json";
const MAX_MANIFEST_BYTES = 256 * 1024;

export const manifestPath = (folder: string): string => join(folder, MANIFEST);

/** Null if there is none in the folder, or none that can be read. */
export function readManifest(folder: string): Manifest | null {
  try {
    const text = readFileSync(manifestPath(folder), "utf8");
    return text.length > MAX_MANIFEST_BYTES ? null : (Manifest.safeParse(JSON.parse(text)).data ?? null);
  } catch {
    return null;
  }
}

export const writeManifest = (folder: string, manifest: Manifest): void =>
  writePrivateFile(manifestPath(folder), `${JSON.stringify(manifest, null, 2)}\n`);

export const sizeOf = ({ files }: Pick<Manifest, "files">): number => files.reduce((sum, { size }) => sum + size, 0);
