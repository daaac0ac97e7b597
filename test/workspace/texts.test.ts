import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTexts } from "../../src/workspace/texts.ts";

let folder: string;
beforeEach(() => {
  folder = fs.mkdtempSync(join(tmpdir(), "roost-texts-"));
});
afterEach(() => fs.rmSync(folder, { recursive: true, force: true }));

const NAMES = ["SOUL.md", "USER.md", "TOOLS.md"];
const write = (name: string, text: string | Uint8Array) => fs.writeFileSync(join(folder, name), text);
const read = (texts: ReturnType<typeof createTexts>) => texts.read(folder, NAMES).map(({ name, text }) => [name, text]);

/** Until the last change of a file, also of one in a folder, is so long ago that a later one has another time. */
async function settle(): Promise<void> {
  const names = fs.readdirSync(folder, { recursive: true, encoding: "utf8" });
  const changedMs = Math.max(...names.map((name) => fs.lstatSync(join(folder, name)).ctimeMs));
  while (Date.now() <= changedMs + 1_001) await Bun.sleep(50);
}

/** How many files are opened meanwhile. */
function opened(work: () => void): number {
  const opens = spyOn(fs, "openSync");
  try {
    work();
    return opens.mock.calls.filter(([path]) => NAMES.some((name) => String(path).endsWith(name))).length;
  } finally {
    opens.mockRestore();
  }
}

test("files that have not changed are not opened again", async () => {
  write("SOUL.md", "gruff");
  write("TOOLS.md", new Uint8Array([0xff, 0xfe]));
  await settle();
  const texts = createTexts();
  expect(read(texts)).toEqual([["SOUL.md", "gruff"]]);
  expect(opened(() => expect(read(texts)).toEqual([["SOUL.md", "gruff"]]))).toBe(0);
});

test("reading other files of a folder takes nothing from what was kept", async () => {
  write("SOUL.md", "gruff");
  write("HEARTBEAT.md", "look");
  await settle();
  const texts = createTexts();
  const readOther = () => texts.read(folder, ["HEARTBEAT.md"]);
  expect([read(texts), readOther()]).toEqual([[["SOUL.md", "gruff"]], [{ name: "HEARTBEAT.md", text: "look" }]]);
  expect(opened(() => expect(read(texts)).toEqual([["SOUL.md", "gruff"]]))).toBe(0);
  fs.rmSync(join(folder, "SOUL.md"));
  readOther();
  expect(read(texts)).toEqual([]);
});

test("a changed file is read again, even if its size and time are made the same as before", async () => {
  write("SOUL.md", "gruff");
  await settle();
  const texts = createTexts();
  read(texts);
  const { atime, mtime } = fs.lstatSync(join(folder, "SOUL.md"));
  write("SOUL.md", "merry");
  fs.utimesSync(join(folder, "SOUL.md"), atime, mtime);
  expect(read(texts)).toEqual([["SOUL.md", "merry"]]);
  write("SOUL.md", "quiet");
  expect(read(texts)).toEqual([["SOUL.md", "quiet"]]);
  write("USER.md", "Ada");
  fs.rmSync(join(folder, "SOUL.md"));
  expect(read(texts)).toEqual([["USER.md", "Ada"]]);
});

test("what was changed just now is never taken from what was kept", () => {
  const texts = createTexts();
  for (let round = 0; round < 50; round++) {
    write("SOUL.md", String(round).padStart(4));
    expect(read(texts)).toEqual([["SOUL.md", String(round).padStart(4)]]);
  }
});

test("a link in a file's place is not followed", async () => {
  write("SOUL.md", "gruff");
  await settle();
  const texts = createTexts();
  read(texts);
  fs.renameSync(join(folder, "SOUL.md"), join(folder, "elsewhere.md"));
  fs.symlinkSync(join(folder, "elsewhere.md"), join(folder, "SOUL.md"));
  expect(read(texts)).toEqual([]);
});

test("no more is kept than its bound: the folder that was read last stays", async () => {
  const others = ["a", "b"].map((name) => join(folder, name));
  for (const other of others) {
    fs.mkdirSync(other);
    fs.writeFileSync(join(other, "SOUL.md"), "x".repeat(1_000));
  }
  await settle();
  const texts = createTexts(2_000);
  for (const other of others) texts.read(other, NAMES);
  const [first = "", last = ""] = others;
  expect(opened(() => texts.read(last, NAMES))).toBe(0);
  expect(opened(() => texts.read(first, NAMES))).toBe(1);
});
