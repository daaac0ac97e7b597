import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { EarlierBuild } from "./make.ts";

/** The archives of this folder, oldest first. */
export const BUILDS = readdirSync(import.meta.dir)
  .filter((name) => name.endsWith(".tar.zst"))
  .sort();

/** Unpacks one of `BUILDS` into `<folder>/data`. */
export async function unpackBuild(name: string, folder: string): Promise<EarlierBuild> {
  const packed = await Bun.file(join(import.meta.dir, name)).bytes();
  const files = await new Bun.Archive(Bun.zstdDecompressSync(packed)).files();
  for (const [path, file] of files) {
    mkdirSync(join(folder, dirname(path)), { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, path), await file.bytes(), { mode: 0o600 });
  }
  return Bun.file(join(folder, "was.json")).json();
}
