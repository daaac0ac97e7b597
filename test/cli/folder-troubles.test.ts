import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildBinary } from "../support/binary.ts";
import { canMount, mounted } from "../support/mounted.ts";
import { NO_NODES } from "../support/no-nodes.ts";
import { type Home, makeHome } from "./command-line.ts";

let home: Home;
let binary: string;
beforeAll(async () => {
  binary = await buildBinary();
  home = makeHome();
});
afterAll(() => {
  Bun.spawnSync(["chmod", "-R", "u+rwx", home.folder]);
  home.remove();
});

/** Runs the binary until it ends, at most for 25 s; `under` is a command that runs its arguments. */
async function end(words: string[], under: string[] = []): Promise<{ code: number; errors: string }> {
  const child = Bun.spawn([...under, binary, ...words], {
    cwd: home.folder,
    env: { ...home.env, ...NO_NODES, PATH: process.env.PATH ?? "", ROOST_LOG_LEVEL: "silent" },
    stdio: ["ignore", "ignore", "pipe"],
    timeout: 120_000,
  });
  const errors = await Bun.readableStreamToText(child.stderr);
  return { code: await child.exited, errors };
}

const serving = (dataDir: string, under?: string[]) => end(["serve", "--port", "0", "--data", dataDir], under);

const put = (path: string, content = "nonsense") => writeFileSync(join(home.folder, path), content, { mode: 0o600 });
const make = (path: string) => mkdirSync(join(home.folder, path), { recursive: true, mode: 0o700 });

/** What exists before the start, the data folder, and the messages: `HERE` is the folder that all of it is in. */
const TROUBLES: [what: string, before: () => void, dataDir: string, told: string][] = [
  [
    "a file in the folder's place",
    () => put("file"),
    "file",
    "HERE/file cannot be the data folder: a file is in its place; choose another with --data",
  ],
  [
    "a folder below a file",
    () => put("file"),
    "file/data",
    "HERE/file/data cannot be the data folder: part of its path is a file; choose another with --data",
  ],
  [
    "a name that is too long",
    () => {},
    "x".repeat(300),
    `HERE/${"x".repeat(300)} cannot be the data folder: its name is too long; choose another with --data`,
  ],
  [
    "a link to a disk that is not mounted",
    () => symlinkSync("/nowhere/disk", join(home.folder, "unmounted")),
    "unmounted",
    "HERE/unmounted cannot be the data folder: HERE/unmounted is a symbolic link to /nowhere/disk, which does not exist; " +
      "mount its disk, or choose another with --data",
  ],
  [
    "a folder below such a link",
    () => symlinkSync("/nowhere/disk", join(home.folder, "lost")),
    "lost/data",
    "HERE/lost/data cannot be the data folder: HERE/lost is a symbolic link to /nowhere/disk, which does not exist; " +
      "mount its disk, or choose another with --data",
  ],
  [
    "a link that leads to itself",
    () => symlinkSync("loop", join(home.folder, "loop")),
    "loop/data",
    "HERE/loop/data cannot be the data folder: it is a symbolic link that leads back to itself; choose another with --data",
  ],
  [
    "a folder in the database's place",
    () => make("one/roost.db"),
    "one",
    "HERE/one/roost.db cannot be opened: it is a folder; move it elsewhere",
  ],
  [
    "a folder in the lock's place",
    () => make("two/server.lock"),
    "two",
    "HERE/two/server.lock cannot be opened: it is a folder; move it elsewhere",
  ],
  [
    "a database that is none",
    () => {
      make("three");
      put("three/roost.db", "this is no database, though it is long enough to be read as one");
    },
    "three",
    "the database HERE/three/roost.db is damaged (file is not a database); stop the server and restore the latest " +
      "copy of the data folder",
  ],
  [
    "a database of 0 bytes beside a host's keys",
    () => {
      make("emptied");
      for (const name of ["roost.db", "master.key", "wallet.json"]) put(`emptied/${name}`, "");
    },
    "emptied",
    "the database HERE/emptied/roost.db is empty, though master.key, wallet.json beside it are of a host that has one; " +
      "restore the latest copy of the data folder, or remove roost.db to begin anew",
  ],
  [
    "a file of keys that is no JSON",
    () => {
      make("four");
      put("four/host-keys.json");
    },
    "four",
    "HERE/four/host-keys.json is damaged: it is not valid JSON; restore it from a copy of the data folder that includes the keys",
  ],
  [
    "a file of keys that holds none",
    () => {
      make("five");
      put("five/host-keys.json", "{}");
    },
    "five",
    "HERE/five/host-keys.json holds no keys; restore it from a copy of the data folder that includes them",
  ],
  ...["", "null", "{}", '{"address":"0x00"}'].map((content, at): (typeof TROUBLES)[number] => [
    `a wallet that holds ${content || "nothing"}`,
    () => {
      make(`wallet-${at}`);
      put(`wallet-${at}/wallet.json`, content);
    },
    `wallet-${at}`,
    `HERE/wallet-${at}/wallet.json ${content === "" ? "is damaged: it is not valid JSON" : "holds no key"}; restore it ` +
      "from a copy of the data folder that includes the keys",
  ]),
  [
    "a folder in the wallet's place",
    () => make("eight/wallet.json"),
    "eight",
    "HERE/eight/wallet.json cannot be read: it is a folder; move it elsewhere",
  ],
  [
    "another program's database",
    () => {
      make("nine");
      const other = new Database(join(home.folder, "nine/roost.db"), { create: true });
      other.run("CREATE TABLE photos (name TEXT)");
      other.close();
      chmodSync(join(home.folder, "nine/roost.db"), 0o600);
    },
    "nine",
    "the database in HERE/nine is not Roost's; choose another data folder with --data",
  ],
  [
    "a path that SQLite cannot open",
    () => {},
    `${"y".repeat(200)}/${"y".repeat(200)}/${"y".repeat(200)}`,
    `HERE/${"y".repeat(200)}/${"y".repeat(200)}/${"y".repeat(200)}/server.lock cannot be opened: its path is longer ` +
      "than 500 bytes; choose another data folder with --data",
  ],
  [
    "a folder in the master key's place",
    () => make("six/master.key"),
    "six",
    "HERE/six/master.key cannot be read: it is a folder; move it elsewhere",
  ],
  [
    "a master key of another length",
    () => {
      make("seven");
      put("seven/master.key", "short");
    },
    "seven",
    "the master key HERE/seven/master.key holds 5 bytes, expected 32; restore it from a copy of the data folder that " +
      "includes the keys",
  ],
];

test.each(TROUBLES)("%s stops the start with exit code 1 and the fix", async (_, before, dataDir, told) => {
  before();
  const { code, errors } = await serving(dataDir);
  expect([code, errors.replaceAll(home.folder, "HERE")]).toEqual([1, `roost: ${told}\n`]);
});

test("a folder that holds something else is refused and left as it is; files that a new host may have are not", async () => {
  make("photos/2026");
  for (const name of ["a.jpg", "b.jpg", "c.jpg", "roost.toml"]) put(`photos/${name}`, "");
  chmodSync(join(home.folder, "photos"), 0o755);
  const { code, errors } = await serving("photos");
  expect([code, errors.replaceAll(home.folder, "HERE")]).toEqual([
    1,
    "roost: HERE/photos has no roost.db, but 2026, a.jpg, b.jpg and 1 more: it is not a data folder, and is left as " +
      "it is; use --data with a new or empty folder, or one that has a roost.db\n",
  ]);
  expect(statSync(join(home.folder, "photos")).mode & 0o777).toBe(0o755);
  expect(readdirSync(join(home.folder, "photos")).sort()).toEqual(["2026", "a.jpg", "b.jpg", "c.jpg", "roost.toml"]);

  make("fresh/lost+found");
  put("fresh/roost.toml", "");
  put("fresh/master.key", "short");
  expect((await serving("fresh")).errors).toContain("the master key");
});

test("a settings file that is a folder stops the start with exit code 78", async () => {
  make("settings/roost.toml");
  const path = join(home.folder, "settings/roost.toml");
  expect(await serving("settings")).toEqual({
    code: 78,
    errors: `roost: the settings file ${path} cannot be read: it is a folder; move it elsewhere\n`,
  });
});

/** Runs a command as somebody who is not root: nothing is forbidden to root. */
const AS_NOBODY = process.getuid?.() === 0 ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : [];
const canBeNobody = Bun.spawnSync([...AS_NOBODY, "true"]).exitCode === 0;

test.skipIf(!canBeNobody)("missing permissions are reported, by serve and by commands", async () => {
  make("closed");
  chmodSync(home.folder, 0o755);
  const locked = join(home.folder, "locked");
  mkdirSync(locked, { mode: 0o500 });
  if (AS_NOBODY.length > 0) Bun.spawnSync(["chown", "65534:65534", locked]);
  const below = join(locked, "data");
  expect(await serving(below, AS_NOBODY)).toEqual({
    code: 1,
    errors: `roost: ${below} cannot be the data folder: permission denied; run as the user who owns it, or choose another with --data\n`,
  });
  expect(await serving(locked, AS_NOBODY)).toEqual({
    code: 1,
    errors: `roost: ${locked}/server.lock cannot be opened: permission denied; run as the user who owns it, or choose another data folder with --data\n`,
  });
  const sealed = join(home.folder, "sealed");
  mkdirSync(sealed, { mode: 0o000 });
  if (AS_NOBODY.length > 0) {
    expect(await serving(sealed, AS_NOBODY)).toEqual({
      code: 78,
      errors: `roost: the data folder ${sealed} cannot be read: permission denied; run as the user who owns it\n`,
    });
  }
  const created = await end(["invite", "create", "--data", locked], AS_NOBODY);
  expect(created.code).toBe(1);
  expect(created.errors).toMatch(/^roost: \S+\/(server\.lock|roost\.db) cannot be opened: permission denied; run as/);
});

test.skipIf(!canMount)("a full disk and a read-only one are reported", async () => {
  make("disk");
  const disk = join(home.folder, "disk");
  expect(await serving(join(disk, "data"), mounted("ro", disk))).toEqual({
    code: 1,
    errors: `roost: ${disk}/data cannot be the data folder: its file system is read-only; choose another with --data\n`,
  });
  expect(await serving(join(disk, "data"), mounted("size=64k", disk))).toEqual({
    code: 1,
    errors: `roost: ${disk}/data/roost.db cannot be opened: its disk is full; free some space there, or choose another data folder with --data\n`,
  });
  expect(existsSync(join(disk, "data"))).toBe(false);
});

const NO_ADDRESS =
  "is not an address or name of this machine; choose another with --host or ROOST_HOST: 127.0.0.1 for this machine alone, " +
  "0.0.0.0 for every address it has";

test.each(["203.0.113.1", "no-such-name.invalid", "999.1.1.1"])(
  "%s, which is not an address to listen on, stops the start with exit code 1 and the fix",
  async (host) => {
    expect(await end(["serve", "--data", "heard", "--port", "0", "--host", host])).toEqual({
      code: 1,
      errors: `roost: ${host} ${NO_ADDRESS}\n`,
    });
  },
);

test.skipIf(!canBeNobody || AS_NOBODY.length === 0)(
  "a port that this user may not use is reported with those that may be used",
  async () => {
    const mine = join(home.folder, "mine");
    mkdirSync(mine, { mode: 0o700 });
    Bun.spawnSync(["chown", "65534:65534", mine]);
    // In a network of its own, where no port below 1024 is everybody's.
    const strict = [
      "unshare",
      "--net",
      "sh",
      "-c",
      'echo 1024 > /proc/sys/net/ipv4/ip_unprivileged_port_start; exec "$@"',
      "-",
    ];
    const { code, errors } = await end(
      ["serve", "--data", mine, "--port", "80", "--host", "0.0.0.0"],
      [...strict, ...AS_NOBODY],
    );
    expect([code, errors]).toEqual([
      1,
      "roost: no permission to listen on port 80 of 0.0.0.0; choose one from 1024 up with --port or ROOST_PORT\n",
    ]);
  },
);

test("an audit-head.json that is not JSON is reported with its path, by audit and by doctor", async () => {
  make("audited");
  await end(["invite", "create", "--data", "audited"]);
  put("audited/audit-head.json");
  const path = join(home.folder, "audited/audit-head.json");
  const verified = () => end(["audit", "--verify", "--data", "audited"]);
  expect(await verified()).toEqual({
    code: 1,
    errors: expect.stringContaining(`${path} is damaged: it is not valid JSON`),
  });
  for (const content of ["null", "[]", '{"auditId":1}']) {
    put("audited/audit-head.json", content);
    expect(await verified()).toEqual({
      code: 1,
      errors: expect.stringContaining(`${path} holds no checkpoint; restore`),
    });
  }
});
