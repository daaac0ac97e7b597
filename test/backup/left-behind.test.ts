import { afterEach, beforeEach, expect, setSystemTime, test } from "bun:test";
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFoundation } from "../../src/app/foundation.ts";
import { createBackup } from "../../src/backup/create.ts";
import { locate } from "../../src/backup/destination.ts";
import { verifyBackup } from "../../src/backup/verify.ts";
import { canGiveToNobody, NOBODY } from "../support/nobody.ts";

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

test("a backup on a disk whose clock is a year behind removes nothing that is being worked on", async () => {
  await backUp("kept/first.tar.zst");
  const others = ["data/backups/.verify-other", "kept/.roost-20260301T000000Z.tar.zst.unfinished"];
  for (const name of others) writeFileSync(path(name), "x");
  setSystemTime(Date.now() + 365 * 24 * 60 * 60 * 1000);
  try {
    await backUp("kept/second.tar.zst");
  } finally {
    setSystemTime();
  }
  expect(others.map(path).filter(existsSync)).toEqual(others.map(path));
});

test.skipIf(!canGiveToNobody)("a backup is made although root has left what nobody else can remove", async () => {
  const folder = join(leave("data/backups/.work-of-root/roost.db"), "..");
  const then = new Date(Date.now() - 2 * 24 * 60 * 60 * 1000);
  utimesSync(folder, then, then);
  leave("data/backups/.work-zero");
  for (const name of [".", "data", "data/backups"]) chownSync(path(name), NOBODY, NOBODY);
  process.seteuid?.(NOBODY);
  try {
    await backUp("kept.tar.zst");
  } finally {
    process.seteuid?.(0);
  }
  expect(existsSync(path("kept.tar.zst"))).toBe(true);
  expect(readdirSync(path("data/backups"))).toEqual([".work-of-root"]);
});
