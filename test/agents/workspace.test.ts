import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  checkChanges,
  createInstanceFolder,
  decodeText,
  listFiles,
  MAX_FILE_BYTES,
  MAX_WORKSPACE_BYTES,
  MAX_WORKSPACE_FILES,
  readFile,
  readWorkspace,
  removeFile,
  removeInstanceFolder,
  removeWorkspace,
  workspaceFolder,
  writeFile,
} from "../../src/agents/workspace.ts";

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
afterEach(() => fs.rmSync(data, { recursive: true, force: true }));

describe("a workspace file", () => {
  test("carries a strong ETag of its content and the time of its writing", () => {
    const before = Date.now() - 10; // a disk's clock may lag by a tick
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

  test("keeps its text to the byte, a byte order mark and NUL too", () => {
    const text = "\ufeffün\0i\r\n🦉";
    writeFile(folder, "a", text);
    expect(decodeText(readFile(folder, "a")?.bytes ?? Buffer.alloc(0))).toBe(text);
  });

  test("of 256 KiB is taken, one byte more is refused, counted in UTF-8", () => {
    writeFile(folder, "a", "é".repeat(MAX_FILE_BYTES / 2));
    expect(() => writeFile(folder, "a", `é${"é".repeat(MAX_FILE_BYTES / 2)}`)).toThrow(
      'name: expected "a" to have at most 262144 bytes',
    );
    expect(readFile(folder, "a")?.bytes.byteLength).toBe(MAX_FILE_BYTES);
  });

  test("is refused when its name clashes with a file that is there, or with a link that is left alone", () => {
    writeFile(folder, "notes/a", "x");
    fs.symlinkSync(data, join(folder, "link"));
    for (const name of ["notes", "NOTES", "notes/A", "notes/a/b", "link/new", "../x"]) {
      expect(() => writeFile(folder, name, "y")).toThrow(/^name: expected /);
    }
    expect(listFiles(folder).map(({ name }) => name)).toEqual(["notes/a"]);
  });
});

test("text that is not UTF-8, or holds half a character, is refused", () => {
  expect(() => decodeText(Buffer.from([0x61, 0xff]))).toThrow("content: expected UTF-8 text");
  expect(() => writeFile(folder, "a", "x\ud83e")).toThrow('name: expected "a" to be Unicode text');
  expect(listFiles(folder)).toEqual([]);
});

test("a workspace reads as its texts by name; what is no text or too large is only listed", () => {
  writeFile(folder, "b.md", "two");
  writeFile(folder, "a.md", "one");
  writeFile(folder, "image", Buffer.from([0xff, 0xd8]));
  fs.writeFileSync(join(folder, "huge"), Buffer.alloc(MAX_FILE_BYTES + 1, "x"));
  expect([...readWorkspace(folder)]).toEqual([
    ["a.md", "one"],
    ["b.md", "two"],
  ]);
  expect(listFiles(folder).map(({ name, size }) => [name, size])).toEqual([
    ["a.md", 3],
    ["b.md", 3],
    ["huge", MAX_FILE_BYTES + 1],
    ["image", 2],
  ]);
});

test("a workspace whose folder is gone reads as empty", () => {
  const gone = workspaceFolder(instance, "gone");
  expect(listFiles(gone)).toEqual([]);
  expect(readWorkspace(gone).size).toBe(0);
  expect(readFile(gone, "a")).toBeNull();
});

describe("the quota of a workspace", () => {
  const present = (count: number, size: number) => ({
    files: Array.from({ length: count }, (_, i) => ({ name: `f${i}`, size, mtimeMs: 0 })),
    others: [],
  });
  const full = present(MAX_WORKSPACE_FILES, 1);
  const heavy = present(MAX_WORKSPACE_BYTES / 65_536, 65_536);
  const over = present(MAX_WORKSPACE_BYTES / 65_536 + 1, 65_536);

  test("counts its files", () => {
    expect(() => checkChanges([{ name: "new", content: "" }], full)).toThrow(
      "files: expected the workspace to hold at most 10000 files in all",
    );
    checkChanges([{ name: "f1", content: "other" }], full);
    const swap = [
      { name: "f1", content: null },
      { name: "new", content: "" },
    ];
    expect(checkChanges(swap, full)).toHaveLength(2);
  });

  test("counts its bytes", () => {
    expect(() => checkChanges([{ name: "new", content: "x" }], heavy)).toThrow(
      "files: expected the workspace to hold at most 104857600 bytes in all",
    );
    checkChanges([{ name: "f1", content: "x".repeat(65_536) }], heavy);
  });

  test("lets one that is over it already shrink, not grow", () => {
    checkChanges([{ name: "f1", content: "less" }], over);
    checkChanges([{ name: "f1", content: null }], over);
    expect(() => checkChanges([{ name: "f1", content: "x".repeat(65_537) }], over)).toThrow("bytes in all");
  });
});

test("removing a workspace or an instance follows no link out of it", () => {
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
  expect(fs.readdirSync(join(instance, ".staging"))).toEqual([]);
  plant(folder);
  removeInstanceFolder(instance);
  removeInstanceFolder(instance);
  expect(fs.readdirSync(join(data, "instances"))).toEqual([]);
  expect(fs.readdirSync(outside)).toEqual(["kept"]);
});

test("an instance's folders are for the owner alone, and making them again changes nothing", () => {
  writeFile(folder, "a", "x");
  createInstanceFolder(instance);
  for (const path of [instance, join(instance, "agents"), join(instance, ".staging")]) {
    expect(fs.statSync(path).mode & 0o777).toBe(0o700);
  }
  expect(readFile(folder, "a")).not.toBeNull();
});

test.each(["../scout", "", "a/b", ".staging", "Scout", "a\0"])("no folder is made of %j as a slug", (slug) => {
  expect(() => workspaceFolder(instance, slug)).toThrow(TypeError);
  expect(() => removeWorkspace(instance, slug)).toThrow(TypeError);
});
