import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { createTarPacker } from "modern-tar";
import { type ArchivedFile, ArchiveError, readArchive, writeArchive } from "../../src/backup/archive.ts";
import { unpack } from "../../src/backup/restore.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "roost-archive-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

type Content = Record<string, Uint8Array>;

async function* filesOf(content: Content): AsyncGenerator<ArchivedFile> {
  for (const [name, bytes] of Object.entries(content)) {
    async function* chunks() {
      for (let at = 0; at < bytes.length; at += 700) yield bytes.subarray(at, at + 700);
    }
    yield { name, size: bytes.length, modifiedAtMs: 1_700_000_000_000, content: chunks() };
  }
}

const pack = async (content: Content, passphrase: string | null = null): Promise<Uint8Array<ArrayBuffer>> =>
  new Uint8Array(await new Response(await writeArchive(filesOf(content), () => ({ schema: 1 }), passphrase)).bytes());

async function read(archive: Uint8Array<ArrayBuffer>, passphrase: string | null = null): Promise<Content> {
  const found: Content = {};
  await readArchive(new Blob([archive]), passphrase, async ({ name, content }) => {
    found[name] = await new Response(content as unknown as ReadableStream).bytes();
  });
  return found;
}

const refusal = async (work: Promise<unknown>): Promise<string> => {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ArchiveError);
  return (error as Error).message;
};

test("whatever the names and contents of files are, they come back as they were", async () => {
  const part = fc
    .string({ unit: "grapheme", minLength: 1, maxLength: 90 })
    .map((text) => text.replaceAll(/[/\0]/g, "_"));
  const name = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => `f/${parts.join("/")}`);
  const content = fc.dictionary(name, fc.uint8Array({ maxLength: 3000 }), { maxKeys: 8 });
  await fc.assert(
    fc.asyncProperty(content, async (files) => {
      const found = await read(await pack(files));
      expect(Object.entries(found)).toEqual(Object.entries(files).map(([key, bytes]) => [key, new Uint8Array(bytes)]));
    }),
    { numRuns: 60 },
  );
});

test("a file of any time comes back, also one from before 1970", async () => {
  const times = [-62_135_596_800_000, -1_000, -0.5, 0, 2 ** 33 * 1000, 2 ** 53];
  const archive = await new Response(await writeArchive(filesAt(times), () => ({}), null)).bytes();
  expect(Object.keys(await read(new Uint8Array(archive)))).toEqual(times.map((_, nth) => `f/${nth}`));
});

async function* filesAt(times: readonly number[]): AsyncGenerator<ArchivedFile> {
  for (const [nth, modifiedAtMs] of times.entries()) {
    for await (const file of filesOf({ [`f/${nth}`]: Buffer.from("hello") })) yield { ...file, modifiedAtMs };
  }
}

test("a file's time comes back to the millisecond, and one that no file can have as the nearest that can", async () => {
  const times = [1_700_000_000_000, 1_700_000_000_001, 1_763_824_502_123, 1_763_824_502_999, -1_000, 2 ** 53];
  const archive = await new Response(await writeArchive(filesAt(times), () => ({}), null)).bytes();
  const found: number[] = [];
  await readArchive(new Blob([new Uint8Array(archive)]), null, async ({ modifiedAtMs, content }) => {
    found.push(modifiedAtMs);
    await new Response(content as unknown as ReadableStream).bytes();
  });
  expect(found).toEqual([...times.slice(0, 4), 0, (2 ** 33 - 1) * 1000]);
});

test("an archive of an earlier build, without milliseconds, has its files' times to the second", async () => {
  const { readable, controller } = createTarPacker();
  const reading = new Response(readable).bytes();
  const mtime = new Date(1_763_824_502_123);
  await controller.add({ name: "f/a", size: 0, type: "file", mode: 0o600, mtime }).getWriter().close();
  controller.finalize();
  const found: number[] = [];
  const archive = new Uint8Array(Bun.zstdCompressSync(await reading));
  const reads = readArchive(new Blob([archive]), null, async ({ modifiedAtMs, content }) => {
    found.push(modifiedAtMs);
    await new Response(content as unknown as ReadableStream).bytes();
  });
  expect(await refusal(reads)).toContain("its end is missing");
  expect(found).toEqual([1_763_824_502_000]);
});

test("an encrypted archive opens with its passphrase only", async () => {
  const archive = await pack({ "f/a": Buffer.from("hello") }, "correct horse");
  expect(Buffer.from((await read(archive, "correct horse"))["f/a"] ?? []).toString()).toBe("hello");
  expect(await refusal(read(archive, "wrong"))).toContain("the passphrase does not open it");
  expect(await refusal(read(archive))).toContain("it is encrypted");
  expect(Buffer.from(archive).includes("hello")).toBe(false);
});

test("no damage goes unnoticed: neither a changed byte nor a missing end", async () => {
  const archive = await pack({
    "f/a": Buffer.from("hello ".repeat(500)),
    "f/b": crypto.getRandomValues(new Uint8Array(5000)),
  });
  const step = Math.ceil(archive.length / 150);
  for (let at = 0; at < archive.length; at += step) {
    const changed = archive.slice();
    changed[at] = (changed[at] ?? 0) ^ 0x10;
    const found = await read(changed).catch((error: unknown) => error);
    // A bit of a header that nothing depends on, such as the owner's number, may change.
    if (found instanceof Error) expect(found).toBeInstanceOf(ArchiveError);
    else expect(found).toEqual(await read(archive));
    await refusal(read(archive.slice(0, at)));
  }
});

test("an encrypted archive that is damaged after its beginning is said to be so, wherever that is", async () => {
  const noise = Buffer.concat(Array.from({ length: 8 }, () => crypto.getRandomValues(new Uint8Array(60_000))));
  const archive = await pack({ "f/a": noise }, "correct horse");
  const reading = (bytes: Uint8Array<ArrayBuffer>) =>
    refusal(readArchive(new Blob([bytes]), "correct horse", ({ content }) => toTheEnd(content)));
  const toTheEnd = async (content: AsyncIterable<Uint8Array>) => {
    for await (const _ of content);
  };
  const changed = archive.slice();
  changed[300_000] = (changed[300_000] ?? 0) ^ 0x10;
  expect(await reading(changed)).toStartWith("it is damaged: ");
  expect(await reading(archive.slice(0, 300_000))).toStartWith("it is damaged: ");
});

test("what fails while an archive is read, and is not the archive's fault, is said as it is", async () => {
  const archive = new Blob([await pack({ "f/a": Buffer.from("hello") })]);
  const failing = readArchive(archive, null, () => Promise.reject(new Error("the disk is full")));
  await expect(failing).rejects.toThrow(/^the disk is full$/);
});

test("a file that is no backup is refused", async () => {
  expect(await refusal(read(new Uint8Array(Buffer.from("SQLite format 3"))))).toBe("it is not a backup of Roost");
  expect(await refusal(read(new Uint8Array()))).toBe("it is not a backup of Roost");
});

test("a file that is shorter or longer than announced fails the archive", async () => {
  async function* lying(size: number): AsyncGenerator<ArchivedFile> {
    for await (const file of filesOf({ "f/a": Buffer.from("12345") })) yield { ...file, size };
  }
  for (const size of [4, 6]) {
    const archive = await writeArchive(lying(size), () => ({}), null);
    await expect(new Response(archive).bytes()).rejects.toThrow();
  }
});

test.each([
  "../outside",
  "instances/inst_a/agents/../../../outside",
  "/etc/outside",
  "instances/inst_a/agents/./SOUL.md",
  "instances/inst_a/agents//SOUL.md",
  "instances/../agents/a/b",
  "instances/inst_a/other/SOUL.md",
  "server.lock",
  "cache/library.so",
])("an archive that holds %s is refused, and nothing is written outside", async (name) => {
  const archive = await pack({ [name]: Buffer.from("x") });
  const target = join(folder, "a/b");
  const options = { archive: new Blob([archive]), size: archive.length, passphrase: null };
  expect(await refusal(unpack(target, options, { durably: false }))).toContain("no backup of Roost has");
  expect(readdirSync(folder)).toEqual([]);
});
