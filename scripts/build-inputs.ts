import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** Everything that `dist/roost` is built from. The pinned Bun version is in bun.lock. */
const HASHED = [
  "package.json",
  "bun.lock",
  "tsconfig.json",
  "scripts/build.ts",
  "scripts/compile.ts",
  "scripts/build-plugin.ts",
  "scripts/record-start.ts",
  "scripts/split-weights.ts",
  "src",
  "clients/typescript/src",
  "workspaces",
  "skills",
];
/** Too large to read at each start: sizes and models/SHA256SUMS are hashed instead. */
const SIZED = ["models"];

/** A hash of the build's inputs. Equal hashes mean equal binaries. */
export function hashInputs(root: string): string {
  const hash = new Bun.CryptoHasher("sha256");
  for (const path of HASHED.flatMap((name) => filesBelow(root, name))) {
    hash.update(`${path}\0`).update(readFileSync(join(root, path)));
  }
  for (const path of SIZED.flatMap((name) => filesBelow(root, name))) {
    const { size } = statSync(join(root, path));
    hash.update(`${path}\0${size}\0`);
    if (path.endsWith("SHA256SUMS")) hash.update(readFileSync(join(root, path)));
  }
  return hash.digest("hex");
}

function filesBelow(root: string, name: string): string[] {
  const stat = statSync(join(root, name), { throwIfNoEntry: false });
  if (stat === undefined) return [];
  if (stat.isFile()) return [name];
  return readdirSync(join(root, name), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .sort();
}
