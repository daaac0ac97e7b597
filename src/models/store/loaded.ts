/** Which models the running server has loaded, for commands on the same machine. */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { modelsFolder } from "./store.ts";

const Names = z.array(z.string());
const fileOf = (dataDir: string): string => join(modelsFolder(dataDir), ".loaded.json");

/** By the server only. Nothing is written on a host without added models. */
export function writeLoaded(dataDir: string, names: readonly string[]): void {
  if (!existsSync(modelsFolder(dataDir))) return;
  const path = fileOf(dataDir);
  writeFileSync(`${path}.tmp`, JSON.stringify(names), { mode: 0o600 });
  renameSync(`${path}.tmp`, path);
}

/** As the server has written last; ask only while one is running. */
export function readLoaded(dataDir: string): string[] {
  try {
    return Names.parse(JSON.parse(readFileSync(fileOf(dataDir), "utf8")));
  } catch {
    return [];
  }
}
