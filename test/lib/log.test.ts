import { expect, test } from "bun:test";
import { join } from "node:path";

const LOG = join(import.meta.dir, "../../src/lib/log.ts");

/** What a program of its own logs, since the log goes to standard output. */
async function logged(format: string, call: string): Promise<string> {
  const code = `const { createLog } = await import(${JSON.stringify(LOG)});
    const log = await createLog("info", ${JSON.stringify(format)});
    ${call}`;
  const child = Bun.spawn([process.execPath, "-e", code], { stdout: "pipe", stderr: "inherit" });
  return await new Response(child.stdout).text();
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
  expect(text).toMatch(/^\[\d\d:\d\d:\d\d\] INFO: signed the audit log \{"auditId":2,"hash":"c8d0"\}\n$/);
});
