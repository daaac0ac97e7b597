import { Database } from "bun:sqlite";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { EarlierBuild } from "./make.ts";

const DAY_MS = 86_400_000;

/** The archives of this folder, oldest first. */
export const BUILDS = readdirSync(import.meta.dir)
  .filter((name) => name.endsWith(".tar.zst"))
  .sort();

/** Unpacks one of `BUILDS` into `<folder>/data`, and puts off until tomorrow what it left for later. */
export async function unpackBuild(name: string, folder: string): Promise<EarlierBuild> {
  const packed = await Bun.file(join(import.meta.dir, name)).bytes();
  const files = await new Bun.Archive(Bun.zstdDecompressSync(packed)).files();
  for (const [path, file] of files) {
    mkdirSync(join(folder, dirname(path)), { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, path), await file.bytes(), { mode: 0o600 });
  }
  const wasPath = join(folder, "was.json");
  let was = await Bun.file(wasPath).text();
  for (const { from, to } of putOff(join(folder, "data"))) was = was.replaceAll(from, to);
  writeFileSync(wasPath, was);
  return JSON.parse(was) as EarlierBuild;
}

/** What a build left for later: approvals expire in days, a yearly schedule is due in a year. */
const LATER = { approvals: "expires_at", schedules: "next_at" };

/** Puts off what is left for later until tomorrow. Returns the times as they stand in the build's answers. */
function putOff(dataDir: string): { from: string; to: string }[] {
  using sqlite = new Database(join(dataDir, "roost.db"));
  const tables = sqlite.query<[string], []>("SELECT name FROM sqlite_schema WHERE type = 'table'").values().flat();
  const tomorrow = Date.now() + DAY_MS;
  return Object.entries(LATER).flatMap(([table, column]) => {
    if (!tables.includes(table)) return [];
    const set = `${column} IS NOT NULL`;
    const left = sqlite.query<{ at: number }, []>(`SELECT ${column} AS at FROM ${table} WHERE ${set}`).all();
    sqlite.query(`UPDATE ${table} SET ${column} = ? WHERE ${set}`).run(tomorrow);
    return left.map(({ at }) => ({ from: new Date(at).toISOString(), to: new Date(tomorrow).toISOString() }));
  });
}
