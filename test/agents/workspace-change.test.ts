import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import fc from "fast-check";
import { createInstanceFolder, type FileChange, TRASH, workspaceFolder } from "../../src/agents/workspace.ts";
import {
  applyChange,
  discardChange,
  recoverChanges,
  stageChange as stageChecked,
  type WorkspaceTarget,
} from "../../src/agents/workspace-change.ts";
import { AppError } from "../../src/lib/app-error.ts";
import { check, readWorkspace } from "./disk.ts";

/** What an instance holds: slug → name → text. */
type Files = Record<string, Record<string, string>>;

/** In memory where there is such a disk: thousands of crashes are lived through here. */
const disk = fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
const SLOW_DISK_MS = 60_000;

let instance: string;
let nextId = 0;

beforeEach(() => {
  instance = fs.mkdtempSync(join(disk, "roost-change-"));
  createInstanceFolder(instance);
});
afterEach(() => fs.rmSync(instance, { recursive: true, force: true }));

const newChangeId = () => `change-${String(nextId++).padStart(8, "0")}`;
const changesOf = (files: Record<string, string | null>): FileChange[] =>
  Object.entries(files).map(([name, content]) => ({ name, content }));

/** As the rules do it: judged by what the workspace holds, then staged. */
function stageChange(instanceFolder: string, changeId: string, target: WorkspaceTarget, changes: FileChange[]): void {
  const from = target.kind === "rename" ? target.from : target.slug;
  const checked = check(target.kind === "create" ? null : workspaceFolder(instanceFolder, from), changes);
  stageChecked(instanceFolder, changeId, target, checked);
}

function change(target: WorkspaceTarget, files: Record<string, string | null> = {}): void {
  const changeId = newChangeId();
  stageChange(instance, changeId, target, changesOf(files));
  applyChange(instance, changeId);
}

function state(): Files {
  const slugs = fs.readdirSync(join(instance, "agents")).sort();
  return Object.fromEntries(
    slugs.map((slug) => [slug, Object.fromEntries(readWorkspace(workspaceFolder(instance, slug)))]),
  );
}

/** No staged change, no temporary file, no empty folder. What is taken away is cleared away by others. */
function expectTidy(): void {
  expect(fs.readdirSync(join(instance, ".staging")).filter((name) => !name.startsWith(TRASH))).toEqual([]);
  const entries = fs.readdirSync(join(instance, "agents"), { recursive: true, withFileTypes: true });
  for (const entry of entries) {
    expect(entry.name).not.toStartWith(".");
    const isWorkspace = entry.parentPath === join(instance, "agents");
    if (entry.isDirectory() && !isWorkspace) {
      expect(fs.readdirSync(join(entry.parentPath, entry.name))).not.toEqual([]);
    }
  }
}

describe("a change", () => {
  test("is nowhere to be seen before it is applied, then whole", () => {
    change({ kind: "create", slug: "a" }, { "SOUL.md": "kind", "memory/x.md": "old" });
    const changeId = newChangeId();
    const files = { "SOUL.md": null, "memory/x.md": "new", "notes/y": "y" };
    stageChange(instance, changeId, { kind: "edit", slug: "a" }, changesOf(files));
    expect(state()).toEqual({ a: { "SOUL.md": "kind", "memory/x.md": "old" } });
    applyChange(instance, changeId);
    expect(state()).toEqual({ a: { "memory/x.md": "new", "notes/y": "y" } });
    applyChange(instance, changeId);
    expect(state()).toEqual({ a: { "memory/x.md": "new", "notes/y": "y" } });
    expectTidy();
  });

  test("can turn a file into a folder, a folder into a file, and change a name's case", () => {
    change({ kind: "create", slug: "a" }, { one: "1", "two/deep/x": "2", "README.md": "3" });
    const files = { one: null, "one/x": "1", "two/deep/x": null, two: "2", "README.md": null, "readme.md": "3" };
    change({ kind: "edit", slug: "a" }, files);
    expect(state()).toEqual({ a: { "one/x": "1", two: "2", "readme.md": "3" } });
    expectTidy();
  });

  test("can move a workspace and change its files at once", () => {
    change({ kind: "create", slug: "old" }, { a: "1", b: "2" });
    change({ kind: "rename", slug: "new", from: "old" }, { b: null, c: "3" });
    expect(state()).toEqual({ new: { a: "1", c: "3" } });
  });

  test("that creates a workspace inherits nothing that was left under its slug", () => {
    fs.mkdirSync(join(instance, "agents", "a"));
    fs.writeFileSync(join(instance, "agents", "a", "left"), "over");
    change({ kind: "create", slug: "a" });
    expect(state()).toEqual({ a: {} });
  });

  test("can remove a workspace", () => {
    change({ kind: "create", slug: "a" }, { x: "1" });
    change({ kind: "create", slug: "b" }, { x: "2" });
    change({ kind: "remove", slug: "a" });
    expect(state()).toEqual({ b: { x: "2" } });
    expectTidy();
  });

  test("that is discarded leaves nothing behind", () => {
    const changeId = newChangeId();
    stageChange(instance, changeId, { kind: "create", slug: "a" }, [{ name: "x", content: "1" }]);
    discardChange(instance, changeId);
    discardChange(instance, changeId);
    expect(state()).toEqual({});
    expectTidy();
  });

  test.each([
    { "../x": "1" },
    { README: "1", readme: "2" },
    { a: "1", "a/b": "2" },
    { "kept/more": "1" },
    { KEPT: "1" },
    { "hidden-from-lists/x": "1" },
    { repository: "1" },
    { big: "x".repeat(256 * 1024 + 1) },
    { half: "\ud83e" },
  ])("that cannot be applied is refused when it is staged, and leaves nothing behind", (files) => {
    change({ kind: "create", slug: "a" }, { kept: "x" });
    fs.symlinkSync("/etc", join(instance, "agents/a/hidden-from-lists"));
    fs.mkdirSync(join(instance, "agents/a/repository/.git"), { recursive: true });
    const stage = () =>
      stageChange(instance, newChangeId(), { kind: "edit", slug: "a" }, changesOf({ ok: "1", ...files }));
    expect(stage).toThrow(/^files: expected /);
    expect(state()).toEqual({ a: { kept: "x" } });
    expect(fs.readdirSync(join(instance, ".staging"))).toEqual([]);
  });

  test("works where .staging is missing, as after a restore", () => {
    fs.rmdirSync(join(instance, ".staging"));
    change({ kind: "create", slug: "a" }, { x: "1" });
    fs.rmdirSync(join(instance, ".staging"));
    expect(recoverChanges(instance, () => true)).toEqual([]);
    expect(state()).toEqual({ a: { x: "1" } });
  });

  test.each(["../x", "trash-1", "", "a/b"])("takes no id %j", (changeId) => {
    expect(() => stageChange(instance, changeId, { kind: "create", slug: "a" }, [])).toThrow(TypeError);
  });
});

test("recovery finishes committed changes in the order of their ids, and discards the others", () => {
  const [first, second, lost] = [newChangeId(), newChangeId(), newChangeId()];
  stageChange(instance, first, { kind: "create", slug: "a" }, [{ name: "x", content: "1" }]);
  stageChange(instance, second, { kind: "edit", slug: "a" }, [{ name: "x", content: "2" }]);
  stageChange(instance, lost, { kind: "edit", slug: "a" }, [{ name: "x", content: "3" }]);
  fs.mkdirSync(join(instance, ".staging", "trash-1", "deep"), { recursive: true });
  expect(recoverChanges(instance, (changeId) => changeId !== lost)).toEqual([first, second]);
  expect(state()).toEqual({ a: { x: "2" } });
  expectTidy();
  expect(fs.readdirSync(join(instance, ".staging"))).toEqual(["trash-1"]);
});

// ---- Crashes -------------------------------------------------------------------------------------------------------

class Crash extends Error {}

const MUTATING = [
  "openSync",
  "mkdirSync",
  "writeSync",
  "fsyncSync",
  "renameSync",
  "unlinkSync",
  "rmdirSync",
  "rmSync",
] as const;

/**
 * Runs `work` as a process that dies at its `at`-th call (from 0) that may change the disk: half of a write or of a
 * removal is done, and nothing after it. Gives how many calls there were. The disk keeps what was written in order, as
 * after SIGKILL, so waiting for it is left out.
 */
function crashingAt(at: number, work: () => void): number {
  let calls = 0;
  const spies = MUTATING.map((name) => {
    const real = fs[name] as (...args: unknown[]) => unknown;
    return spyOn(fs, name).mockImplementation(((...args: unknown[]) => {
      const call = calls++;
      if (call === at) doHalf(name, args);
      if (call >= at) throw new Crash();
      return name === "fsyncSync" ? undefined : real(...args);
    }) as never);
  });
  try {
    work();
  } catch (error) {
    if (!(error instanceof Crash)) throw error;
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  return calls;
}

const realWrite = fs.writeSync;
const realRemove = fs.rmSync;

function doHalf(name: (typeof MUTATING)[number], args: unknown[]): void {
  if (name === "writeSync") {
    const [file, bytes] = args as [number, Uint8Array];
    realWrite(file, bytes.subarray(0, bytes.byteLength >> 1));
  }
  if (name === "rmSync") {
    const path = args[0] as string;
    const [first] = fs.existsSync(path) && fs.statSync(path).isDirectory() ? fs.readdirSync(path) : [];
    if (first !== undefined) realRemove(join(path, first), { recursive: true });
  }
}

/** Stage, commit, apply, dying at call `at`; then recovery, dying at call `again`; then recovery. True if committed. */
function liveThrough(
  at: number,
  again: number,
  target: WorkspaceTarget,
  changes: FileChange[],
): { committed: boolean; calls: number } {
  const changeId = newChangeId();
  let committed = false;
  const calls = crashingAt(at, () => {
    stageChange(instance, changeId, target, changes);
    committed = true;
    applyChange(instance, changeId);
  });
  const recover = () => void recoverChanges(instance, (id) => id === changeId && committed);
  crashingAt(again, recover);
  crashingAt(Number.POSITIVE_INFINITY, recover);
  return { committed, calls };
}

const BEFORE: Files = { a: { kept: "0", gone: "1", "into/file": "2", folder: "3", changed: "4" }, other: { x: "5" } };
const EDIT = {
  gone: null,
  "into/file": null,
  into: "6",
  folder: null,
  "folder/deep/x": "7",
  changed: "8",
  "new/y": "9",
};
const EDITED = { kept: "0", into: "6", "folder/deep/x": "7", changed: "8", "new/y": "9" };

const kinds: { name: string; target: WorkspaceTarget; files: Record<string, string | null>; after: Files }[] = [
  { name: "an edit", target: { kind: "edit", slug: "a" }, files: EDIT, after: { ...BEFORE, a: EDITED } },
  {
    name: "deletions alone",
    target: { kind: "edit", slug: "other" },
    files: { x: null },
    after: { ...BEFORE, other: {} },
  },
  {
    name: "a move",
    target: { kind: "rename", slug: "b", from: "a" },
    files: EDIT,
    after: { b: EDITED, other: { x: "5" } },
  },
  {
    name: "a creation",
    target: { kind: "create", slug: "b" },
    files: { p: "1", "q/r": "2" },
    after: { ...BEFORE, b: { p: "1", "q/r": "2" } },
  },
  { name: "an empty creation", target: { kind: "create", slug: "b" }, files: {}, after: { ...BEFORE, b: {} } },
  { name: "a removal", target: { kind: "remove", slug: "a" }, files: {}, after: { other: { x: "5" } } },
];

describe.each(kinds)("a crash in the middle of $name", ({ target, files, after }) => {
  function restore(): void {
    fs.rmSync(join(instance, "agents"), { recursive: true });
    for (const [slug, texts] of Object.entries(BEFORE)) {
      for (const [name, text] of Object.entries(texts)) {
        const path = join(instance, "agents", slug, name);
        fs.mkdirSync(dirname(path), { recursive: true });
        fs.writeFileSync(path, text);
      }
    }
  }

  test(
    "at any call leaves all of it or nothing, and a crash of the recovery too",
    () => {
      restore();
      const { calls } = liveThrough(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, target, changesOf(files));
      expect(state()).toEqual(after);
      const outcomes = new Set<boolean>();
      for (let at = 0; at < calls; at++) {
        for (const again of [0, 1, 2, 3, 5, 8, 13, Number.POSITIVE_INFINITY]) {
          restore();
          const { committed } = liveThrough(at, again, target, changesOf(files));
          expect(state()).toEqual(committed ? after : BEFORE);
          expectTidy();
          outcomes.add(committed);
        }
      }
      expect(outcomes.size).toBe(2);
    },
    SLOW_DISK_MS,
  );
});

describe("any sequence of changes and crashes", () => {
  const slug = fc.constantFrom("a", "b");
  const name = fc.constantFrom("x", "X", "y", "x/1", "y/1", "y/2", "y/2/z", "w/1/2/3");
  const files = fc.dictionary(name, fc.option(fc.constantFrom("", "one", "two")), { maxKeys: 4 });
  const target: fc.Arbitrary<WorkspaceTarget> = fc.oneof(
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("edit" as const), slug }) },
    fc.record({ kind: fc.constant("create" as const), slug }),
    fc.record({ kind: fc.constant("remove" as const), slug }),
    fc.constantFrom<WorkspaceTarget>(
      { kind: "rename", slug: "a", from: "b" },
      { kind: "rename", slug: "b", from: "a" },
    ),
  );
  const crash = fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.nat(50));
  const steps = fc.array(fc.record({ target, files, at: crash, again: crash }), { maxLength: 8 });

  test(
    "leaves what a map would hold",
    () => {
      fc.assert(
        fc.property(steps, (all) => {
          fs.rmSync(join(instance, "agents"), { recursive: true });
          fs.mkdirSync(join(instance, "agents"));
          let model: Files = {};
          for (const step of all) {
            const next = modelChange(model, step.target, step.files);
            if (next === undefined) continue; // no rule would ask for it: the slug is taken, or is not there
            const { target, files, at, again } = step;
            const wanted = changesOf(target.kind === "remove" ? {} : files);
            if (next === "refused") {
              expect(() => stageChange(instance, newChangeId(), target, wanted)).toThrow(AppError);
            } else if (liveThrough(at, again, target, wanted).committed) model = next;
            expect(state()).toEqual(model);
            expectTidy();
          }
        }),
        { numRuns: 300 },
      );
    },
    SLOW_DISK_MS,
  );
});

function modelChange(
  model: Files,
  target: WorkspaceTarget,
  files: Record<string, string | null>,
): Files | "refused" | undefined {
  const from = target.kind === "rename" ? target.from : target.slug;
  if (target.kind === "create" ? from in model : !(from in model)) return undefined;
  if (target.kind === "rename" && target.slug in model) return undefined;
  const { [from]: texts = {}, ...rest } = model;
  if (target.kind === "remove") return rest;
  const after = Object.entries({ ...texts, ...files }).filter((entry): entry is [string, string] => entry[1] !== null);
  const steps = after.flatMap(([name]) =>
    name.split("/").map((_, i, parts) => ({ path: parts.slice(0, i + 1).join("/"), isFile: i === parts.length - 1 })),
  );
  const clashes = steps.some((a) =>
    steps.some((b) => a.path.toLowerCase() === b.path.toLowerCase() && (a.path !== b.path || a.isFile !== b.isFile)),
  );
  return clashes ? "refused" : { ...rest, [target.slug]: Object.fromEntries(after) };
}

// ---- Loss of power -------------------------------------------------------------------------------------------------

test.skipIf(process.platform !== "linux")(
  "what a commit relies on is on disk before it, and what ends a change before its manifest goes",
  () => {
    change({ kind: "create", slug: "a" }, { gone: "1" });
    const log: string[] = [];
    const pathOf = (file: number) => fs.readlinkSync(`/proc/self/fd/${file}`);
    const realPath = (path: string) => join(fs.realpathSync(dirname(path)), basename(path));
    const { fsyncSync, renameSync, unlinkSync, writeSync } = fs;
    const spies = [
      spyOn(fs, "writeSync").mockImplementation(((file: number, bytes: Uint8Array, at: number) => {
        log.push(`write ${pathOf(file)}`);
        return writeSync(file, bytes, at);
      }) as never),
      spyOn(fs, "fsyncSync").mockImplementation((file) => {
        log.push(`sync ${pathOf(file)}`);
        fsyncSync(file);
      }),
      spyOn(fs, "renameSync").mockImplementation((from, to) => {
        log.push(`move ${realPath(String(to))}`);
        renameSync(from, to);
      }),
      spyOn(fs, "unlinkSync").mockImplementation((path) => {
        log.push(`unlink ${realPath(String(path))}`);
        unlinkSync(path);
      }),
    ];
    const changeId = newChangeId();
    try {
      stageChange(instance, changeId, { kind: "edit", slug: "a" }, changesOf({ gone: null, x: "1", "new/y": "2" }));
      log.push("commit");
      applyChange(instance, changeId);
    } finally {
      for (const spy of spies) spy.mockRestore();
    }
    const real = fs.realpathSync(instance);
    const lines = log.map((line) => line.replace(`${real}/`, "").replace(changeId, "ID"));
    expect(lines).toEqual([
      "write .staging/ID/1",
      "sync .staging/ID/1",
      "write .staging/ID/2",
      "sync .staging/ID/2",
      "write .staging/ID/manifest.json",
      "sync .staging/ID/manifest.json",
      "sync .staging/ID",
      "sync .staging",
      "commit",
      "unlink agents/a/gone",
      "sync agents/a",
      "move agents/a/x",
      "sync agents/a",
      "sync agents/a", // the new folder's entry
      "move agents/a/new/y",
      "sync agents/a/new",
      "unlink .staging/ID/manifest.json",
    ]);
  },
);
