import { dlopen } from "bun:ffi";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Jail, jailLevel, openJail } from "../../src/workspace/jail.ts";
import { probeLinux } from "../../src/workspace/jail-linux.ts";
import { openFolderByParts } from "../../src/workspace/jail-portable.ts";
import { scan, writeInto } from "./disk.ts";

const MAX = 1_000;
const isLinux = process.platform === "linux";
const kernel = probeLinux();
const ways = [
  ...(kernel === undefined ? [] : [{ way: "openat2", openFolder: kernel }]),
  { way: "portable", openFolder: openFolderByParts },
];

let base: string;
let root: string;
let outside: string;

beforeEach(() => {
  base = fs.mkdtempSync(join(tmpdir(), "roost-jail-"));
  root = join(base, "root");
  outside = join(base, "outside");
  for (const folder of [root, outside]) fs.mkdirSync(folder);
  fs.writeFileSync(join(outside, "secret"), "SECRET");
});
afterEach(() => fs.rmSync(base, { recursive: true, force: true }));

const text = (jail: Jail, name: string) => jail.read(name, MAX)?.bytes.toString();
const put = (jail: Jail, name: string, content: string) => writeInto(jail, root, name, content);
const modeOf = (path: string) => fs.statSync(path).mode & 0o777;
/** Of what is below a folder: other tests of this process open and close theirs meanwhile. */
const openBelow = (folder: string): string[] =>
  fs.readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      const path = fs.readlinkSync(`/proc/self/fd/${fd}`);
      return path.startsWith(folder) ? [path] : [];
    } catch {
      return []; // closed since
    }
  });

test.skipIf(!isLinux)("on Linux the kernel enforces the paths", () => {
  expect(jailLevel()).toBe("openat2");
});

describe.each(ways)("a jail ($way)", ({ openFolder }) => {
  let jail: Jail;
  beforeEach(() => {
    jail = openJail(root, openFolder);
  });

  test("returns what was written, in folders that it creates, readable by the owner only", () => {
    put(jail, "a/b/c.txt", "one");
    put(jail, "a/b/c.txt", "two");
    put(jail, "empty", "");
    expect(text(jail, "a/b/c.txt")).toBe("two");
    expect(text(jail, "empty")).toBe("");
    expect(jail.stat("a/b/c.txt")?.size).toBe(3);
    expect(modeOf(join(root, "a/b/c.txt"))).toBe(0o600);
    expect(modeOf(join(root, "a/b"))).toBe(0o700);
    expect(fs.readdirSync(root).sort()).toEqual(["a", "empty"]);
  });

  test("returns null for what does not exist, for folders, and below a file", () => {
    put(jail, "a/b", "x");
    for (const name of ["b", "b/c", "a", "a/b/c"]) {
      expect(jail.read(name, MAX)).toBeNull();
      expect(jail.stat(name)).toBeNull();
      expect(jail.remove(name)).toBe(false);
    }
    expect(text(jail, "a/b")).toBe("x");
  });

  test("shows of a file what the file system does, a time before 1970 and a size beyond 4 GiB too", () => {
    put(jail, "a/now", "x");
    put(jail, "a/old", "x");
    put(jail, "a/large", "");
    fs.utimesSync(join(root, "a/old"), -1.25, -1.25);
    fs.truncateSync(join(root, "a/large"), 5 * 2 ** 30);
    for (const name of ["now", "old", "large"]) {
      const { size, mtimeMs, ino: inode, ctimeMs } = fs.lstatSync(join(root, "a", name));
      const version = jail.readIn(["a"], Number.MAX_SAFE_INTEGER, (_, stat) => stat(name));
      expect(version).toEqual({ size, mtimeMs, inode, ctimeMs });
    }
  });

  test("without its folder is empty and refuses writes", () => {
    const none = openJail(join(base, "none"), openFolder);
    expect(none.read("a", MAX)).toBeNull();
    expect(scan(none)).toEqual({ files: [], others: [] });
    expect(() => put(none, "a", "x")).toThrow("is missing");
  });

  test("refuses a file over the limit and returns one at the limit", () => {
    put(jail, "at", "x".repeat(MAX));
    put(jail, "over", "x".repeat(MAX + 1));
    expect(text(jail, "at")?.length).toBe(MAX);
    expect(() => jail.read("over", MAX)).toThrow("over: expected a file of at most 1000 bytes");
  });

  test("removes a file with the folders that become empty, and no others", () => {
    put(jail, "a/b/c/d", "x");
    put(jail, "a/e", "x");
    expect(jail.remove("a/b/c/d")).toBe(true);
    expect(fs.readdirSync(join(root, "a"))).toEqual(["e"]);
    expect(jail.remove("a/e")).toBe(true);
    expect(fs.readdirSync(root)).toEqual([]);
  });

  test("finishes a removal that was interrupted before its folders were removed", () => {
    fs.mkdirSync(join(root, "a/b"), { recursive: true });
    expect(jail.remove("a/b/gone")).toBe(false);
    expect(fs.readdirSync(root)).toEqual([]);
  });

  test("refuses a file where a folder is, and a folder where a file is", () => {
    put(jail, "a/b", "x");
    expect(() => put(jail, "a", "y")).toThrow('name: expected "a" to be a file, it is a folder');
    expect(() => put(jail, "a/b/c", "y")).toThrow('name: expected "a/b" to be a folder');
    expect(fs.readdirSync(root)).toEqual(["a"]);
  });

  test("lists plain files by name, and separately what is left alone", () => {
    for (const name of ["b", "a/x", "a-b", "a.b", "a/B/1", "A"]) put(jail, name, name);
    fs.mkdirSync(join(root, ".git"));
    fs.writeFileSync(join(root, "a/.hidden"), "");
    fs.writeFileSync(join(root, "é"), "");
    fs.mkdirSync(join(root, "hollow"));
    fs.symlinkSync(outside, join(root, "link"));
    const { files, others } = scan(jail);
    expect(files.map(({ name }) => name)).toEqual(["A", "a-b", "a.b", "a/B/1", "a/x", "b"]);
    expect(files.map(({ size }) => size)).toEqual([1, 3, 3, 5, 3, 1]);
    expect(others.sort()).toEqual([".git", "a/.hidden", "hollow/", "link", "é"]);
  });

  test("looks no deeper than a name can reach", () => {
    fs.mkdirSync(join(root, "1/2/3/4/5/6/7/8/9"), { recursive: true });
    fs.writeFileSync(join(root, "1/2/3/4/5/6/7/eighth"), "");
    fs.writeFileSync(join(root, "1/2/3/4/5/6/7/8/ninth"), "");
    const { files, others } = scan(jail);
    expect(files.map(({ name }) => name)).toEqual(["1/2/3/4/5/6/7/eighth"]);
    expect(others).toEqual(["1/2/3/4/5/6/7/8/"]);
  });

  test.each(["../outside/secret", "..", "a/../../outside/secret", "/etc/passwd", ".write.tmp", "a\0/../b", "a\nb", ""])(
    "refuses the name %j, should one get this far",
    (name) => {
      const calls = [
        () => jail.read(name, MAX),
        () => jail.stat(name),
        () => put(jail, name, "x"),
        () => jail.remove(name),
        () => jail.putIn([{ source: join(outside, "secret"), name }]),
      ];
      for (const call of calls) expect(call).toThrow("name: expected a relative file name");
      expect(fs.readdirSync(root)).toEqual([]);
    },
  );

  test("does not follow a link to a file; writing replaces the link, not what it points at", () => {
    fs.symlinkSync(join(outside, "secret"), join(root, "link"));
    expect(jail.read("link", MAX)).toBeNull();
    expect(jail.stat("link")).toBeNull();
    expect(jail.remove("link")).toBe(false);
    put(jail, "link", "mine");
    expect(text(jail, "link")).toBe("mine");
    expect(fs.readFileSync(join(outside, "secret"), "utf8")).toBe("SECRET");
  });

  test.each(["link", "a/link", "dangling"])("does not go through the linked folder %s", (link) => {
    put(jail, "a/b", "x");
    fs.symlinkSync(link === "dangling" ? join(base, "none") : outside, join(root, link));
    expect(jail.read(`${link}/secret`, MAX)).toBeNull();
    expect(jail.stat(`${link}/secret`)).toBeNull();
    expect(jail.remove(`${link}/secret`)).toBe(false);
    expect(() => put(jail, `${link}/new`, "x")).toThrow(`name: expected "${link}" to be a folder`);
    expect(() => put(jail, `${link}/new/deep`, "x")).toThrow("to be a folder");
    expect(fs.readdirSync(outside)).toEqual(["secret"]);
    expect(fs.readdirSync(base).sort()).toEqual(["outside", "root"]);
  });

  test("does not go through a link that stays inside either", () => {
    put(jail, "real/file", "x");
    fs.symlinkSync("real", join(root, "alias"));
    expect(jail.read("alias/file", MAX)).toBeNull();
  });

  test("refuses a link as its root", () => {
    fs.symlinkSync(outside, join(base, "alias"));
    const other = openJail(join(base, "alias"), openFolder);
    expect(other.read("secret", MAX)).toBeNull();
    expect(() => put(other, "new", "x")).toThrow("to be a folder");
  });

  test("does not write through a hard link", () => {
    fs.linkSync(join(outside, "secret"), join(root, "hard"));
    put(jail, "hard", "mine");
    expect(fs.readFileSync(join(outside, "secret"), "utf8")).toBe("SECRET");
  });

  test("neither waits for a FIFO nor reads it, and can replace it", () => {
    expect(Bun.spawnSync(["mkfifo", join(root, "fifo")]).success).toBe(true);
    expect(jail.read("fifo", MAX)).toBeNull();
    expect(jail.stat("fifo")).toBeNull();
    expect(scan(jail).others).toEqual(["fifo"]);
    put(jail, "fifo", "plain");
    expect(text(jail, "fifo")).toBe("plain");
  });

  test.skipIf(!isLinux || process.getuid?.() !== 0)("reads a file without read permission as absent", () => {
    put(jail, "closed", "x");
    fs.chownSync(base, 65_534, 65_534);
    fs.chownSync(root, 65_534, 65_534);
    const { setfsuid } = dlopen("libc.so.6", { setfsuid: { args: ["u32"], returns: "i32" } }).symbols;
    setfsuid(65_534); // of this thread, until it is set back
    try {
      expect(jail.read("closed", MAX)).toBeNull();
    } finally {
      setfsuid(0);
    }
    expect(text(jail, "closed")).toBe("x");
  });

  test.skipIf(!isLinux)("leaves no file open, whether calls succeed or fail", () => {
    const all = () => {
      put(jail, "a/b/c", "x");
      for (const name of ["a/b/c", "a", "link/x", "link", "none/x", "a/b/c/d", ".."]) {
        for (const call of [
          () => jail.read(name, 0),
          () => jail.stat(name),
          () => put(jail, name, "x"),
          () => jail.remove(name),
          () => scan(jail),
        ]) {
          try {
            call();
          } catch {
            // Half of them fail, as other tests say how.
          }
        }
      }
    };
    fs.symlinkSync(outside, join(root, "link"));
    const kept = fs.openSync(root, "r");
    for (let i = 0; i < 5; i++) all();
    expect(openBelow(root)).toEqual([root]);
    fs.closeSync(kept);
  });
});

/** Exchanges `root/a`, a folder, and a link to `outside`, over and over, until its standard input ends. */
const SWAPPER = `
  import { dlopen, ptr } from "bun:ffi";
  import { symlinkSync } from "node:fs";
  const [root, outside] = process.argv.slice(1);
  symlinkSync(outside, root + "/../link");
  const { renameat2 } = dlopen("libc.so.6", {
    renameat2: { args: ["i32", "ptr", "i32", "ptr", "u32"], returns: "i32" },
  }).symbols;
  const [folder, link] = [root + "/a", root + "/../link"].map((path) => Buffer.from(path + "\\0"));
  const AT_FDCWD = -100;
  const RENAME_EXCHANGE = 2;
  process.stdin.on("end", () => process.exit(0)).resume();
  function swap() {
    for (let i = 0; i < 100; i++) {
      if (renameat2(AT_FDCWD, ptr(folder), AT_FDCWD, ptr(link), RENAME_EXCHANGE) !== 0) process.exit(1);
    }
    setImmediate(swap);
  }
  console.log("swapping");
  swap();
`;

test.skipIf(kernel === undefined)("a folder that is swapped for a link meanwhile leads nobody outside", async () => {
  const jail = openJail(root, kernel);
  fs.mkdirSync(join(root, "a"));
  fs.writeFileSync(join(root, "a/secret"), "mine");
  const swapper = Bun.spawn([process.execPath, "-e", SWAPPER, root, outside], { stdin: "pipe", stdout: "pipe" });
  try {
    await swapper.stdout.getReader().read();
    const seen = new Set<string | undefined>();
    const refusals = new Set<string>();
    const until = performance.now() + 1_000;
    for (let i = 0; performance.now() < until || seen.size < 2 || refusals.size === 0; i++) {
      seen.add(text(jail, "a/secret"));
      try {
        if (i % 8 === 0) put(jail, "a/new", "x"); // it waits for the disk: reads are to have most of the second
        jail.remove("a/secret-not");
        scan(jail);
      } catch (error) {
        refusals.add(String(error));
      }
    }
    expect([...seen].sort()).toEqual(["mine", undefined]); // both sides of the swap were met, and the secret never
    expect([...refusals]).toEqual(['AppError: name: expected "a" to be a folder']);
  } finally {
    await swapper.stdin.end();
    expect(await swapper.exited).toBe(0);
  }
  expect(fs.readdirSync(outside)).toEqual(["secret"]);
});
