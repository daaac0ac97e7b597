import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makePrivate } from "../../src/storage/private-folder.ts";
import { openStore } from "../../src/storage/store.ts";

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

test("a missing folder is created, for its owner only", () => {
  expect(makePrivate(folder)).toEqual([]);
  expect(modeOf(folder)).toBe("700");
  expect(makePrivate(folder)).toEqual([]);
});

test.each([0o777, 0o755, 0o750, 0o701])("a folder of mode %o is made private, and that is reported once", (mode) => {
  make(folder, mode);
  expect(makePrivate(folder)).toEqual([
    `${folder} was accessible to other users (mode 0${mode.toString(8)}); it is private now`,
  ]);
  expect(modeOf(folder)).toBe("700");
  expect(makePrivate(folder)).toEqual([]);
});

test.each(["roost.db", "roost.db-wal", "host-keys.json", "master.key", "wallet.json", "roost.toml"])(
  "%s is for its owner alone",
  (name) => {
    make(folder, 0o700);
    make(join(folder, name), 0o644);
    make(join(folder, "notes.txt"), 0o644);
    expect(makePrivate(folder)).toHaveLength(1);
    expect(modeOf(join(folder, name))).toBe("600");
    expect(modeOf(join(folder, "notes.txt"))).toBe("644");
  },
);

test("a folder of another user is refused, saying how to fix it, and left unchanged", () => {
  make(folder, 0o777);
  const somebodyElse = statSync(folder).uid + 4711;
  expect(() => makePrivate(folder, somebodyElse)).toThrow(/belongs to another user.*chown.*--data/);
  expect(modeOf(folder)).toBe("777");
});

/**
 * Runs the body of `beside` with `folder`, again and again, in another thread while `work` runs. Gives what it posted.
 */
async function beside(body: string, work: () => void): Promise<unknown[]> {
  const ended = new Int32Array(new SharedArrayBuffer(4));
  const program = `
    import * as fs from "node:fs";
    self.onmessage = ({ data: { folder, ended } }) => {
      postMessage("started");
      while (Atomics.load(ended, 0) === 0) { ${body} }
      postMessage("ended");
    };`;
  const url = URL.createObjectURL(new Blob([program], { type: "text/javascript" }));
  const thread = new Worker(url);
  const posted: unknown[] = [];
  const { promise: over, resolve, reject } = Promise.withResolvers<void>();
  const { promise: started, resolve: begin } = Promise.withResolvers<void>();
  thread.onerror = (event) => reject(new Error(event.message));
  thread.onmessage = ({ data }) => {
    if (data === "started") begin();
    else if (data === "ended") resolve();
    else posted.push(data);
  };
  thread.postMessage({ folder, ended });
  try {
    await started;
    work();
  } finally {
    Atomics.store(ended, 0, 1);
    await over;
    thread.terminate();
    URL.revokeObjectURL(url);
  }
  return posted;
}

test("at no moment can others read a new database", async () => {
  make(folder, 0o700);
  const seenOpen = await beside(
    `const mode = fs.statSync(folder + "/roost.db", { throwIfNoEntry: false })?.mode & 0o077; if (mode) postMessage(mode);`,
    () => {
      for (let round = 0; round < 30; round++) {
        openStore(folder).close();
        rmSync(join(folder, "roost.db"));
      }
    },
  );
  expect(seenOpen).toEqual([]);
});

test("a file that disappears meanwhile, as the database's WAL may, does no harm", async () => {
  make(folder, 0o700);
  const log = join(folder, "roost.db-wal");
  await beside(`fs.rmSync(folder + "/roost.db-wal", { force: true });`, () => {
    for (let round = 0; round < 1000; round++) {
      writeFileSync(log, "x", { mode: 0o644 });
      makePrivate(folder);
    }
  });
});
