import { afterEach, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { release } from "node:os";
import type { Child } from "../../src/sandbox/child.ts";
import { startLocked } from "../../src/sandbox/probe.ts";
import type { Sandbox, SandboxOptions } from "../../src/sandbox/sandbox.ts";
import { ENDLESS, runsEndless } from "../support/endless-script.ts";
import { never, openSandbox, script } from "./opened.ts";

const opened: Sandbox[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});
function open(options: Partial<SandboxOptions> = {}) {
  const sandbox = openSandbox(options);
  opened.push(sandbox);
  return sandbox;
}
const job = (source: string) => ({ kind: "script" as const, source, input: null });
const locked = async () => ({ level: "landlock" as const, detail: "" });

/** Resolves when nothing is left to do in this turn. */
const turn = () => new Promise((resolve) => setImmediate(resolve));
/** Looks now and then: a host that is busy would keep the processor from its own children, which give way to it. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await Bun.sleep(1);
}

/** For how long a process works before another has its turn; null where each works as long as the kernel chooses. */
function stretchNs(pid: number): number | null {
  const [major = 0, minor = 0] = release().split(".").map(Number);
  if (major < 6 || (major === 6 && minor < 12) || !existsSync(`/proc/${pid}/sched`)) return null;
  return Number(/^se\.slice\s+:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/sched`, "latin1"))?.[1]);
}

/** Where the system places a process. */
function standing(pid: number): { group: number; session: number; niceness: number } {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ").at(-1)?.split(" ").map(Number) ?? [];
  return { group: fields[2] ?? 0, session: fields[3] ?? 0, niceness: fields[16] ?? 0 };
}

/** A process that ends when the test says so. */
function heldChild(ready = true): Child & { answer(): void } {
  const outcome = Promise.withResolvers<Awaited<ReturnType<Child["run"]>>>();
  const gone = Promise.withResolvers<void>();
  return {
    pid: 0,
    ready: Promise.resolve(ready),
    fault: () => null,
    probed: Promise.resolve(null),
    gone: gone.promise,
    run: () => outcome.promise,
    answer: () => outcome.resolve({ type: "result", json: "1", console: "", leftOut: 0 }),
    kill() {
      outcome.resolve({ type: "killed", why: "cancelled", console: "", leftOut: 0 });
      gone.resolve();
    },
  };
}

/** Scripts by their owners, in the order in which they got a process. */
function heldSandbox(options: Partial<SandboxOptions> = {}) {
  const children: ReturnType<typeof heldChild>[] = [];
  const sandbox = open({
    probe: locked,
    standby: 0,
    start() {
      const child = heldChild();
      children.push(child);
      return child;
    },
    ...options,
  });
  const order: string[] = [];
  const run = (owner: string, signal = never) => {
    const running = sandbox.run(job("1"), { instanceId: owner, signal });
    return running.finally(() => order.push(owner));
  };
  return { sandbox, children, run, order };
}

test("each script has a process of its own, which is gone after it", async () => {
  const sandbox = open();
  await script(sandbox, "1");
  await script(sandbox, "2");
  const [first, second] = sandbox.started;
  if (!first || !second) expect.unreachable();
  expect(first.pid).not.toBe(second.pid);
  await first.gone;
  expect(existsSync(`/proc/${first.pid}`)).toBe(false);
});

test("the process of a script yields to the host: it has a lower priority in the same session, where Linux compares them, and a group of its own", async () => {
  const child = startLocked("landlock");
  expect(await child.ready).toBe(true);
  const [host, own] = [standing(process.pid), standing(child.pid)];
  child.kill();
  await child.gone;
  expect(own).toEqual({ group: child.pid, session: host.session, niceness: Math.min(19, host.niceness + 10) });
});

test.skipIf(Bun.which("bwrap") === null)(
  "whatever bubblewrap has begun with, it is gone once it is killed",
  async () => {
    const children = Array.from({ length: 100 }, (_, at) => {
      const child = startLocked("bubblewrap");
      for (const until = performance.now() + (at % 25) / 5; performance.now() < until; );
      child.kill();
      return child;
    });
    await Promise.all(children.map((child) => child.gone));
  },
);

test.skipIf(stretchNs(process.pid) === null)(
  "whoever wakes up does not wait for the stretch that a script is in: a script asks for a longer one than the host",
  async () => {
    const child = startLocked("landlock");
    expect(await child.ready).toBe(true);
    const [host, own] = [stretchNs(process.pid) ?? 0, stretchNs(child.pid) ?? 0];
    child.kill();
    await child.gone;
    expect(own).toBe(10_000_000);
    expect(own).toBeGreaterThan(host);
  },
);

test("nothing is started before the first script; after it, locked processes stand ready, and end when none comes", async () => {
  const sandbox = open({ idleMs: 1 });
  expect(sandbox.started).toEqual([]);
  expect(await script(sandbox, "1")).toMatchObject({ json: "1" });
  await until(() => sandbox.figures().standby === 0);
  await Promise.all(sandbox.started.map((child) => child.gone));
  expect(sandbox.started.length).toBeGreaterThan(1);
  expect(await script(sandbox, "2")).toMatchObject({ json: "2" });
});

test("a process that stands ready is used by the next script", async () => {
  const sandbox = open();
  await script(sandbox, "1");
  const waiting = sandbox.started.slice(1);
  expect(sandbox.figures()).toMatchObject({ running: 0, standby: waiting.length });
  await script(sandbox, "2");
  await waiting[0]?.gone;
  expect(existsSync(`/proc/${waiting[0]?.pid}`)).toBe(false);
});

test("a process that died while it stood ready is replaced, and the script does not notice", async () => {
  const sandbox = open();
  await script(sandbox, "1");
  for (const child of sandbox.started) {
    await child.ready;
    if (existsSync(`/proc/${child.pid}`)) process.kill(child.pid, "SIGKILL");
  }
  expect(await script(sandbox, "42")).toMatchObject({ json: "42" });
});

test("a script whose process is killed from outside is told, with what it had written", async () => {
  const sandbox = open({ standby: 0 });
  const running = script(sandbox, ENDLESS);
  await until(() => sandbox.started.length === 1);
  const [child] = sandbox.started;
  if (!child) expect.unreachable();
  await until(() => runsEndless(child.pid));
  process.kill(child.pid, "SIGKILL");
  expect(await running).toEqual({ type: "killed", why: "crash", console: "x".repeat(4_000), leftOut: 0 });
  expect(sandbox.figures().ended.get("crash")).toBe(1);
});

test("a cancelled script is killed at once, and one that waits leaves the queue", async () => {
  const { run, children, sandbox } = heldSandbox({ places: 1 });
  const [running, waiting] = [new AbortController(), new AbortController()];
  const first = run("a", running.signal);
  await until(() => children.length === 1);
  const second = run("b", waiting.signal);
  await until(() => sandbox.figures().waiting === 1);
  waiting.abort(new Error("cancelled"));
  await expect(second).rejects.toThrow("cancelled");
  expect(sandbox.figures().waiting).toBe(0);
  children[0]?.answer();
  await first;
  expect(sandbox.figures()).toMatchObject({ running: 0, waiting: 0 });

  const real = open();
  const cancel = new AbortController();
  const endless = real.run(job("for (;;);"), { instanceId: "a", signal: cancel.signal });
  await until(() => real.started.length === 1);
  await real.started[0]?.ready;
  cancel.abort();
  expect(await endless).toMatchObject({ type: "killed", why: "cancelled" });
});

test("owners take turns, however many scripts one of them has", async () => {
  const { run, children, order } = heldSandbox({ places: 1 });
  const all = ["a", "a", "a", "a", "b", "c"].map((owner) => run(owner));
  for (let n = 0; n < all.length; n++) {
    await until(() => children.length > n);
    children[n]?.answer();
  }
  await Promise.all(all);
  expect(order.indexOf("b")).toBeLessThan(3);
  expect(order.indexOf("c")).toBeLessThan(4);
});

test("in the turns of one account, its instances take turns, and none takes another account's", async () => {
  const accountOf = (instanceId: string) => instanceId.slice(0, 1);
  const { run, children, order } = heldSandbox({ places: 1, accountOf });
  const all = ["a1", "a1", "a1", "a1", "a1", "a2", "a3", "b1"].map((instance) => run(instance));
  for (let n = 0; n < all.length; n++) {
    await until(() => children.length > n);
    children[n]?.answer();
  }
  await Promise.all(all);
  expect(order.indexOf("b1")).toBeLessThan(3);
  expect(order.indexOf("a3")).toBeLessThan(6);
});

test("no owner takes the last place", async () => {
  const { run, children, sandbox } = heldSandbox({ places: 4 });
  const greedy = Array.from({ length: 6 }, () => run("a"));
  await until(() => children.length === 3);
  await turn();
  expect(sandbox.figures()).toMatchObject({ running: 3, waiting: 3 });
  const other = run("b");
  await until(() => children.length === 4);
  for (let n = 0; n < 7; n++) {
    await until(() => children.length > n);
    children[n]?.answer();
  }
  await Promise.all([...greedy, other]);
});

test("a script that waits too long, or finds too many before it, is refused with words for the model", async () => {
  const { run, children } = heldSandbox({ places: 1, waitMs: 1 });
  const first = run("a");
  await until(() => children.length === 1);
  await expect(run("b")).rejects.toThrow("did not get its turn within 0.001 seconds");
  children[0]?.answer();
  await first;

  const full = heldSandbox({ places: 1 });
  const running = full.run("a");
  await until(() => full.children.length === 1);
  const waiting = Array.from({ length: 32 }, () => full.run("b").catch((error: Error) => error.name));
  await expect(full.run("b")).rejects.toThrow("too many scripts wait already");
  const others = full.run("c");
  await full.sandbox.close();
  await running;
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => "NotRun"));
  await expect(others).rejects.toThrow("the host is stopping");
});

test("a script that has given up waiting counts among those before another no longer", async () => {
  const { run, children, sandbox } = heldSandbox({ places: 1, waitMs: 1 });
  const first = run("a");
  await until(() => children.length === 1);
  for (const _ of [1, 2]) {
    const waiting = Array.from({ length: 32 }, () => run("b").catch((error: Error) => error.message));
    expect(new Set(await Promise.all(waiting))).toEqual(new Set([expect.stringContaining("did not get its turn")]));
  }
  children[0]?.answer();
  await first;
  const next = run("b");
  await until(() => children.length === 2);
  children[1]?.answer();
  await next;
  expect(sandbox.figures()).toMatchObject({ running: 0, waiting: 0 });
});

test("a process that never gets ready is tried a few times, then the script is refused", async () => {
  let starts = 0;
  const sandbox = open({
    probe: locked,
    standby: 0,
    start() {
      starts++;
      return heldChild(false);
    },
  });
  await expect(script(sandbox, "1")).rejects.toThrow("could not be started");
  expect(starts).toBe(3);
  expect(sandbox.figures()).toMatchObject({ running: 0 });
});

test("without a level, no script is run", async () => {
  const sandbox = open({ probe: async () => ({ level: "none", detail: "" }) });
  await expect(script(sandbox, "1")).rejects.toThrow("this host runs no scripts");
  expect(sandbox.started).toEqual([]);
});

test("the machine is tried once, whoever asks", async () => {
  let tries = 0;
  const sandbox = open({
    probe: async () => {
      tries++;
      return await locked();
    },
  });
  expect(sandbox.level()).toBeNull();
  await Promise.all([sandbox.probe(), script(sandbox, "1"), sandbox.probe()]);
  expect(tries).toBe(1);
  expect(sandbox.level()).toBe("landlock");
});

test("closing kills every process, the ones that run and the ones that wait", async () => {
  const sandbox = open();
  await script(sandbox, "1");
  const running = script(sandbox, ENDLESS);
  const child = sandbox.started[1];
  if (!child) expect.unreachable();
  await until(() => runsEndless(child.pid));
  await sandbox.close();
  expect(await running).toMatchObject({ type: "killed", why: "cancelled" });
  for (const { pid } of sandbox.started) expect(existsSync(`/proc/${pid}`)).toBe(false);
  await expect(script(sandbox, "1")).rejects.toThrow("the host is stopping");
});

test("a command that does not exist is refused with the reason", async () => {
  const sandbox = open({
    probe: locked,
    start: (level) => startLocked(level, null, { command: ["/nowhere/roost"], readable: [] }),
  });
  await expect(script(sandbox, "1")).rejects.toThrow("could not be started");
});
