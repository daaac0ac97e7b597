import { Database } from "bun:sqlite";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { EarlierBuild } from "./make.ts";

const DAY_MS = 86_400_000;

/** The archives of this folder, oldest first. */
export const BUILDS = readdirSync(import.meta.dir)
  .filter((name) => name.endsWith(".tar.zst"))
  .sort();

/** Unpacks one of `BUILDS` into `<folder>/data`. What waits for a decision there has a day left. */
export async function unpackBuild(name: string, folder: string): Promise<EarlierBuild> {
  const packed = await Bun.file(join(import.meta.dir, name)).bytes();
  const files = await new Bun.Archive(Bun.zstdDecompressSync(packed)).files();
  for (const [path, file] of files) {
    mkdirSync(join(folder, dirname(path)), { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, path), await file.bytes(), { mode: 0o600 });
  }
  const wasPath = join(folder, "was.json");
  const was = (await Bun.file(wasPath).json()) as EarlierBuild;
  if (was.waiting === null) return was;
  const later = putOff(join(folder, "data"), was.waiting.approvalId);
  writeFileSync(wasPath, JSON.stringify(was).replaceAll(later.from, later.to));
  return Bun.file(wasPath).json();
}

/** The build's approvals expire within days of when it was made. Returns the times in its answers. */
function putOff(dataDir: string, approvalId: string): { from: string; to: string } {
  using sqlite = new Database(join(dataDir, "roost.db"));
  const row = sqlite
    .query<{ at: number }, [string]>("SELECT expires_at AS at FROM approvals WHERE approval_id = ?")
    .get(approvalId);
  if (row === null) throw new Error(`${approvalId} does not wait in ${dataDir}`);
  const at = Date.now() + DAY_MS;
  sqlite.query("UPDATE approvals SET expires_at = ? WHERE approval_id = ?").run(at, approvalId);
  return { from: new Date(row.at).toISOString(), to: new Date(at).toISOString() };
}
