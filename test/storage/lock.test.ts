import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lockDataFolder, serverOf } from "../../src/storage/lock.ts";

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-lock-"));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const HOLDER = `
  const { lockDataFolder } = await import(${JSON.stringify(join(import.meta.dir, "../../src/storage/lock.ts"))});
  lockDataFolder(process.argv.at(-1)).announce("http://127.0.0.1:1");
  Bun.gc(true);
  process.send("locked");
  setInterval(() => {}, 1000);`;

const ASKER = `
  const { serverOf } = await import(${JSON.stringify(join(import.meta.dir, "../../src/storage/lock.ts"))});
  process.send("asking");
  for (;;) serverOf(process.argv.at(-1));`;

test("a second server on the same folder refuses to start, and says what to do", () => {
  const lock = lockDataFolder(dataDir);
  expect(() => lockDataFolder(dataDir)).toThrow(/^another roost is serving .*; stop it, or choose another folder/);
  expect(statSync(join(dataDir, "server.lock")).mode & 0o777).toBe(0o600);
  lock.release();
  lockDataFolder(dataDir).release();
});

test("a lock that is a link to nowhere creates nothing there", () => {
  const elsewhere = join(dataDir, "elsewhere");
  symlinkSync(elsewhere, join(dataDir, "server.lock"));
  expect(() => lockDataFolder(dataDir)).toThrow("server.lock cannot be opened");
  expect(existsSync(elsewhere)).toBe(false);
});

test("a lock that is a link leaves the mode of another file as it is", () => {
  const elsewhere = join(dataDir, "elsewhere");
  writeFileSync(elsewhere, "", { mode: 0o644 });
  symlinkSync(elsewhere, join(dataDir, "server.lock"));
  lockDataFolder(dataDir).release();
  expect(statSync(elsewhere).mode & 0o777).toBe(0o644);
});

test("servers on different folders do not interfere", () => {
  const other = mkdtempSync(join(tmpdir(), "roost-lock-"));
  const locks = [lockDataFolder(dataDir), lockDataFolder(other)];
  for (const lock of locks) lock.release();
  rmSync(other, { recursive: true, force: true });
});

test("another process holds its lock until it is killed, and no longer", async () => {
  const { promise: locked, resolve } = Promise.withResolvers<void>();
  const holder = Bun.spawn([process.execPath, "-e", HOLDER, dataDir], { ipc: () => resolve() });
  try {
    await locked;
    expect(() => lockDataFolder(dataDir)).toThrow("another roost is serving");
    expect(serverOf(dataDir)).toMatchObject({ url: "http://127.0.0.1:1" });
  } finally {
    holder.kill("SIGKILL");
    await holder.exited;
  }
  expect(serverOf(dataDir)).toBeNull();
  lockDataFolder(dataDir).release();
});

test("a server's address is known from when it listens until it stops, and never that of an earlier server", () => {
  expect(serverOf(dataDir)).toBeNull();
  const lock = lockDataFolder(dataDir);
  expect(serverOf(dataDir)).toMatchObject({ url: null });
  lock.announce("http://localhost:7373");
  expect(serverOf(dataDir)).toMatchObject({ url: "http://localhost:7373" });
  lock.release();
  expect(serverOf(dataDir)).toBeNull();
  expect(readdirSync(dataDir)).toEqual(["server.lock"]);
});

test("polling for the server does not keep one from starting", async () => {
  lockDataFolder(dataDir).release();
  const { promise: asking, resolve } = Promise.withResolvers<void>();
  const asker = Bun.spawn([process.execPath, "-e", ASKER, dataDir], { ipc: () => resolve() });
  try {
    await asking;
    for (let times = 0; times < 1000; times++) lockDataFolder(dataDir, 60_000).release();
  } finally {
    asker.kill("SIGKILL");
    await asker.exited;
  }
});
