import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDestination } from "../../src/backup/destination.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "roost-same-name-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A backup of this name, half of which is written when this resolves. */
async function begin(name: string, half: string) {
  const content = new TransformStream<Uint8Array, Uint8Array>();
  const interrupted = new AbortController();
  const done = openDestination(folder)
    .write(name, content.readable, interrupted.signal)
    .catch((error: Error) => error.message);
  const writer = content.writable.getWriter();
  await writer.write(Buffer.from(half));
  return {
    done,
    async finish() {
      await writer.write(Buffer.from(half));
      await writer.close();
      return done;
    },
    async interrupt() {
      interrupted.abort(new Error("interrupted"));
      await writer.abort();
      return done;
    },
  };
}

test("of two backups that write one name at once, the first to end is whole, and the other leaves it as it is", async () => {
  const [first, second, third] = [
    await begin("a.tar.zst", "111"),
    await begin("a.tar.zst", "2"),
    await begin("a.tar.zst", "3"),
  ];
  expect(await first.finish()).toBe(6);
  expect(readFileSync(join(folder, "a.tar.zst"), "utf8")).toBe("111111");
  expect(await second.finish()).toBe(`${folder}/a.tar.zst exists already, and is left as it is; choose another name`);
  expect(await third.interrupt()).toBe("interrupted");
  expect(readFileSync(join(folder, "a.tar.zst"), "utf8")).toBe("111111");
  expect(readdirSync(folder)).toEqual(["a.tar.zst"]);
});

test("a backup removes what one that was killed has left beside it, whatever its name, and nothing of one that lives", async () => {
  const program = `
    import { openDestination } from ${JSON.stringify(join(import.meta.dir, "../../src/backup/destination.ts"))};
    const chunk = new Uint8Array(1024);
    let pulled = 0;
    const stalling = new ReadableStream({
      pull: (controller) => (pulled++ < 3 ? controller.enqueue(chunk) : (console.log("begun"), new Promise(() => {}))),
    });
    setInterval(() => {}, 1_000);
    await openDestination(${JSON.stringify(folder)}).write("killed.tar.zst", stalling, new AbortController().signal);`;
  const child = Bun.spawn([process.execPath, "-e", program], { stdout: "pipe" });
  for await (const _ of child.stdout) break;
  const living = await begin("living.tar.zst", "1");
  expect(readdirSync(folder)).toHaveLength(2);
  child.kill("SIGKILL");
  await child.exited;
  expect(await (await begin("next.tar.zst", "2")).finish()).toBe(2);
  expect(readdirSync(folder)).toHaveLength(2);
  expect(await living.finish()).toBe(2);
  expect(readdirSync(folder).sort()).toEqual(["living.tar.zst", "next.tar.zst"]);
});
