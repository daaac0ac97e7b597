import { expect, test } from "bun:test";
import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const LOG = join(import.meta.dir, "../../src/lib/log.ts");

const program = (level: string, format: string, call: string): string[] => {
  const code = `const { createLog } = await import(${JSON.stringify(LOG)});
    const log = await createLog(${JSON.stringify(level)}, ${JSON.stringify(format)});
    ${call}`;
  return [process.execPath, "-e", code];
};

/** What a program of its own logs, since the log goes to standard output. */
async function logged(format: string, call: string): Promise<string> {
  const child = Bun.spawn(program("info", format, call), { stdout: "pipe", stderr: "inherit" });
  return await new Response(child.stdout).text();
}

/** The same on a terminal; the last line says "listening". */
async function shown(level: string, call: string): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  const { promise: whole, resolve } = Promise.withResolvers<void>();
  const child = Bun.spawn(program(level, "pretty", call), {
    terminal: {
      cols: 200,
      data(_, bytes) {
        text += decoder.decode(bytes, { stream: true });
        if (text.includes("listening")) resolve();
      },
    },
  });
  await whole;
  await child.exited;
  child.terminal?.close();
  return text;
}

test("an error that a browser's interface defines is logged without its constants", async () => {
  const line = await logged("json", `log.warn({ err: new DOMException("too late", "TimeoutError") }, "late")`);
  expect(JSON.parse(line).err).not.toHaveProperty("INDEX_SIZE_ERR");
  expect(JSON.parse(line)).toMatchObject({ err: { type: "TimeoutError", message: "too late" }, msg: "late" });
});

test("for people, what is no error takes one line", async () => {
  const text = await logged(
    "pretty",
    `log.info({ event: "signed", auditId: 2, hash: "c8d0" }, "signed the audit log")`,
  );
  expect(text).toMatch(/^\[\d\d:\d\d:\d\dZ\] INFO: signed the audit log \{"auditId":2,"hash":"c8d0"\}\n$/);
});

const SIGNED = `log.info({ event: "audit_checkpoint", hash: "c8d0" }, "signed the audit log"); log.info("listening");`;

test("a terminal shows what is for records at the level debug only", async () => {
  const usual = await shown("info", SIGNED);
  expect(usual).toContain("listening");
  expect(usual).not.toContain("signed");
  expect(await shown("debug", SIGNED)).toContain("signed the audit log");
});

test("what is for records is in every log that is kept", async () => {
  expect(await logged("json", SIGNED)).toContain('"hash":"c8d0"');
  expect(await logged("pretty", SIGNED)).toContain("signed the audit log");
});

const LISTENER = join(import.meta.dir, "../../src/http/listener.ts");

test.each(["json", "pretty"])("a log on a full disk breaks no call and no answer: %s", async (format) => {
  const call = `const { listen } = await import(${JSON.stringify(LISTENER)});
    for (let n = 0; n < 3; n++) log.info("n".repeat(1_000_000));
    const listener = listen({ hostname: "127.0.0.1", port: 0, publicUrl: null, trustProxy: false, openFiles: null, log });
    listener.answerWith(() => {
      throw new Error("of the test");
    });
    const answer = await fetch(listener.url, { method: "POST" });
    console.error(answer.status, answer.headers.get("content-type"));
    await listener.stop();
    log.info("stopping");
    process.exit(0);`;
  const child = Bun.spawn(program("info", format, call), { stdout: Bun.file("/dev/full"), stderr: "pipe" });
  expect(await new Response(child.stderr).text()).toBe("500 application/json\n");
  expect(await child.exited).toBe(0);
});

test.each(["json", "pretty"])("a log whose reader has gone breaks no call: %s", async (format) => {
  const call = `for await (const _ of process.stdin);
    for (let n = 0; n < 3; n++) log.info("nobody reads this");
    console.error("done");`;
  const child = Bun.spawn(program("info", format, call), { stdin: "pipe", stdout: "pipe", stderr: "pipe" });
  await child.stdout.cancel();
  await child.stdin.end();
  expect(await new Response(child.stderr).text()).toBe("done\n");
  expect(await child.exited).toBe(0);
});

/** A pipe that holds what is written to it until somebody reads it. */
function makePipe() {
  const folder = mkdtempSync(join(tmpdir(), "roost-log-"));
  const path = join(folder, "pipe");
  Bun.spawnSync(["mkfifo", path]);
  const file = openSync(path, "r+");
  return {
    file,
    /** Reads on until a line has the word. */
    linesUntil: (word: string) =>
      Bun.spawnSync(["sed", `/${word}/q`, path])
        .stdout.toString()
        .trim()
        .split("\n"),
    [Symbol.dispose]() {
      closeSync(file);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

test.each(["json", "pretty"])("a log that nobody reads holds nothing up, not even the end: %s", async (format) => {
  using pipe = makePipe();
  const call = `const { logWritten } = await import(${JSON.stringify(LOG)});
    for (let n = 0; n < 300; n++) log.info("n".repeat(10_000));
    console.error("done");
    await logWritten(log);
    process.exit(0);`;
  const child = Bun.spawn(program("info", format, call), { stdout: pipe.file, stderr: "pipe" });
  expect(await new Response(child.stderr).text()).toBe("done\n");
  expect(await child.exited).toBe(0);
});

test.each(["json", "pretty"])("whoever reads a log late gets all that waited, in order: %s", async (format) => {
  using pipe = makePipe();
  const call = `for (let n = 0; n < 5_000; n++) log.info("line " + n);
    console.error("done");`;
  const child = Bun.spawn(program("info", format, call), { stdout: pipe.file, stderr: "pipe" });
  await child.stderr.getReader().read();
  const lines = pipe.linesUntil("line 4999").map((line) => Number(/line (\d+)/.exec(line)?.[1]));
  expect(lines).toEqual(Array.from({ length: 5_000 }, (_, n) => n));
  expect(await child.exited).toBe(0);
});

test("a log says how many lines were dropped while nobody read it", async () => {
  using pipe = makePipe();
  const call = `for (let n = 0; n < 300; n++) log.info("n".repeat(10_000));
    console.error("done");`;
  const child = Bun.spawn(program("info", "json", call), { stdout: pipe.file, stderr: "pipe" });
  await child.stderr.getReader().read();
  const kept = pipe.linesUntil("dropped");
  expect(JSON.parse(kept.pop() ?? "")).toMatchObject({ level: "warn", lines: 300 - kept.length });
});
