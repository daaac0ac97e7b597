import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFoundation } from "../../src/app/foundation.ts";
import { createBackup } from "../../src/backup/create.ts";
import { locate } from "../../src/backup/destination.ts";
import { verifyBackup } from "../../src/backup/verify.ts";

const { TMPDIR } = process.env;
let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "roost-left-"));
});
afterEach(() => {
  if (TMPDIR === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = TMPDIR;
  rmSync(home, { recursive: true, force: true });
});

const path = (name: string) => join(home, name);

/** A file that nobody has touched for two days. */
function leave(name: string): string {
  mkdirSync(join(path(name), ".."), { recursive: true });
  writeFileSync(path(name), "x");
  const then = new Date(Date.now() - 2 * 24 * 60 * 60 * 1000);
  utimesSync(path(name), then, then);
  return path(name);
}

async function backUp(name: string): Promise<void> {
  const dataDir = path("data");
  openFoundation({ dataDir }).store.close();
  await createBackup({ dataDir, ...locate(path(name)), withKeys: false, passphrase: null });
}

test("a check without a data folder removes nothing of anybody among the system's temporary files", async () => {
  await backUp("kept/mine.tar.zst");
  const others = ["tmp/.work-of-another-program", "tmp/.verify-me", "tmp/.download.unfinished"].map(leave);
  process.env.TMPDIR = path("tmp");
  const archive = Bun.file(path("kept/mine.tar.zst"));
  await verifyBackup(path("nowhere"), { archive, size: archive.size, passphrase: null });
  expect(others.filter(existsSync)).toEqual(others);
});

test("a backup removes what scheduled ones that were killed have left beside it, and nothing else", async () => {
  const left = leave("kept/.roost-20260301T000000Z.tar.zst.unfinished");
  const others = ["kept/.mine.tar.zst.unfinished", "kept/roost-20260301T000000Z.tar.zst"].map(leave);
  await backUp("kept/new.tar.zst");
  expect([existsSync(left), others.filter(existsSync)]).toEqual([false, others]);
});
