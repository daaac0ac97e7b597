import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startLocked } from "../../src/sandbox/probe.ts";
import { LOCKED, locksOf } from "../support/threads.ts";
import { existing } from "./call-numbers.ts";
import { NATIVE, native, type Program, returned, UNLOCKED } from "./opened.ts";

const EPERM = -1;
const ENOSYS = -38;

let folder: string;
let listener: Bun.TCPSocketListener;
let reached = 0;
let compiled: Program;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "roost-lockdown-"));
  for (const name of ["master.key", "roost.db"]) writeFileSync(join(folder, name), "secret");
  process.env.ROOST_TEST_SECRET = "do not pass this on";
  listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { open: () => void reached++, data() {} },
  });
  const program = join(folder, "native");
  await Bun.build({
    entrypoints: [join(import.meta.dir, "native-process.ts")],
    compile: { outfile: program, autoloadDotenv: false, autoloadBunfig: false },
    minify: true,
  });
  compiled = { command: [program], readable: [] };
});
afterAll(() => {
  listener.stop(true);
  delete process.env.ROOST_TEST_SECRET;
  rmSync(folder, { recursive: true, force: true });
});

const PROGRAMS: [name: string, program: () => Program][] = [
  ["from source", () => NATIVE],
  ["compiled", () => compiled],
];

/** Code that makes a call, which every processor has. */
const making = (call: string): string => `call(${existing([call])[0]})`;

/** Opens the paths for reading; the contents, or the error of each. */
const reading = (paths: string[]): string =>
  `return ${JSON.stringify(paths)}.map((path) => { try { return fs.readFileSync(path, "latin1").length } catch (e) { return e.code } })`;
const connecting = (): string =>
  `const socket = ${making("41, 2, 1, 0")}; const a = new Uint8Array(16); a.set([2, 0, ${listener.port >> 8}, ${listener.port & 255}, 127, 0, 0, 1]);
   return socket < 0 ? socket : ${making("42, socket, ptr(a), 16")}`;
/** Calls that must all be refused, each with arguments with which it would do something, or fail in another way. */
const calling = (calls: readonly string[]): string =>
  `const name = cString("/etc/passwd"), program = cString("/bin/true"), room = new Uint8Array(4096), zeros = new BigUint64Array(16);
   const p = ptr(name), x = ptr(program), r = ptr(room), z = ptr(zeros); return [${calls.map((one) => `call(${one})`)}]`;

test("without the locks, the same code reads the host's secrets, connects, and starts programs", async () => {
  const paths = [join(folder, "master.key"), "/etc/passwd", `/proc/${process.pid}/environ`];
  for (const read of (await returned(UNLOCKED, reading(paths))) as number[]) expect(read).toBeGreaterThan(0);
  expect(await returned(UNLOCKED, connecting())).toBe(0);
  expect(await returned(UNLOCKED, `return Bun.spawnSync(["/bin/true"]).exitCode`)).toBe(0);
  expect(reached).toBe(1);
  reached = 0;
});

test.skipIf(Bun.which("bwrap") === null)("in bubblewrap, it reads nothing and reaches nothing either", async () => {
  const inside = async (source: string) => {
    const child = startLocked("bubblewrap", null, NATIVE);
    const outcome = await child.run({ kind: "script", source, input: null }, new AbortController().signal);
    return outcome.type === "result" ? JSON.parse(outcome.json ?? "null") : outcome;
  };
  expect(await inside(reading([join(folder, "master.key"), "/etc/passwd", "/proc/1/environ"]))).toEqual([
    "EPERM",
    "EPERM",
    "EPERM",
  ]);
  expect(await inside(connecting())).toBe(EPERM);
  expect(reached).toBe(0);
  expect(await inside("const all = []; for (;;) all.push(Buffer.alloc(8 << 20, 1))")).toMatchObject({ why: "memory" });
});

describe.each(PROGRAMS)("a process whose interpreter was broken, %s", (_, program) => {
  test("reads no file: no key, no database, no environment, nothing in /proc, not even itself", async () => {
    const paths = [
      join(folder, "master.key"),
      join(folder, "roost.db"),
      "/etc/passwd",
      "/proc/self/environ",
      "/proc/self/maps",
      "/proc/self/mem",
      `/proc/${process.pid}/environ`,
      `/proc/${process.pid}/cmdline`,
      process.execPath,
    ];
    expect(await returned(program(), reading(paths))).toEqual(paths.map(() => "EPERM"));
  });

  test("writes, creates, links and removes nothing, and lists no folder", async () => {
    const path = join(folder, "new");
    const code = `const tries = [
      () => fs.writeFileSync("${path}", "x"), () => fs.mkdirSync("${path}"), () => fs.symlinkSync("/", "${path}"),
      () => fs.renameSync("${folder}/roost.db", "${path}"), () => fs.unlinkSync("${folder}/roost.db"),
      () => fs.truncateSync("${folder}/roost.db"), () => fs.chmodSync("${folder}/roost.db", 0), () => fs.readdirSync("/"),
      () => fs.statSync("/"),
    ]; return tries.map((one) => { try { one(); return "done" } catch (e) { return e.code } })`;
    const refused = (await returned(program(), code)) as string[];
    expect(refused.filter((code) => code !== "EPERM")).toEqual([]);
    expect(readdirSync(folder).sort()).toEqual(["master.key", "native", "roost.db"]);
  });

  test("has an empty environment, and the root as its folder", async () => {
    expect(await returned(program(), "return Object.keys(process.env)")).toEqual([]);
    const child = startLocked("landlock", null, program());
    expect(await child.ready).toBe(true);
    expect(readlinkSync(`/proc/${child.pid}/cwd`)).toBe("/");
    expect(readFileSync(`/proc/${child.pid}/environ`, "utf8")).toBe("");
    // Where memory runs out, it ends before all others.
    expect(readFileSync(`/proc/${child.pid}/oom_score_adj`, "utf8")).toBe("1000\n");
    child.kill();
  });

  test("opens nothing by any other call: openat openat2 creat memfd_create io_uring open_by_handle_at epoll pipe eventfd inotify", async () => {
    const calls = existing([
      "2, p, 0",
      "257, -100, p, 0",
      "437, -100, p, z, 24",
      "85, p, 384",
      "319, p, 0",
      "425, 8, r",
      "303, -100, p, r, r, 0",
      "304, -100, r, 0",
      "213, 1",
      "291, 0",
      "22, r",
      "293, r, 0",
      "290, 0, 0",
      "253",
      "294, 0",
      "32, 0",
      "33, 0, 9",
    ]);
    expect(await returned(program(), calling(calls))).toEqual(calls.map(() => EPERM));
  });

  test("reaches no network: no TCP, UDP, Unix, netlink, packet or vsock socket", async () => {
    expect(await returned(program(), connecting())).toBe(EPERM);
    const sockets = existing([
      "41, 2, 2, 0",
      "41, 10, 1, 0",
      "41, 1, 1, 0",
      "41, 16, 3, 0",
      "41, 17, 3, 0",
      "41, 40, 1, 0",
      "53, 1, 1, 0, r",
      "49, 0, r, 16",
      "44, 0, r, 1, 0, 0, 0",
      "46, 1, r, 0",
    ]);
    expect(await returned(program(), calling(sockets))).toEqual(sockets.map(() => EPERM));
    const url = `http://127.0.0.1:${listener.port}/`;
    const outcomes = [
      await native(program(), `return await fetch("${url}").then(() => "reached", () => "refused")`),
      await native(
        program(),
        `return await Bun.connect({ hostname: "127.0.0.1", port: ${listener.port}, socket: { data() {} } }).then(() => "reached", () => "refused")`,
      ),
    ];
    for (const outcome of outcomes) expect(outcome).not.toMatchObject({ json: '"reached"' });
    expect(reached).toBe(0);
  });

  test("starts no process and no program, and signals nobody", async () => {
    const calls = existing([
      "59, x, z, z",
      "322, -100, x, z, z, 0",
      "57",
      "58",
      "56, 17",
      "56, 0x20000000",
      `62, ${process.pid}, 0`,
      `234, ${process.pid}, ${process.pid}, 0`,
      `200, ${process.pid}, 0`,
      `424, 0, 15, 0, 0`,
      `129, ${process.pid}, 15, r`,
      `434, ${process.pid}, 0`,
    ]);
    expect(await returned(program(), calling(calls))).toEqual(calls.map(() => EPERM));
    expect(await returned(program(), calling(["435, r, 88"]))).toEqual([ENOSYS]); // clone3, whose flags nobody could check
  });

  test("reaches nothing else of the kernel", async () => {
    const kernel = {
      ptrace: "101, 16, 1, 0, 0",
      process_vm_readv: "310, 1, r, 1, r, 1, 0",
      process_vm_writev: "311, 1, r, 1, r, 1, 0",
      bpf: "321, 0, r, 16",
      mount: "165, p, p, p, 0, 0",
      keyctl: "250, 0, 0",
      add_key: "248, r, r, r, 0, 0",
      perf_event_open: "298, r, 0, -1, -1, 0",
      userfaultfd: "323, 0",
      unshare: "272, 0x10000000",
      setns: "308, 0, 0",
      chroot: "161, p",
      pivot_root: "155, p, p",
      init_module: "175, r, 0, p",
      setuid: "105, 0",
      setrlimit: "160, 7, r",
      prlimit: "302, 0, 7, r, 0",
      seccomp: "317, 1, 0, r",
      prctl_dumpable: "157, 4, 1, 0, 0, 0",
      ioctl: "16, 1, 0x5412, r",
      shmget: "29, 0, 4096, 0x3b6",
      personality: "135, 0",
    };
    const results = (await returned(program(), calling(existing(Object.values(kernel))))) as number[];
    expect(Object.keys(kernel).filter((_, at) => results[at] !== EPERM)).toEqual([]);
  });

  test("gets no new executable memory", async () => {
    const calls = existing(["9, 0, 4096, 7, 34, -1, 0", "10, 0, 4096, 5", "9, 0, 4096, 5, 34, -1, 0"]);
    expect(await returned(program(), calling(calls))).toEqual([EPERM, EPERM, EPERM]);
  });

  test("dies if it calls the kernel by its other numbers", async () => {
    expect(await native(program(), "return call(0x40000000 + 39)")).toMatchObject({ type: "killed", why: "crash" });
  });

  test("is stopped where its memory ends", async () => {
    const bombs = [
      "const all = []; for (;;) all.push(Buffer.alloc(8 << 20, 1))",
      "const all = []; for (;;) all.push({ a: [1, 2, 3] })",
      `for (;;) if (${making("9, 0, 16 << 20, 3, 0x8022, -1, 0")} < 0) throw new Error('no more')`, // MAP_POPULATE
    ];
    for (const bomb of bombs) {
      const outcome = await native(program(), bomb);
      expect(outcome.type).not.toBe("result");
      if (outcome.type === "killed") expect(outcome.why).toBeOneOf(["memory", "crash"]);
    }
  });

  test("is killed when it floods the host with output", async () => {
    const flood = "const bytes = Buffer.alloc(65536, 120); for (;;) fs.writeSync(1, bytes)";
    expect(await native(program(), flood)).toMatchObject({ type: "killed", why: "output" });
  });

  test("cannot pass off as a result what is none", async () => {
    const forge = (text: string) => native(program(), `fs.writeSync(1, ${JSON.stringify(text)}); ${making("231, 0")}`);
    expect(await forge('junk\n{"type":"result"\n')).toMatchObject({ type: "killed", why: "crash" });
    expect(await forge('null\n7\n{"type":"thrown"\n')).toMatchObject({ type: "killed", why: "crash" });
    expect(await forge('{"type":"result","json":{"a":1},"leftOut":"x"}\n')).toMatchObject({
      type: "result",
      json: null,
      leftOut: 0,
    });
    expect(await forge('{"type":"thrown","error":{"name":[1],"message":{"a":1}}}\n')).toMatchObject({
      type: "thrown",
      error: { name: "", message: "", stack: "" },
    });
  });

  test("has every thread locked, no capabilities, and no descriptor but its pipes and what Bun itself holds", async () => {
    const inherited = openSync("/etc/hostname", "r");
    const child = startLocked("landlock", null, program());
    expect(await child.ready).toBe(true);
    const locks = locksOf(child.pid);
    const files = readdirSync(`/proc/${child.pid}/fd`).map((fd) => readlinkSync(`/proc/${child.pid}/fd/${fd}`));
    closeSync(inherited);
    child.kill();
    await child.gone;
    expect(locks.length).toBeGreaterThan(1);
    expect(new Set(locks)).toEqual(new Set([LOCKED]));
    const kinds = files.map((file) => file.replace(/:?\[.*/, ""));
    expect(kinds.filter((kind) => !["socket", "pipe", "anon_inode", "/dev/null"].includes(kind))).toEqual([]);
    expect(kinds.filter((kind) => kind === "socket" || kind === "pipe").length).toBeLessThanOrEqual(2);
  });

  test("dies with its host, however that ends", async () => {
    const host = `
      import { startLocked } from ${JSON.stringify(join(import.meta.dir, "../../src/sandbox/probe.ts"))};
      const child = startLocked("landlock", null, ${JSON.stringify(program())});
      await child.ready;
      console.log(child.pid);
      await child.run({ kind: "script", source: "for (;;);", input: null }, new AbortController().signal);`;
    const parent = Bun.spawn([process.execPath, "-e", host], { stdio: ["ignore", "pipe", "inherit"] });
    const { value } = await parent.stdout.getReader().read();
    const pid = Number(new TextDecoder().decode(value));
    expect(existsSync(`/proc/${pid}`)).toBe(true);
    parent.kill("SIGKILL");
    await parent.exited;
    await untilGone(pid);
  });
});

/** Resolves when the process is gone, or a zombie that nobody has reaped yet. */
async function untilGone(pid: number): Promise<void> {
  for (;;) {
    try {
      if (/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))) return;
    } catch {
      return;
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}
