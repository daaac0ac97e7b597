/** Type check and lint; each counts as one test. */
import { resolve } from "node:path";

const ROOT = resolve(import.meta.dir, "..");

export const CHECKS: Record<string, string[]> = {
  types: ["node_modules/typescript/bin/tsc", "--noEmit"],
  lint: ["node_modules/@biomejs/biome/bin/biome", "check", "--error-on-warnings", "."],
};

/** Runs one check, showing its output; true if it found nothing. */
export async function passes(command: string[]): Promise<boolean> {
  const child = Bun.spawn([process.execPath, ...command], { cwd: ROOT, stdio: ["ignore", "inherit", "inherit"] });
  return (await child.exited) === 0;
}

if (import.meta.main) {
  let failed = 0;
  for (const command of Object.values(CHECKS)) if (!(await passes(command))) failed++;
  process.exit(failed === 0 ? 0 : 1);
}
