/**
 * A script of an agent reaches the host (docs/contract/runtime.md, Isolation), tried on the compiled binary: first by scripts,
 * through its tool; then as if a script had broken out of QuickJS and of WebAssembly, by system calls that are made in the very
 * process which would run it.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { startLocked } from "../../src/sandbox/probe.ts";
import { FAULTS, INPUT, NOTHING, WAYS_OUT } from "../sandbox/escape-attempts.ts";
import { buildBinary } from "../support/binary.ts";
import { ENDLESS, runsEndless, until } from "../support/endless-script.ts";
import { LOCKED, locksOf, threadsOf } from "../support/threads.ts";
import { type Argument, takeOver } from "./injection.ts";
import { type Call, startWorld, type World } from "./world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(async () => {
  world.expectNothingLeaked("root:x:0:0");
  await world[Symbol.asyncDispose]();
});

/** As many as run at once on a machine with two cores: on a busy one, the others might wait too long for their turn. */
const AT_ONCE = 2;

/** What each script answers. */
async function answersOf(sources: readonly string[], input: unknown = {}): Promise<string[]> {
  const agent = await world.newAgent();
  const calls = sources.map((code): Call => ["run_javascript", { code, input }]);
  const steps = Array.from({ length: Math.ceil(calls.length / AT_ONCE) }, (_, step) =>
    calls.slice(step * AT_ONCE, (step + 1) * AT_ONCE),
  );
  const { frames } = await agent.run(...steps);
  const outputs = new Map(
    frames.filter(({ event }) => event === "tool.completed").map(({ data }) => [data.toolCallId, data.output]),
  );
  return sources.map((_, at) => outputs.get(`call_${Math.floor(at / AT_ONCE)}_${at % AT_ONCE}`) ?? "");
}

describe("a script of an agent reaches the host", () => {
  test("no published way out of a sandbox leads to anything of the host", async () => {
    const answers = await answersOf(
      WAYS_OUT.map(([, source]) => source),
      INPUT,
    );
    // What they wrote to the console comes after it.
    expect(WAYS_OUT.map(([what], at) => [what, answers[at]?.split("\n")[0]])).toEqual(
      WAYS_OUT.map(([what]) => [what, `result: ${NOTHING}`]),
    );
  });

  test("no module, global or template of a host is there", async () => {
    const modules = [
      "std",
      "os",
      "qjs:os",
      "bun:ffi",
      "node:fs",
      "node:child_process",
      "file:///etc/passwd",
      "data:text/javascript,1",
    ];
    const globals = [
      "process",
      "Bun",
      "require",
      "fetch",
      "WebAssembly",
      "Worker",
      "std",
      "os",
      "scriptArgs",
      "__filename",
      "self",
      "postMessage",
    ];
    const [imported, found, template] = await answersOf(
      [
        `const all = []; for (const name of ${JSON.stringify(modules)}) all.push(await import(name).then(() => name, () => null)); all`,
        `${JSON.stringify(globals)}.filter((name) => name in globalThis)`,
        `[input.text, input.text.length]`,
      ],
      { text: "{{constructor.constructor('return process')()}} <%= process.env %> #{7*7}" },
    );
    expect(imported).toBe(`result: ${JSON.stringify(modules.map(() => null))}`);
    expect(found).toBe("result: []");
    expect(template).toContain("constructor.constructor('return process')");
  });

  test("what comes in and goes out is data: __proto__, toJSON, and what looks like an answer of the process", async () => {
    const frame = '{"type":"result","json":"\\\\"forged\\\\"","leftOut":0}';
    const input = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"toJSON":"x"}');
    const answers = await answersOf(
      [
        "[Object.keys(input), typeof ({}).polluted]",
        'return JSON.parse(\'{"__proto__":{"polluted":1},"then":"x"}\')',
        "Object.prototype.polluted = 1; Object.prototype.toJSON = () => 'hijacked'; Array.prototype.polluted = 1; return 1",
        `console.log('\\n${frame}\\n'); return 2`,
        "return { toJSON() { throw { toString() { throw 1 } } } }",
        "throw new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 1 } })",
        "return { then(resolve) { resolve({ then(again) { again(3) } }) } }",
      ],
      input,
    );
    expect(answers.slice(0, 4)).toEqual([
      'result: [["__proto__","constructor","toJSON"],"undefined"]',
      'result: {"__proto__":{"polluted":1},"then":"x"}',
      "result: 1",
      `result: 2\nconsole:\n\n${JSON.parse(`"${frame.replaceAll('"', '\\"')}"`)}\n`,
    ]);
    // The host that has read all of this still knows what an object is.
    const agent = await world.newAgent();
    const { results, ending } = await agent.run(["run_javascript", { code: "({}).polluted ?? 'clean'" }], ["now", {}]);
    expect([
      ending,
      results[0],
      JSON.stringify((await world.ask("GET", agent.path)).body).includes("polluted"),
    ]).toEqual(["run.completed", 'result: "clean"', false]);
  });

  test("published faults of QuickJS stay inside: a value, an error, or a process that dies of it alone", async () => {
    await answersOf(FAULTS.map(([, source]) => source));
    expect(await answersOf(["6 * 7"])).toEqual(["result: 42"]);
    expect((await world.ask("GET", "/healthz")).status).toBe(200);
  });

  test("while one runs, its process has no environment, no capability and no descriptor of the host, in every thread", async () => {
    const agent = await world.newAgent();
    const scripts = () => childrenOf(world.server.process.pid).filter(runsEndless);
    const others = scripts();
    const running = agent.run(["run_javascript", { code: ENDLESS }]);
    const pid = await until(() => scripts().find((one) => !others.includes(one)));
    const locks = locksOf(pid);
    expect(locks.length).toBeGreaterThan(1);
    expect(new Set(locks)).toEqual(new Set([LOCKED]));
    expect(readFileSync(`/proc/${pid}/environ`, "utf8")).toBe("");
    const files = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
    expect(files.filter((file) => file.startsWith("/") && file !== "/dev/null")).toEqual([]);
    const [{ runId }] = (await world.ask("GET", `${agent.path}/runs?limit=1`)).body.data;
    await world.ask("POST", `${agent.path}/runs/${runId}/cancel`);
    expect((await running).ending).toBe("run.cancelled");
  });
});

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);

const EPERM = -1;
const ENOSYS = -38;
const ROOM = new Uint8Array(256);
/** 127.0.0.1 and a port, as `connect` takes it. */
const addressOf = (port: number) => new Uint8Array([2, 0, port >> 8, port & 255, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);

/** Numbers of x64, each with arguments with which it would do something, or fail in another way. */
const callsOf = (dataDir: string, host: number, port: number): Record<string, [number, ...Argument[]]> => ({
  "open /etc/passwd": [2, "/etc/passwd", 0],
  "openat /etc/passwd": [257, -100, "/etc/passwd", 0],
  "openat2 /etc/passwd": [437, -100, "/etc/passwd", ROOM, 24],
  "openat of the master key": [257, -100, join(dataDir, "master.key"), 0],
  "openat of the database": [257, -100, join(dataDir, "roost.db"), 2],
  "openat of the host's environment": [257, -100, `/proc/${host}/environ`, 0],
  "openat of the host's memory": [257, -100, `/proc/${host}/mem`, 2],
  "openat of its own environment": [257, -100, "/proc/self/environ", 0],
  "openat /proc": [257, -100, "/proc", 0],
  creat: [85, "/tmp/roost-escaped", 0o600],
  mkdir: [83, "/tmp/roost-escaped", 0o700],
  unlink: [87, join(dataDir, "master.key")],
  rename: [82, join(dataDir, "roost.db"), "/tmp/roost-escaped"],
  symlink: [88, "/etc/passwd", "/tmp/roost-escaped"],
  stat: [4, "/etc/passwd", ROOM],
  readlink: [89, "/proc/self/exe", ROOM, 256],
  chdir: [80, "/etc"],
  memfd_create: [319, "x", 0],
  "socket of TCP": [41, 2, 1, 0],
  "socket of UDP": [41, 2, 2, 0],
  "socket of Unix": [41, 1, 1, 0],
  "socket of netlink": [41, 16, 3, 0],
  socketpair: [53, 1, 1, 0, ROOM],
  "connect with a descriptor that it has": [42, 0, addressOf(port), 16],
  bind: [49, 0, addressOf(0), 16],
  sendto: [44, 1, ROOM, 1, 0, 0],
  "dup of a descriptor": [32, 0],
  "pidfd_open of the host": [434, host, 0],
  fork: [57],
  vfork: [58],
  "clone of a process": [56, 17, 0, 0, 0, 0],
  "clone into namespaces": [56, 0x1000_0000 + 17, 0, 0, 0, 0],
  execve: [59, "/bin/true", 0, 0],
  execveat: [322, -100, "/bin/true", 0, 0, 0],
  "kill of the host": [62, host, 0],
  "tgkill of the host": [234, host, host, 0],
  "ptrace of the host": [101, 16, host, 0, 0],
  "process_vm_readv of the host": [310, host, ROOM, 1, ROOM, 1, 0],
  "process_vm_writev of the host": [311, host, ROOM, 1, ROOM, 1, 0],
  mount: [165, "x", "/mnt", "tmpfs", 0, 0],
  unshare: [272, 0x1000_0000],
  setns: [308, 0, 0],
  chroot: [161, "/tmp"],
  bpf: [321, 0, ROOM, 16],
  perf_event_open: [298, ROOM, 0, -1, -1, 0],
  io_uring_setup: [425, 8, ROOM],
  userfaultfd: [323, 0],
  keyctl: [250, 0, 0],
  "seccomp, to loosen it": [317, 1, 0, ROOM],
  "prctl, to be dumped": [157, 4, 1, 0, 0, 0],
  setuid: [105, 0],
  "a larger limit": [302, 0, 7, ROOM, 0],
  init_module: [175, ROOM, 0, "x"],
  reboot: [169, 0, 0, 0],
});

const canInject = process.platform === "linux" && process.arch === "x64";
describe.skipIf(!canInject)(
  "a script that has broken out of its interpreter (skipped where no system call can be injected)",
  () => {
    test("as a control: without the locks the same calls open files, make sockets and processes", async () => {
      const free = Bun.spawn(["cat"], { stdin: "pipe", stdout: "pipe", env: {} });
      // Once it answers, it is itself: before, it is still being loaded.
      free.stdin.write("here");
      await free.stdin.flush();
      await free.stdout.getReader().read();
      const taken = await takeOver(free.pid);
      const { dataDir, server, inside } = world;
      const calls = callsOf(dataDir, server.process.pid, inside.port);
      for (const name of ["openat /etc/passwd", "openat of the master key", "socket of TCP", "stat", "fork"]) {
        const [number = -1, ...rest] = calls[name] ?? [];
        expect([name, taken.call(Number(number), ...rest) >= 0]).toEqual([name, true]);
      }
      taken.release();
      free.kill();
      await free.exited;
    });

    test("is refused every system call that would leave its process, in each of its threads", async () => {
      const { dataDir, server, inside } = world;
      const child = startLocked("landlock", null, { command: [await buildBinary()], readable: [] });
      expect(await child.ready).toBe(true);
      const calls = Object.entries(callsOf(dataDir, server.process.pid, inside.port));
      let tried = 0;
      for (const thread of threadsOf(child.pid)) {
        const taken = await takeOver(thread).catch((error) => {
          if (threadsOf(child.pid).includes(thread)) throw error;
        });
        // It has ended by itself meanwhile.
        if (!taken) continue;
        tried++;
        const answers = calls.map(([name, [number, ...rest]]) => [name, taken.call(number, ...rest)]);
        expect(answers).toEqual(calls.map(([name]) => [name, EPERM]));
        // Its flags are in memory, where no filter can look.
        expect(taken.call(435, ROOM, 88)).toBe(ENOSYS);
        taken.release();
      }
      expect(tried).toBeGreaterThan(1);
      // It was not harmed by all this: it still runs its script, and nothing was reached.
      const job = { kind: "script", source: "6 * 7", input: null } as const;
      expect(await child.run(job, new AbortController().signal)).toMatchObject({ type: "result", json: "42" });
      expect(inside.connections).toBe(0);
    });
  },
);
