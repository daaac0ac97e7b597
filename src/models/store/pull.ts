/** Adds a model from the hub. What has arrived when it is interrupted stays, and the next pull continues from there. */
import { existsSync, readFileSync } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { writePrivateFile } from "../../lib/private-file.ts";
import {
  type Added,
  type AddOptions,
  filesFolder,
  finish,
  requireFewModels,
  requireSpace,
  whileHolding,
} from "./add.ts";
import { download } from "./download.ts";
import type { Dtype } from "./dtypes.ts";
import { type Hub, HubError, type HubFile } from "./hub.ts";
import { pickFiles, UnusableModel } from "./inspect.ts";
import type { ModelFile } from "./manifest.ts";
import { isSafePath } from "./names.ts";
import { findModel, missingFiles, workFolder } from "./store.ts";

export interface PullOptions extends AddOptions {
  hub: Hub;
  /** Of the hub, for the manifest. */
  hubUrl: string;
  repository: string;
  dtype: Dtype | null;
  signal: AbortSignal;
  /** Bytes of all files. Called first with what is there already. */
  onProgress(done: number, total: number): void;
  onRetry(reason: string): void;
  backOffMs?: number;
}

const MAX_MODEL_BYTES = 256e9;
const MAX_SMALL_BYTES = 64 * 1024 * 1024;

/** Null if the model is there already, in the hub's newest revision. Throws `HubError` or `UnusableModel`. */
export async function pullModel(options: PullOptions): Promise<Added | null> {
  const { dataDir, name, hub, hubUrl, repository, signal } = options;
  requireFewModels(options);
  return whileHolding(options, async () => {
    const revision = await hub.revision(repository, signal);
    const source = { hub: hubUrl, repository, revision };
    const existing = findModel(dataDir, name);
    if (existing !== null) {
      const { manifest } = existing;
      const same = "repository" in manifest.source && manifest.source.repository === repository;
      if (!same) throw new UnusableModel(`there is another model ${name} already; remove it first, or use --name`);
      const isNewest = "revision" in manifest.source && manifest.source.revision === revision;
      const isWanted = options.dtype === null || options.dtype === manifest.dtype;
      if (isNewest && isWanted && missingFiles(existing).length === 0) {
        await rm(workFolder(dataDir, name), { recursive: true, force: true });
        return null;
      }
    }
    // Of what the hub lists, only names that belong to a model are looked at.
    const listed = (await hub.files(repository, revision, signal)).filter(({ path }) => isSafePath(path));
    const { dtype, paths } = pickFiles(
      listed.map(({ path }) => path),
      options.dtype,
    );
    const wanted = paths.flatMap((path) => listed.find((file) => file.path === path) ?? []);
    refuseGiant(wanted, repository);
    await keepOrDrop(options, { revision, dtype });
    const folder = filesFolder(dataDir, name);
    const there = await Promise.all(wanted.map((file) => bytesThere(folder, file)));
    const total = wanted.reduce((sum, { size }) => sum + size, 0);
    await requireSpace(dataDir, total - there.reduce((sum, bytes) => sum + bytes, 0));
    const files: ModelFile[] = [];
    const done = [...there];
    const report = () =>
      options.onProgress(
        done.reduce((sum, bytes) => sum + bytes, 0),
        total,
      );
    report();
    for (const [at, file] of wanted.entries()) {
      files.push(
        await download(file, {
          ...options,
          revision,
          folder,
          onBytes(bytes) {
            done[at] = bytes;
            report();
          },
        }),
      );
      done[at] = file.size;
      report();
    }
    return finish(options, { dtype, files, source });
  });
}

function refuseGiant(files: HubFile[], repository: string): void {
  const total = files.reduce((sum, { size }) => sum + size, 0);
  const giant = files.find(({ path, size }) => !path.startsWith("onnx/") && size > MAX_SMALL_BYTES);
  if (giant !== undefined)
    throw new HubError(`${giant.path} of ${repository} has ${giant.size} bytes: that is no such file`);
  if (total > MAX_MODEL_BYTES)
    throw new HubError(`${repository} has ${total} bytes, which is more than a model may have`);
}

const Plan = z.object({ hub: z.string(), repository: z.string(), revision: z.string(), dtype: z.string() });

/** Parts of another revision's files are no beginning of this one's, and another form's weights do not belong to it. */
async function keepOrDrop(
  { dataDir, name, hubUrl, repository }: PullOptions,
  { revision, dtype }: { revision: string; dtype: Dtype },
): Promise<void> {
  const path = join(workFolder(dataDir, name), "plan.json");
  const plan = Plan.safeParse(existsSync(path) ? jsonIn(path) : null).data;
  const isSame = plan?.hub === hubUrl && plan.repository === repository && plan.revision === revision;
  if (isSame && plan.dtype === dtype) return;
  await rm(filesFolder(dataDir, name), { recursive: true, force: true });
  writePrivateFile(path, JSON.stringify({ hub: hubUrl, repository, revision, dtype }));
}

function jsonIn(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return null;
  }
}

/** Of a file, whole or in part. */
async function bytesThere(folder: string, { path, size }: HubFile): Promise<number> {
  for (const name of [path, `${path}.part`]) {
    const found = await stat(join(folder, name)).catch(() => null);
    if (found !== null && found.size <= size) return found.size;
  }
  return 0;
}
