import { afterEach, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { mkdir, readdir, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EmbeddedFile } from "../../src/models/local/embedded.ts";
import { unpack, verify } from "../../src/models/local/files.ts";

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

/** A cache folder that does not exist yet, and two files to unpack into it. */
async function setting() {
  const root = mkdtempSync(join(tmpdir(), "roost-files-"));
  folders.push(root);
  const write = async (name: string, text: string): Promise<EmbeddedFile> => {
    await writeFile(join(root, name), text);
    return { path: join(root, name), sha256: new Bun.CryptoHasher("sha256").update(text).digest("hex") };
  };
  const files = { "models/a/big.onnx": await write("big", "weights"), "native/lib.so": await write("lib", "code") };
  return { cacheDir: join(root, "cache"), files, write };
}

test("unpacked files are readable by their owner only", async () => {
  const { cacheDir, files } = await setting();
  const folder = await unpack(files, cacheDir);
  expect(await Bun.file(join(folder, "models/a/big.onnx")).text()).toBe("weights");
  expect((await stat(join(folder, "native/lib.so"))).mode & 0o777).toBe(0o600);
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
  expect((await stat(cacheDir)).mode & 0o777).toBe(0o700);
});

test("what could not be unpacked whole takes no space", async () => {
  const { cacheDir, files } = await setting();
  const gone = { path: join(cacheDir, "gone"), sha256: "" };
  await expect(unpack({ ...files, "native/other.so": gone }, cacheDir)).rejects.toThrow();
  expect(await readdir(cacheDir)).toEqual([]);
});

test("the second start finds them and writes nothing", async () => {
  const { cacheDir, files } = await setting();
  const folder = await unpack(files, cacheDir);
  const { mtimeMs } = await stat(join(folder, "native/lib.so"));
  expect(await unpack(files, cacheDir)).toBe(folder);
  expect((await stat(join(folder, "native/lib.so"))).mtimeMs).toBe(mtimeMs);
});

test("several starts at once agree on one complete folder and leave nothing else", async () => {
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

test("unpacking succeeds although another process removes a folder meanwhile", async () => {
  const { cacheDir, files } = await setting();
  await mkdir(cacheDir);
  // It is listed, but no longer exists when it is checked.
  await symlink(join(cacheDir, "gone"), join(cacheDir, "models-other.tmp"));
  const folder = await unpack(files, cacheDir);
  expect(await Bun.file(join(folder, "native/lib.so")).text()).toBe("code");
});

test("a damaged folder is unpacked again", async () => {
  const { cacheDir, files } = await setting();
  const folder = await unpack(files, cacheDir);
  await writeFile(join(folder, "native/lib.so"), "");
  expect(await unpack(files, cacheDir)).toBe(folder);
  expect(await Bun.file(join(folder, "native/lib.so")).text()).toBe("code");
});

test("a file that was changed is unpacked again before it is loaded, and the others are left alone", async () => {
  const { cacheDir, files } = await setting();
  const folder = await unpack(files, cacheDir);
  const [library, model] = [join(folder, "native/lib.so"), join(folder, "models/a/big.onnx")];
  await writeFile(library, "evil"); // of the same size
  await writeFile(model, "weighty");
  expect(await unpack(files, cacheDir)).toBe(folder);
  const { ino } = await stat(model);
  await verify(files, folder, "native/");
  expect(await Bun.file(library).text()).toBe("code");
  expect((await stat(library)).mode & 0o777).toBe(0o600);
  expect([await Bun.file(model).text(), (await stat(model)).ino]).toEqual(["weighty", ino]);
  await verify(files, folder, "models/a/");
  expect(await Bun.file(model).text()).toBe("weights");
  expect((await readdir(join(folder, "native"))).sort()).toEqual(["lib.so"]);
});

test("a changed file that is checked twice at once is unpacked again, and both go on", async () => {
  const { cacheDir, files } = await setting();
  const folder = await unpack(files, cacheDir);
  const library = join(folder, "native/lib.so");
  for (let time = 0; time < 20; time++) {
    await writeFile(library, "changed");
    await Promise.all([verify(files, folder, "native/"), verify(files, folder, "native/")]);
    expect(await Bun.file(library).text()).toBe("code");
  }
  expect(await readdir(join(folder, "native"))).toEqual(["lib.so"]);
});

test("a file that still differs after unpacking it again is not loaded", async () => {
  const { cacheDir, files, write } = await setting();
  const lying = { ...files, "native/lib.so": { ...(await write("lib", "code")), sha256: "0".repeat(64) } };
  const folder = await unpack(lying, cacheDir);
  await expect(verify(lying, folder, "native/")).rejects.toThrow(/native\/lib\.so is not what was unpacked/);
  await verify(lying, folder, "models/");
});

test("a cache folder that others can read is made private", async () => {
  const { cacheDir, files } = await setting();
  await mkdir(cacheDir, { mode: 0o755 });
  await unpack(files, cacheDir);
  expect((await stat(cacheDir)).mode & 0o777).toBe(0o700);
});

test("other contents are unpacked into another folder, and the folder of an old version is removed", async () => {
  const { cacheDir, files, write } = await setting();
  const old = await unpack(files, cacheDir);
  await utimes(old, new Date(0), new Date(0));
  const young = join(cacheDir, "models-young");
  await mkdir(young);
  const folder = await unpack({ ...files, "native/lib.so": await write("lib2", "other code") }, cacheDir);
  expect(folder).not.toBe(old);
  expect((await readdir(cacheDir)).map((name) => join(cacheDir, name)).sort()).toEqual([folder, young].sort());
});
