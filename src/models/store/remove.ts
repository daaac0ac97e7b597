import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { syncFolder } from "../../lib/private-file.ts";
import { type ModelPlace, whileHolding } from "./add.ts";
import { modelFolder, modelsFolder, workFolder } from "./store.ts";

/**
 * Removes a model, and what an interrupted download of it has left. Answers of a server that has it loaded are finished.
 * Throws `BusyModel`.
 */
export function removeModel(place: ModelPlace): Promise<void> {
  const { dataDir, name } = place;
  return whileHolding(place, async () => {
    const work = workFolder(dataDir, name);
    const old = join(work, "old");
    await rm(old, { recursive: true, force: true });
    // It disappears at once, and not file by file.
    if (existsSync(modelFolder(dataDir, name))) await rename(modelFolder(dataDir, name), old);
    syncFolder(modelsFolder(dataDir));
    await rm(work, { recursive: true, force: true });
  });
}
