import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LocalEngineOptions } from "../../src/models/local.ts";
import { chat, collect, never, openLocalEngine, textOf } from "./local-setting.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

function open(options: Partial<LocalEngineOptions> = {}) {
  const opened = openLocalEngine(options);
  closing.push(opened.close);
  return opened;
}

/** The command of a host of its own, and an environment in which what it leaves behind is removed after the test. */
function hostApart(...words: string[]) {
  const folder = mkdtempSync(join(tmpdir(), "roost-host-"));
  closing.push(async () => rmSync(folder, { recursive: true }));
  return {
    cmd: [process.execPath, join(import.meta.dir, "local-host.ts"), ...words],
    env: { ...process.env, TMPDIR: folder },
  };
}

/** Empty for what has been closed by now. */
function readlinkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

function killProcessOf(engine: ReturnType<typeof open>["engine"]): void {
  const { pid } = engine.stats();
  if (pid === undefined) throw new Error("there is no model process");
  process.kill(pid, "SIGKILL");
}

test("a request that had shown nothing survives a crash of the model process", async () => {
  const { engine, logbook } = open();
  const started = logbook.next("model process started");
  const answer = collect(engine.stream(chat("What is a library?", { maxTokens: 8 }), never));
  await started;
  killProcessOf(engine);
  expect(textOf(await answer)).not.toBe("");
  expect(engine.stats().starts).toBe(2);
});

test.skipIf(process.platform !== "linux")("where memory runs out, the model process ends before the host", async () => {
  const { engine } = open();
  await collect(engine.stream(chat("Hello?", { maxTokens: 1 }), never));
  expect(readFileSync(`/proc/${engine.stats().pid}/oom_score_adj`, "latin1")).toBe("500\n");
});

test.skipIf(process.platform !== "linux")(
  "the model's runtime keeps no record of its use, which it would send to its makers",
  async () => {
    const { engine } = open();
    expect(textOf(await collect(engine.stream(chat("Hello!", { maxTokens: 2 }), never)))).not.toBe("");
    const { pid } = engine.stats();
    const opened = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkOf(`/proc/${pid}/fd/${fd}`));
    expect(opened.length).toBeGreaterThan(3);
    expect(opened.filter((path) => /\.cache|\.onnxruntime|\.db/.test(path))).toEqual([]);
    expect(readFileSync(`/proc/${pid}/maps`, "latin1")).not.toContain("/.onnxruntime/");
  },
);

test("a request that had shown text fails when the model process crashes, and the next one is answered", async () => {
  const { engine } = open();
  const answer = (async () => {
    for await (const _ of engine.stream(chat("Tell me about the sea.", { maxTokens: 1_000 }), never)) {
      if (engine.stats().starts === 1 && engine.stats().pid !== undefined) killProcessOf(engine);
    }
  })();
  // The test kills it as the kernel does where memory has run out.
  const message = expect.stringContaining("because memory ran out. Send the message again; if that does not help,");
  await expect(answer).rejects.toMatchObject({ name: "ModelError", kind: "broken", message });
  expect(textOf(await collect(engine.stream(chat("Hello?", { maxTokens: 8 }), never)))).not.toBe("");
});

test("what stops the host, sent to its whole group, does not end the model process before the host does", async () => {
  const { engine } = open();
  for await (const _ of engine.stream(chat("Tell me about the sea.", { maxTokens: 24 }), never)) {
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.kill(engine.stats().pid ?? Number.NaN, signal);
  }
  const { pid = Number.NaN, starts } = engine.stats();
  expect(starts).toBe(1);
  await engine.close();
  expect(() => process.kill(pid, 0)).toThrow("ESRCH");
});

test("a model process that always dies fails the request after one retry", async () => {
  const { engine } = open({ command: [process.execPath, "-e", "process.exit(3)"] });
  const answer = collect(engine.stream(chat("Hello?"), never));
  const message = "The local model stopped in the middle of its work. Send the message again.";
  await expect(answer).rejects.toMatchObject({ kind: "broken", message });
  expect(engine.stats().starts).toBe(2);
});

test("a model process that cannot be started makes the model unavailable", async () => {
  const { engine } = open({ command: ["/nowhere/roost", "model-process"] });
  await expect(collect(engine.stream(chat("Hello?"), never))).rejects.toMatchObject({ kind: "unavailable" });
});

test("a silent model process is killed, and the request fails as silent", async () => {
  const { engine } = open({ command: [process.execPath, "-e", "process.on('message', () => {})"], silentMs: 200 });
  await expect(collect(engine.stream(chat("Hello?"), never))).rejects.toMatchObject({ kind: "silent" });
});

test("a host that was blocked does not blame the model process: waiting messages are read first", async () => {
  const command = [process.execPath, join(import.meta.dir, "talking-process.ts")];
  // Longer than a busy machine keeps a process from running, and shorter than the host is blocked.
  const { engine } = open({ command, silentMs: 12_000 });
  const blocked = new Int32Array(new SharedArrayBuffer(4));
  let wasBlocked = false;
  const words = chat("Hello?", { maxTokens: 1_500 });
  for await (const events of engine.stream(words, never)) {
    if (wasBlocked || events.at(-1)?.type !== "text") continue;
    wasBlocked = true;
    // What comes meanwhile, up to the answer's end, may be read at once.
    Atomics.wait(blocked, 0, 0, 13_000);
  }
  expect(wasBlocked).toBe(true);
  expect(engine.stats()).toMatchObject({ starts: 1, completionTokens: 1_500 });
});

test("an idle model process ends, and starts again for the next request", async () => {
  const { engine, logbook } = open({ idleMs: 20, guarded: false });
  const idle = logbook.next("idle");
  await collect(engine.stream(chat("Hello?", { maxTokens: 4 }), never));
  await idle;
  expect(engine.stats()).toMatchObject({ loaded: false, pid: undefined });
  expect(textOf(await collect(engine.stream(chat("Hello?", { maxTokens: 4 }), never)))).not.toBe("");
  expect(engine.stats().starts).toBe(2);
});

test("closing fails the remaining work and refuses new requests", async () => {
  const { engine } = open();
  const answer = collect(engine.stream(chat("Tell me about the sea."), never)).catch((error) => error);
  await engine.close();
  expect(await answer).toMatchObject({ name: "ModelError", kind: "unavailable" });
  await expect(collect(engine.stream(chat("Hello?"), never))).rejects.toMatchObject({ kind: "unavailable" });
});

test("a cancelled answer frees its slot for the next request", async () => {
  const { engine } = open({ slots: 1 });
  const abort = new AbortController();
  for await (const _ of engine.stream(chat("Tell me about the sea.", { maxTokens: 2_000 }), abort.signal)) break;
  const next = collect(engine.stream(chat("Hello?", { maxTokens: 4 }), never));
  expect(textOf(await next)).not.toBe("");
  expect(engine.stats().completionTokens).toBe(4);
});

test("both steppers write the same words", async () => {
  const request = chat("Describe the ocean.", { maxTokens: 32 });
  const fast = open({ stepper: "ffi" });
  const portable = open({ stepper: "ort" });
  const [one, two] = await Promise.all([
    collect(fast.engine.stream(request, never)),
    collect(portable.engine.stream(request, never)),
  ]);
  expect(textOf(two)).toBe(textOf(one));
});

test("no model process outlives a host that was killed", async () => {
  const host = Bun.spawn({ ...hostApart(), stdio: ["ignore", "pipe", "pipe"] });
  const { value } = await host.stdout.getReader().read();
  expect(new TextDecoder().decode(value)).toContain("answering");
  host.kill("SIGKILL");
  // The model process has the same pipe open: the pipe ends only when both processes have ended.
  await new Response(host.stderr).text();
});

test("a host with nothing else to do exits although the model is loaded", async () => {
  const host = Bun.spawn({ ...hostApart("short"), stdio: ["ignore", "ignore", "ignore"] });
  expect(await host.exited).toBe(0);
});
