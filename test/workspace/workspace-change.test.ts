import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import fc from "fast-check";
import { AppError } from "../../src/lib/app-error.ts";
import { createInstanceFolder, type FileChange, TRASH, workspaceFolder } from "../../src/workspace/workspace.ts";
import {
  applyChange,
  discardChange,
  finishChange,
  recoverChanges,
  stageChange as stageChecked,
  type WorkspaceTarget,
} from "../../src/workspace/workspace-change.ts";
import { check, readWorkspace } from "./disk.ts";

/** What an instance holds: slug → name → text. */
type Files = Record<string, Record<string, string>>;

/** In memory if there is such a disk, since this test simulates thousands of crashes. */
const disk = fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

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

/** As the rules do it: checked against the workspace, then staged. */
async function stageChange(
  instanceFolder: string,
  changeId: string,
  target: WorkspaceTarget,
  changes: FileChange[],
): Promise<void> {
  const from = target.kind === "rename" ? target.from : target.slug;
  const checked = check(target.kind === "create" ? null : workspaceFolder(instanceFolder, from), changes);
  await stageChecked(instanceFolder, changeId, target, checked);
}

const applyAndFinish = (changeId: string) => finishChange(instance, changeId, applyChange(instance, changeId));

async function change(target: WorkspaceTarget, files: Record<string, string | null> = {}): Promise<void> {
  const changeId = newChangeId();
  await stageChange(instance, changeId, target, changesOf(files));
  await applyAndFinish(changeId);
}

function state(): Files {
  const slugs = fs.readdirSync(join(instance, "agents")).sort();
  return Object.fromEntries(
    slugs.map((slug) => [slug, Object.fromEntries(readWorkspace(workspaceFolder(instance, slug)))]),
  );
}

/** No staged change, no temporary file, no empty folder. Removed workspaces are deleted elsewhere. */
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
  test("is not visible before it is applied, and then completely", async () => {
    await change({ kind: "create", slug: "a" }, { "SOUL.md": "kind", "memory/x.md": "old" });
    const changeId = newChangeId();
    const files = { "SOUL.md": null, "memory/x.md": "new", "notes/y": "y" };
    await stageChange(instance, changeId, { kind: "edit", slug: "a" }, changesOf(files));
    expect(state()).toEqual({ a: { "SOUL.md": "kind", "memory/x.md": "old" } });
    applyChange(instance, changeId);
    expect(state()).toEqual({ a: { "memory/x.md": "new", "notes/y": "y" } });
    await applyAndFinish(changeId);
    await applyAndFinish(changeId);
    expect(state()).toEqual({ a: { "memory/x.md": "new", "notes/y": "y" } });
    expectTidy();
  });

  test("can turn a file into a folder, a folder into a file, and change the case of a name", async () => {
    await change({ kind: "create", slug: "a" }, { one: "1", "two/deep/x": "2", "README.md": "3" });
    const files = { one: null, "one/x": "1", "two/deep/x": null, two: "2", "README.md": null, "readme.md": "3" };
    await change({ kind: "edit", slug: "a" }, files);
    expect(state()).toEqual({ a: { "one/x": "1", two: "2", "readme.md": "3" } });
    expectTidy();
  });

  test("can move a workspace and change its files at once", async () => {
    await change({ kind: "create", slug: "old" }, { a: "1", b: "2" });
    await change({ kind: "rename", slug: "new", from: "old" }, { b: null, c: "3" });
    expect(state()).toEqual({ new: { a: "1", c: "3" } });
  });

  test("that creates a workspace inherits nothing left under its slug", async () => {
    fs.mkdirSync(join(instance, "agents", "a"));
    fs.writeFileSync(join(instance, "agents", "a", "left"), "over");
    await change({ kind: "create", slug: "a" });
    expect(state()).toEqual({ a: {} });
  });

  test("can remove a workspace", async () => {
    await change({ kind: "create", slug: "a" }, { x: "1" });
    await change({ kind: "create", slug: "b" }, { x: "2" });
    await change({ kind: "remove", slug: "a" });
    expect(state()).toEqual({ b: { x: "2" } });
    expectTidy();
  });

  test("that is discarded leaves nothing behind", async () => {
    const changeId = newChangeId();
    await stageChange(instance, changeId, { kind: "create", slug: "a" }, [{ name: "x", content: "1" }]);
    await discardChange(instance, changeId);
    await discardChange(instance, changeId);
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
  ])("that cannot be applied is refused when it is staged, and leaves nothing behind", async (files) => {
    await change({ kind: "create", slug: "a" }, { kept: "x" });
    fs.symlinkSync("/etc", join(instance, "agents/a/hidden-from-lists"));
    fs.mkdirSync(join(instance, "agents/a/repository/.git"), { recursive: true });
    const stage = () =>
      stageChange(instance, newChangeId(), { kind: "edit", slug: "a" }, changesOf({ ok: "1", ...files }));
    await expect(stage()).rejects.toThrow(/^files: expected /);
    expect(state()).toEqual({ a: { kept: "x" } });
    expect(fs.readdirSync(join(instance, ".staging"))).toEqual([]);
  });

  test("works if .staging is missing, as after a restore", async () => {
    fs.rmdirSync(join(instance, ".staging"));
    await change({ kind: "create", slug: "a" }, { x: "1" });
    fs.rmdirSync(join(instance, ".staging"));
    expect(recoverChanges(instance, () => true)).toEqual([]);
    expect(state()).toEqual({ a: { x: "1" } });
  });

  test.each(["../x", "trash-1", "", "a/b"])("refuses the id %j", async (changeId) => {
    await expect(stageChange(instance, changeId, { kind: "create", slug: "a" }, [])).rejects.toThrow(TypeError);
  });
});

test("recovery finishes committed changes in the order of their ids, and discards the others", async () => {
  const [first, second, lost] = [newChangeId(), newChangeId(), newChangeId()];
  await stageChange(instance, first, { kind: "create", slug: "a" }, [{ name: "x", content: "1" }]);
  await stageChange(instance, second, { kind: "edit", slug: "a" }, [{ name: "x", content: "2" }]);
  await stageChange(instance, lost, { kind: "edit", slug: "a" }, [{ name: "x", content: "3" }]);
  fs.mkdirSync(join(instance, ".staging", "trash-1", "deep"), { recursive: true });
  expect(recoverChanges(instance, (changeId) => changeId !== lost)).toEqual([first, second]);
  expect(state()).toEqual({ a: { x: "2" } });
  expectTidy();
  expect(fs.readdirSync(join(instance, ".staging"))).toEqual(["trash-1"]);
});

// ---- Crashes -------------------------------------------------------------------------------------------------------

class Crash extends Error {}

const MUTATING = {
  sync: ["openSync", "mkdirSync", "linkSync", "fsyncSync", "renameSync", "unlinkSync", "rmdirSync", "rmSync"],
  soon: ["open", "mkdir", "rm"],
  ofFile: ["write", "sync"],
} as const;
type Call = (...args: unknown[]) => unknown;

/**
 * Runs `work` as a process that dies at its `at`-th call (from 0) that may change the disk: half of a write or of a
 * removal is done, and nothing after it. Gives how many calls there were. The disk keeps what was written in order, as
 * after SIGKILL, so waiting for it is left out.
 */
async function crashingAt(at: number, work: () => Promise<void>): Promise<number> {
  let calls = 0;
  const dying =
    (name: string, real: Call): Call =>
    (...args) => {
      const call = calls++;
      if (call === at) doHalf(name, real, args);
      if (call >= at) throw new Crash();
      return /sync$/.test(name) ? undefined : real(...args);
    };
  const mocked = (file: fs.promises.FileHandle) => {
    for (const name of MUTATING.ofFile) {
      const real = file[name].bind(file) as Call;
      Object.assign(file, { [name]: async (...args: unknown[]) => dying(name, real)(...args) });
    }
    return file;
  };
  const spies = [
    ...MUTATING.sync.map((name) => {
      const call = dying(name === "fsyncSync" ? "sync" : name, fs[name] as Call);
      return spyOn(fs, name).mockImplementation(call as never);
    }),
    ...MUTATING.soon.map((name) => {
      const call = dying(name, fs.promises[name] as Call);
      return spyOn(fs.promises, name).mockImplementation((async (...args: unknown[]) => {
        const given = await call(...args);
        return name === "open" ? mocked(given as fs.promises.FileHandle) : given;
      }) as never);
    }),
  ];
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Crash)) throw error;
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  return calls;
}

const realRemove = fs.rmSync;

function doHalf(name: string, real: Call, args: unknown[]): void {
  if (name === "write") {
    const [bytes, at, length] = args as [Uint8Array, number, number];
    void real(bytes, at, length >> 1);
  }
  if (name === "rmSync" || name === "rm") {
    const path = args[0] as string;
    const [first] = fs.existsSync(path) && fs.statSync(path).isDirectory() ? fs.readdirSync(path) : [];
    if (first !== undefined) realRemove(join(path, first), { recursive: true });
  }
}

/** Stage, commit, apply, dying at call `at`; then recovery, dying at call `again`; then recovery. True if committed. */
async function liveThrough(
  at: number,
  again: number,
  target: WorkspaceTarget,
  changes: FileChange[],
): Promise<{ committed: boolean; calls: number }> {
  const changeId = newChangeId();
  let committed = false;
  const calls = await crashingAt(at, async () => {
    await stageChange(instance, changeId, target, changes);
    committed = true;
    await applyAndFinish(changeId);
  });
  const recover = async () => void recoverChanges(instance, (id) => id === changeId && committed);
  await crashingAt(again, recover);
  await crashingAt(Number.POSITIVE_INFINITY, recover);
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

  test("at any call leaves all of it or nothing, also if recovery crashes", async () => {
    restore();
    const { calls } = await liveThrough(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, target, changesOf(files));
    expect(state()).toEqual(after);
    const outcomes = new Set<boolean>();
    for (let at = 0; at < calls; at++) {
      for (const again of [0, 1, 2, 3, 5, 8, 13, Number.POSITIVE_INFINITY]) {
        restore();
        const { committed } = await liveThrough(at, again, target, changesOf(files));
        expect(state()).toEqual(committed ? after : BEFORE);
        expectTidy();
        outcomes.add(committed);
      }
    }
    expect(outcomes.size).toBe(2);
  });
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

  test("has the same result as the changes to a map", async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        fs.rmSync(join(instance, "agents"), { recursive: true });
        fs.mkdirSync(join(instance, "agents"));
        let model: Files = {};
        for (const step of all) {
          const next = modelChange(model, step.target, step.files);
          if (next === undefined) continue; // no rule would do that: the slug is taken, or does not exist
          const { target, files, at, again } = step;
          const wanted = changesOf(target.kind === "remove" ? {} : files);
          if (next === "refused") {
            await expect(stageChange(instance, newChangeId(), target, wanted)).rejects.toThrow(AppError);
          } else if ((await liveThrough(at, again, target, wanted)).committed) model = next;
          expect(state()).toEqual(model);
          expectTidy();
        }
      }),
      { numRuns: 300 },
    );
  });
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

/** What `work` does to the disk, in the order of its calls, with paths relative to the instance's folder. */
async function logOf(work: (log: string[]) => Promise<void>): Promise<string[]> {
  const log: string[] = [];
  const pathOf = (file: number) => fs.readlinkSync(`/proc/self/fd/${file}`);
  const realPath = (path: string) => join(fs.realpathSync(dirname(path)), basename(path));
  const { fsyncSync, linkSync, renameSync, unlinkSync } = fs;
  const { open, rm } = fs.promises;
  const spies = [
    spyOn(fs.promises, "open").mockImplementation(async (...args) => {
      const file = await open(...args);
      const { sync, write } = file;
      return Object.assign(file, {
        sync: async () => {
          await sync.call(file);
          log.push(`synced ${pathOf(file.fd)}`);
        },
        write: (...args: unknown[]) => {
          log.push(`write ${pathOf(file.fd)}`);
          return (write as Call).apply(file, args);
        },
      }) as never;
    }),
    spyOn(fs.promises, "rm").mockImplementation((path, options) => {
      log.push(`remove ${realPath(String(path))}`);
      return rm(path, options);
    }),
    spyOn(fs, "fsyncSync").mockImplementation((file) => {
      log.push(`WAIT FOR ${pathOf(file)}`);
      fsyncSync(file);
    }),
    spyOn(fs, "linkSync").mockImplementation((from, to) => {
      log.push(`link ${realPath(String(from))}`);
      linkSync(from, to);
    }),
    spyOn(fs, "renameSync").mockImplementation((from, to) => {
      log.push(`move to ${realPath(String(to))}`);
      renameSync(from, to);
    }),
    spyOn(fs, "unlinkSync").mockImplementation((path) => {
      log.push(`unlink ${realPath(String(path))}`);
      unlinkSync(path);
    }),
  ];
  try {
    await work(log);
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  return log.map((line) => line.replace(`${fs.realpathSync(instance)}/`, ""));
}

test.skipIf(process.platform !== "linux")(
  "what a commit relies on is on disk before it, and a change's effects before its manifest is removed; nobody waits",
  async () => {
    await change({ kind: "create", slug: "a" }, { gone: "1" });
    const changeId = newChangeId();
    const log = await logOf(async (log) => {
      await stageChange(
        instance,
        changeId,
        { kind: "edit", slug: "a" },
        changesOf({ gone: null, x: "1", "new/y": "2" }),
      );
      log.push("commit");
      const applied = applyChange(instance, changeId);
      log.push("applied");
      await finishChange(instance, changeId, applied);
    });
    const lines = log.map((line) => line.replace(changeId, "ID"));
    const [commit, applied] = [lines.indexOf("commit"), lines.indexOf("applied")];
    expect(lines.slice(0, commit).sort()).toEqual([
      "synced .staging",
      "synced .staging/ID",
      "synced .staging/ID/1",
      "synced .staging/ID/2",
      "synced .staging/ID/manifest.json",
      "write .staging/ID/1",
      "write .staging/ID/2",
      "write .staging/ID/manifest.json",
    ]);
    // The folders after what is in them.
    expect(lines.slice(commit - 2, commit).sort()).toEqual(["synced .staging", "synced .staging/ID"]);
    expect(lines.slice(commit + 1, applied)).toEqual([
      "unlink agents/a/gone",
      "link .staging/ID/1",
      "move to agents/a/x",
      "link .staging/ID/2",
      "move to agents/a/new/y",
    ]);
    expect(lines.slice(applied + 1, -2).sort()).toEqual(["synced agents/a", "synced agents/a/new"]);
    expect(lines.slice(-2)).toEqual(["remove .staging/ID/manifest.json", "remove .staging/ID"]);
  },
);

describe.each(kinds)("$name of which the disk has kept", ({ target, files, after }) => {
  test("any one part alone is repeated from its beginning", async () => {
    const agents = join(instance, "agents");
    const [before, done] = [join(instance, "before"), join(instance, "done")];
    for (const [slug, texts] of Object.entries(BEFORE)) await change({ kind: "create", slug }, texts);
    const changeId = newChangeId();
    await stageChange(instance, changeId, target, changesOf(files));
    fs.cpSync(agents, before, { recursive: true });
    applyChange(instance, changeId);
    expect(state()).toEqual(after);
    fs.renameSync(agents, done);
    // Each new name is there alone, besides the old ones that it does not replace.
    for (const kept of fs.readdirSync(done, { recursive: true, withFileTypes: true })) {
      if (!kept.isFile()) continue;
      const path = join(kept.parentPath, kept.name).slice(done.length + 1);
      fs.rmSync(agents, { recursive: true, force: true });
      fs.cpSync(before, agents, { recursive: true });
      replaceAt(agents, path, fs.readFileSync(join(done, path), "utf8"));
      applyChange(instance, changeId);
      expect(state()).toEqual(after);
    }
    expect(recoverChanges(instance, () => true)).toEqual([changeId]);
    expect(fs.readdirSync(join(instance, ".staging")).filter((name) => !name.startsWith(TRASH))).toEqual([]);
  });
});

/** Writes a file, replacing whatever is there or in its way. */
function replaceAt(root: string, path: string, text: string): void {
  for (let at = path.indexOf("/"); at !== -1; at = path.indexOf("/", at + 1)) {
    const folder = join(root, path.slice(0, at));
    if (fs.statSync(folder, { throwIfNoEntry: false })?.isFile()) fs.rmSync(folder);
  }
  fs.rmSync(join(root, path), { recursive: true, force: true });
  fs.mkdirSync(dirname(join(root, path)), { recursive: true });
  fs.writeFileSync(join(root, path), text);
}
