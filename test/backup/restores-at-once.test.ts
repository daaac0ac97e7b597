import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFoundation } from "../../src/app/foundation.ts";
import type { Source } from "../../src/backup/archive.ts";
import { createBackup } from "../../src/backup/create.ts";
import { locate } from "../../src/backup/destination.ts";
import { restoreBackup } from "../../src/backup/restore.ts";

let home: string;
let target: string;
let archive: Blob;
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "roost-restores-"));
  target = join(home, "restored");
  const dataDir = join(home, "data");
  openFoundation({ dataDir }).store.close();
  await createBackup({ dataDir, ...locate(join(home, "a.tar.zst")), withKeys: false, passphrase: null });
  archive = new Blob([await Bun.file(join(home, "a.tar.zst")).bytes()]);
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const restore = (source: Source = archive) =>
  restoreBackup(target, { archive: source, size: archive.size, passphrase: null });

test("of two restores into one folder at once, the second is refused, and the first is whole", async () => {
  const reading = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const first = restore({
    slice: (from, to) => archive.slice(from, to),
    stream: () => {
      reading.resolve();
      return archive.stream().pipeThrough(
        new TransformStream({
          async transform(chunk, controller) {
            await goOn.promise;
            controller.enqueue(chunk);
          },
        }),
      );
    },
  });
  await reading.promise;
  await expect(restore()).rejects.toThrow(`another restore into ${target} is under way; wait until it has ended`);
  goOn.resolve();
  expect((await first).files).toBeGreaterThan(0);
  expect(readdirSync(target).filter((name) => name.startsWith("."))).toEqual([]);
  await expect(restore()).rejects.toThrow("is not empty");
  openFoundation({ dataDir: target }).store.close();
});

test("a restore that fails leaves the folder free for the next, and one that is refused leaves nothing in it", async () => {
  await expect(restore(new Blob(["no backup"]))).rejects.toThrow("not a backup");
  expect(readdirSync(target)).toEqual([]);
  writeFileSync(join(target, "mine"), "");
  await expect(restore()).rejects.toThrow("is not empty");
  expect(readdirSync(target)).toEqual(["mine"]);
  rmSync(join(target, "mine"));
  await restore();
  expect(existsSync(join(target, "roost.db"))).toBe(true);
});
