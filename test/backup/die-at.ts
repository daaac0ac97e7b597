/**
 * For the tests of deaths: does something to a data folder, and dies by SIGKILL before the call of the given number that
 * changes a file or the database.
 */
import { Database } from "bun:sqlite";
import fs from "node:fs";

const [operation = "", dataDir = "", other = "", number = ""] = process.argv.slice(2);
let left = Number(number);

function dieBefore(object: object, names: readonly string[]): void {
  const functions = object as Record<string, (...given: unknown[]) => unknown>;
  for (const name of names) {
    const real = functions[name];
    functions[name] = function (this: unknown, ...given) {
      if (left-- === 0) process.kill(process.pid, "SIGKILL");
      return real?.apply(this, given);
    };
  }
}
dieBefore(fs, ["mkdirSync", "copyFileSync", "linkSync", "renameSync", "rmSync", "openSync", "writeFileSync"]);
dieBefore(fs.promises, ["mkdir", "open", "rename", "rm", "writeFile", "link", "unlink"]);
dieBefore(Database.prototype, ["run"]);

const work: Record<string, () => Promise<unknown>> = {
  async create() {
    const { createBackup } = await import("../../src/backup/create.ts");
    const { locate } = await import("../../src/backup/destination.ts");
    return await createBackup({ dataDir, ...locate(other), withKeys: true, passphrase: null });
  },
  async restore() {
    const { restoreBackup } = await import("../../src/backup/restore.ts");
    const archive = Bun.file(other);
    return await restoreBackup(dataDir, { archive, size: archive.size, passphrase: null });
  },
  async migrate() {
    const { openFoundation } = await import("../../src/app/foundation.ts");
    openFoundation({ dataDir }).store.close();
  },
  async rollback() {
    const { rollBack } = await import("../../src/backup/rollback.ts");
    return rollBack(dataDir);
  },
};
await work[operation]?.();
