import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTarPacker } from "modern-tar";
import { writeArchive } from "../../src/backup/archive.ts";
import { createBackup } from "../../src/backup/create.ts";
import { openDestination } from "../../src/backup/destination.ts";
import { restoreBackup } from "../../src/backup/restore.ts";
import { verifyBackup } from "../../src/backup/verify.ts";
import { canMount, mounted } from "../support/mounted.ts";
import { enlarge, tooMuch } from "../support/too-large.ts";

const NO_ROOM = /needs \d+ MB, and 269 MB must stay free, but the disk of .* has \d+ MB; free some space there/;

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-full-"));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

test("a database that the disk has no room to copy is not copied", async () => {
  const path = join(dataDir, "roost.db");
  const sqlite = new Database(path);
  sqlite.run("CREATE TABLE t (x)");
  sqlite.close();
  enlarge(path, tooMuch(dataDir));
  const destination = openDestination(join(dataDir, "backups"));
  const making = createBackup({ dataDir, destination, name: "a.tar.zst", withKeys: false, passphrase: null });
  await expect(making).rejects.toThrow(NO_ROOM);
  expect(readdirSync(join(dataDir, "backups"))).toEqual([]);
});

test("a backup that the disk has no room to unpack is neither tried nor restored", async () => {
  const archive = new Blob([new Uint8Array(Bun.zstdCompressSync(await beginningOf("roost.db", tooMuch(dataDir))))]);
  const options = { archive, size: archive.size, passphrase: null };
  await expect(verifyBackup(dataDir, options)).rejects.toThrow(NO_ROOM);
  expect(readdirSync(join(dataDir, "backups"))).toEqual([]);
  const empty = join(dataDir, "restored");
  await expect(restoreBackup(empty, options)).rejects.toThrow(NO_ROOM);
  expect(readdirSync(empty)).toEqual([]);
});

test.skipIf(!canMount)("an archive stops growing before it has filled the disk of its folder", async () => {
  const program = `
    import { openDestination } from ${JSON.stringify(join(import.meta.dir, "../../src/backup/destination.ts"))};
    const chunk = new Uint8Array(1024 * 1024);
    const endless = new ReadableStream({ pull: (controller) => controller.enqueue(chunk) });
    const write = openDestination(process.argv.at(-1)).write("a.tar.zst", endless, new AbortController().signal);
    console.log(await write.catch((error) => error.message));`;
  const path = join(dataDir, "program.ts");
  writeFileSync(path, program);
  const disk = join(dataDir, "disk");
  mkdirSync(disk);
  const run = Bun.spawn([...mounted("size=300m", disk), process.execPath, path, disk], { stdout: "pipe" });
  expect(await new Response(run.stdout).text()).toMatch(NO_ROOM);
  expect(await run.exited).toBe(0);
});

test.skipIf(!canMount)("a restore without room says how much all that is missing needs", async () => {
  async function* files() {
    for (const megabytes of [0, 20, 30, 10, 0]) {
      const content = new Blob([new Uint8Array(megabytes * 1e6)]);
      const name = `instances/inst_a/agents/a/${randomUUID()}`;
      yield { name, size: content.size, modifiedAtMs: 0, content: content.stream() };
    }
  }
  const file = join(dataDir, "a.tar.zst");
  await Bun.write(file, new Response(await writeArchive(files(), () => ({}), null)));
  const program = `
    import { restoreBackup } from ${JSON.stringify(join(import.meta.dir, "../../src/backup/restore.ts"))};
    const [file, folder] = process.argv.slice(-2);
    const archive = Bun.file(file);
    const restoring = restoreBackup(folder, { archive, size: archive.size, passphrase: null });
    console.log(await restoring.catch((error) => error.message));`;
  const path = join(dataDir, "program.ts");
  writeFileSync(path, program);
  const disk = join(dataDir, "disk");
  mkdirSync(disk);
  const run = Bun.spawn([...mounted("size=300m", disk), process.execPath, path, file, disk], { stdout: "pipe" });
  expect(await new Response(run.stdout).text()).toMatch(/^the rest of it needs 40 MB, and 269 MB must stay free, but/);
  expect(await run.exited).toBe(0);
});

/** The first blocks of a tar archive with a file of this size. */
async function beginningOf(name: string, size: number): Promise<Uint8Array<ArrayBuffer>> {
  const { readable, controller } = createTarPacker();
  const entry = controller.add({ name, size, type: "file", mode: 0o600, mtime: new Date() }).getWriter();
  entry.write(new Uint8Array(4096)).catch(() => undefined);
  const reader = readable.getReader();
  const blocks: Uint8Array[] = [];
  while (Buffer.concat(blocks).length < 4096) blocks.push((await reader.read()).value ?? new Uint8Array());
  return new Uint8Array(Buffer.concat(blocks));
}
