import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clearFolder, clearTrash } from "../../src/workspace/clear-folder.ts";
import { openJail } from "../../src/workspace/jail.ts";
import {
  createInstanceFolder,
  decodeText,
  MAX_FILE_BYTES,
  MAX_WORKSPACE_BYTES,
  MAX_WORKSPACE_FILES,
  readFile,
  refuseOverWorkspace,
  removeWorkspace,
  workspaceFolder,
} from "../../src/workspace/workspace.ts";
import { check, listFiles, writeInto } from "./disk.ts";

let data: string;
let instance: string;
let folder: string;

beforeEach(() => {
  data = fs.mkdtempSync(join(tmpdir(), "roost-workspace-"));
  instance = join(data, "instances", "inst_1");
  createInstanceFolder(instance);
  folder = workspaceFolder(instance, "scout");
  fs.mkdirSync(folder);
});
const writeFile = (path: string, name: string, content: string | Uint8Array) => {
  for (const { bytes } of check(path, [{ name, content }])) if (bytes) writeInto(openJail(path), path, name, bytes);
};
const removeFile = (path: string, name: string) => openJail(path).remove(name);
async function finish(slices: AsyncIterable<void>): Promise<void> {
  for await (const _ of slices);
}
afterEach(() => fs.rmSync(data, { recursive: true, force: true }));

describe("a workspace file", () => {
  test("has a strong ETag of its content and its modification time", () => {
    const before = Date.now() - 1_000; // a disk's clock may lag by some ticks
    writeFile(folder, "SOUL.md", "kind");
    const first = readFile(folder, "SOUL.md");
    expect(first?.bytes.toString()).toBe("kind");
    expect(first?.etag).toMatch(/^"[A-Za-z0-9_-]{22}"$/);
    expect(first?.updatedAtMs).toBeGreaterThanOrEqual(before);
    expect(Number.isInteger(first?.updatedAtMs)).toBe(true);
    writeFile(folder, "copy.md", "kind");
    expect(readFile(folder, "copy.md")?.etag).toBe(first?.etag);
    writeFile(folder, "SOUL.md", "kinder");
    expect(readFile(folder, "SOUL.md")?.etag).not.toBe(first?.etag);
  });

  test("that is absent, or removed, reads as null", () => {
    writeFile(folder, "memory/2026-11-21.md", "x");
    expect(removeFile(folder, "memory/2026-11-21.md")).toBe(true);
    expect(removeFile(folder, "memory/2026-11-21.md")).toBe(false);
    expect(readFile(folder, "memory/2026-11-21.md")).toBeNull();
    expect(fs.readdirSync(folder)).toEqual([]);
  });

  test("keeps its text to the byte, including a byte order mark and NUL", () => {
    const text = "\ufeffün\0i\r\n🦉";
    writeFile(folder, "a", text);
    expect(decodeText(readFile(folder, "a")?.bytes ?? Buffer.alloc(0))).toBe(text);
  });

  test("of 256 KiB is accepted, one byte more is refused, counted in UTF-8", () => {
    writeFile(folder, "a", "é".repeat(MAX_FILE_BYTES / 2));
    expect(() => writeFile(folder, "a", `é${"é".repeat(MAX_FILE_BYTES / 2)}`)).toThrow(
      'files: expected "a" to have at most 262144 bytes',
    );
    expect(readFile(folder, "a")?.bytes.byteLength).toBe(MAX_FILE_BYTES);
  });

  test("is refused if its name clashes with an existing file, or with a link that is left alone", () => {
    writeFile(folder, "notes/a", "x");
    fs.symlinkSync(data, join(folder, "link"));
    for (const name of ["notes", "NOTES", "notes/A", "notes/a/b", "link/new", "../x"]) {
      expect(() => writeFile(folder, name, "y")).toThrow(/^(files|name): expected /);
    }
    expect(listFiles(folder).map(({ name }) => name)).toEqual(["notes/a"]);
  });
});

test("text that is not UTF-8, or contains a lone surrogate, is refused", () => {
  expect(() => decodeText(Buffer.from([0x61, 0xff]))).toThrow("content: expected UTF-8 text");
  expect(() => writeFile(folder, "a", "x\ud83e")).toThrow('files: expected "a" to be valid Unicode text');
  expect(listFiles(folder)).toEqual([]);
});

test("a workspace whose folder is gone reads as empty", () => {
  const gone = workspaceFolder(instance, "gone");
  expect(listFiles(gone)).toEqual([]);
  expect(readFile(gone, "a")).toBeNull();
});

describe("the quota of a workspace", () => {
  const full = { files: MAX_WORKSPACE_FILES, bytes: MAX_WORKSPACE_BYTES };

  test("counts its files, and names what is used", () => {
    refuseOverWorkspace({ files: 0, bytes: 0 }, full);
    expect(() => refuseOverWorkspace(full, { ...full, files: full.files + 1 })).toThrow(
      "files: expected at most 10000 for the workspace; this would make it 10001",
    );
  });

  test("counts its bytes", () => {
    expect(() => refuseOverWorkspace(full, { ...full, bytes: full.bytes + 1 })).toThrow(
      "bytes: expected at most 104857600 for the workspace; this would make it 104857601",
    );
  });

  test("lets a workspace that exceeds it shrink or keep its size, but not grow", () => {
    const over = { files: full.files + 5, bytes: full.bytes + 5 };
    refuseOverWorkspace(over, { files: over.files - 1, bytes: over.bytes });
    refuseOverWorkspace(over, { files: over.files, bytes: over.bytes - 1 });
    expect(() => refuseOverWorkspace(over, { files: 1, bytes: over.bytes + 1 })).toThrow("bytes: expected");
  });
});

test("removing a workspace or an instance follows no link out of it", async () => {
  const outside = join(data, "outside");
  fs.mkdirSync(outside);
  fs.writeFileSync(join(outside, "kept"), "x");
  const plant = (path: string) => {
    fs.mkdirSync(join(path, "deep"), { recursive: true });
    fs.symlinkSync(outside, join(path, "deep", "link"));
    fs.symlinkSync(join(outside, "kept"), join(path, "file-link"));
  };
  plant(folder);
  removeWorkspace(instance, "scout");
  removeWorkspace(instance, "scout");
  expect(fs.readdirSync(join(instance, "agents"))).toEqual([]);
  await finish(clearTrash(instance));
  expect(fs.readdirSync(join(instance, ".staging"))).toEqual([]);
  plant(folder);
  await finish(clearFolder(instance));
  await finish(clearFolder(instance));
  await finish(clearTrash(instance));
  expect(fs.readdirSync(join(data, "instances"))).toEqual([]);
  expect(fs.readdirSync(outside)).toEqual(["kept"]);
  fs.mkdirSync(join(instance, "agents"), { recursive: true });
  fs.symlinkSync(outside, folder);
  removeWorkspace(instance, "scout");
  await finish(clearTrash(instance));
  expect(fs.readdirSync(join(instance, ".staging"))).toEqual([]);
  await finish(clearFolder(instance));
  fs.symlinkSync(outside, instance);
  await finish(clearFolder(instance));
  expect(fs.readdirSync(join(data, "instances"))).toEqual([]);
  expect(fs.readdirSync(outside)).toEqual(["kept"]);
});

test("the files of a folder are removed a hundred at a time", async () => {
  for (let at = 0; at < 1_000; at++) fs.writeFileSync(join(folder, `f${at}`), "");
  let before = fs.readdirSync(folder).length;
  const most: number[] = [];
  for await (const _ of clearFolder(folder)) {
    const now = fs.existsSync(folder) ? fs.readdirSync(folder).length : 0;
    most.push(before - now);
    before = now;
  }
  expect([Math.max(...most), before]).toEqual([100, 0]);
});

test("an instance's folders are for the owner only, and creating them again changes nothing", () => {
  writeFile(folder, "a", "x");
  createInstanceFolder(instance);
  for (const path of [instance, join(instance, "agents"), join(instance, ".staging")]) {
    expect(fs.statSync(path).mode & 0o777).toBe(0o700);
  }
  expect(readFile(folder, "a")).not.toBeNull();
});

test.each(["../scout", "", "a/b", ".staging", "Scout", "a\0"])("no folder is created for %j as a slug", (slug) => {
  expect(() => workspaceFolder(instance, slug)).toThrow(TypeError);
  expect(() => removeWorkspace(instance, slug)).toThrow(TypeError);
});
