import { afterEach, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { mkdir, readdir, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unpack } from "../../src/models/local/files.ts";

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

/** A cache folder that is not there yet, and two files to unpack into it. */
async function setting() {
  const root = mkdtempSync(join(tmpdir(), "roost-files-"));
  folders.push(root);
  const write = async (name: string, text: string) => {
    await writeFile(join(root, name), text);
    return join(root, name);
  };
  const files = { "models/a/big.onnx": await write("big", "weights"), "native/lib.so": await write("lib", "code") };
  return { cacheDir: join(root, "cache"), files, write };
}

test("files are unpacked for their owner alone", async () => {
  const { cacheDir, files } = await setting();
  const folder = await unpack(files, cacheDir);
  expect(await Bun.file(join(folder, "models/a/big.onnx")).text()).toBe("weights");
  expect((await stat(join(folder, "native/lib.so"))).mode & 0o777).toBe(0o600);
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
  expect((await stat(cacheDir)).mode & 0o777).toBe(0o700);
});

test("the second start finds them and writes nothing", async () => {
  const { cacheDir, files } = await setting();
  const folder = await unpack(files, cacheDir);
  const { mtimeMs } = await stat(join(folder, "native/lib.so"));
  expect(await unpack(files, cacheDir)).toBe(folder);
  expect((await stat(join(folder, "native/lib.so"))).mtimeMs).toBe(mtimeMs);
});

test("starts at the same moment agree on one whole folder and leave nothing else", async () => {
  const { cacheDir, files } = await setting();
  const script = `const { unpack } = await import(${JSON.stringify(join(import.meta.dir, "../../src/models/local/files.ts"))});
    process.stdout.write(await unpack(${JSON.stringify(files)}, ${JSON.stringify(cacheDir)}));`;
  const starts = Array.from({ length: 4 }, () =>
    Bun.spawn([process.execPath, "-e", script], { stdio: ["ignore", "pipe", "inherit"] }),
  );
  const found = await Promise.all(starts.map((start) => new Response(start.stdout).text()));
  expect(new Set(found).size).toBe(1);
  expect(await readdir(cacheDir)).toHaveLength(1);
});

test("a folder that another process takes away meanwhile disturbs nobody", async () => {
  const { cacheDir, files } = await setting();
  await mkdir(cacheDir);
  // Listed, and not there when it is looked at.
  await symlink(join(cacheDir, "gone"), join(cacheDir, "models-other.tmp"));
  const folder = await unpack(files, cacheDir);
  expect(await Bun.file(join(folder, "native/lib.so")).text()).toBe("code");
});

test("a damaged folder is unpacked anew", async () => {
  const { cacheDir, files } = await setting();
  const folder = await unpack(files, cacheDir);
  await writeFile(join(folder, "native/lib.so"), "");
  expect(await unpack(files, cacheDir)).toBe(folder);
  expect(await Bun.file(join(folder, "native/lib.so")).text()).toBe("code");
});

test("other contents go into another folder, and an old version's is removed", async () => {
  const { cacheDir, files, write } = await setting();
  const old = await unpack(files, cacheDir);
  await utimes(old, new Date(0), new Date(0));
  const young = join(cacheDir, "models-young");
  await mkdir(young);
  const folder = await unpack({ ...files, "native/lib.so": await write("lib2", "other code") }, cacheDir);
  expect(folder).not.toBe(old);
  expect((await readdir(cacheDir)).map((name) => join(cacheDir, name)).sort()).toEqual([folder, young].sort());
});
