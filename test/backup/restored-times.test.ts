import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFoundation } from "../../src/app/foundation.ts";
import { createBackup } from "../../src/backup/create.ts";
import { locate } from "../../src/backup/destination.ts";
import { restoreBackup } from "../../src/backup/restore.ts";
import { addAgent } from "./folders.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "roost-times-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const WORKSPACE = "instances/inst_a/agents/ada";
const STAGED = "instances/inst_a/.staging/chg_a";

test("a restored file has the millisecond that it had, by which the host knows what an agent wrote", async () => {
  const dataDir = join(folder, "data");
  openFoundation({ dataDir }).store.close();
  addAgent(dataDir, "ada");
  const names = [...Array(100).keys()].map((nth) => `${nth % 2 === 0 ? WORKSPACE : STAGED}/${nth}.md`);
  for (const [nth, name] of names.entries()) {
    const path = join(dataDir, name);
    mkdirSync(join(path, ".."), { recursive: true });
    writeFileSync(path, "- The spare key is under the fern.");
    utimesSync(path, 1_763_824_502, 1_763_824_502 + (nth * 9.97) / 1000);
  }
  const millisecondsIn = (where: string) => names.map((name) => Math.floor(statSync(join(where, name)).mtimeMs));
  const file = join(folder, "b.tar.zst");
  await createBackup({ dataDir, ...locate(file), withKeys: false, passphrase: null });
  const archive = Bun.file(file);
  await restoreBackup(join(folder, "restored"), { archive, size: archive.size, passphrase: null });
  expect(millisecondsIn(join(folder, "restored"))).toEqual(millisecondsIn(dataDir));
});
