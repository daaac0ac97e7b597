import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { closeToOthers } from "../../src/storage/private-folder.ts";

let parent: string;
let folder: string;
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "roost-private-"));
  folder = join(parent, "data");
});
afterEach(() => rmSync(parent, { recursive: true, force: true }));

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

function make(path: string, mode: number): void {
  if (path === folder) mkdirSync(folder);
  else writeFileSync(path, "x");
  chmodSync(path, mode);
}

test("a folder that is not there is made, for its owner alone", () => {
  expect(closeToOthers(folder)).toEqual([]);
  expect(modeOf(folder)).toBe("700");
  expect(closeToOthers(folder)).toEqual([]);
});

test.each([0o777, 0o755, 0o750, 0o701])("a folder of mode %o is closed to others, and that is told once", (mode) => {
  make(folder, mode);
  expect(closeToOthers(folder)).toEqual([
    `${folder} was open to other users (mode 0${mode.toString(8)}); it is theirs no more`,
  ]);
  expect(modeOf(folder)).toBe("700");
  expect(closeToOthers(folder)).toEqual([]);
});

test.each(["roost.db", "roost.db-wal", "host-keys.json", "master.key", "wallet.json", "roost.toml"])(
  "%s is for its owner alone",
  (name) => {
    make(folder, 0o700);
    make(join(folder, name), 0o644);
    make(join(folder, "notes.txt"), 0o644);
    expect(closeToOthers(folder)).toHaveLength(1);
    expect(modeOf(join(folder, name))).toBe("600");
    expect(modeOf(join(folder, "notes.txt"))).toBe("644");
  },
);

test("a folder of another user is refused, with the mend, and left as it is", () => {
  make(folder, 0o777);
  const somebodyElse = statSync(folder).uid + 4711;
  expect(() => closeToOthers(folder, somebodyElse)).toThrow(/belongs to another user.*chown.*--data/);
  expect(modeOf(folder)).toBe("777");
});
