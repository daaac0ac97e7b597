import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lockDataFolder } from "../../src/storage/lock.ts";

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-lock-"));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const HOLDER = `
  const { lockDataFolder } = await import(${JSON.stringify(join(import.meta.dir, "../../src/storage/lock.ts"))});
  lockDataFolder(process.argv.at(-1));
  Bun.gc(true);
  process.send("locked");
  setInterval(() => {}, 1000);`;

test("a second server on the same folder refuses, and says what to do", () => {
  const lock = lockDataFolder(dataDir);
  expect(() => lockDataFolder(dataDir)).toThrow(/^another roost is serving .*; stop it, or give this one a folder/);
  expect(statSync(join(dataDir, "server.lock")).mode & 0o777).toBe(0o600);
  lock.release();
  lockDataFolder(dataDir).release();
});

test("servers on different folders do not meet", () => {
  const other = mkdtempSync(join(tmpdir(), "roost-lock-"));
  const locks = [lockDataFolder(dataDir), lockDataFolder(other)];
  for (const lock of locks) lock.release();
  rmSync(other, { recursive: true, force: true });
});

test("another process's lock holds until that process is killed, and is gone then", async () => {
  const { promise: locked, resolve } = Promise.withResolvers<void>();
  const holder = Bun.spawn([process.execPath, "-e", HOLDER, dataDir], { ipc: () => resolve() });
  try {
    await locked;
    expect(() => lockDataFolder(dataDir)).toThrow("another roost is serving");
  } finally {
    holder.kill("SIGKILL");
    await holder.exited;
  }
  lockDataFolder(dataDir).release();
});
