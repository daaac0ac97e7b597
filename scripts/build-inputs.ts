import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** All that `dist/roost` is made of. A change of the pinned Bun shows in bun.lock. */
const READ = [
  "package.json",
  "bun.lock",
  "tsconfig.json",
  "scripts/build.ts",
  "scripts/build-plugin.ts",
  "src",
  "workspaces",
  "skills",
];
/** Too large to read at each start; models/SHA256SUMS says what is in them. */
const MEASURED = ["models"];

/** A fingerprint of the build's inputs: equal fingerprints, equal binaries. */
export function hashInputs(root: string): string {
  const hash = new Bun.CryptoHasher("sha256");
  for (const path of READ.flatMap((name) => filesBelow(root, name))) {
    hash.update(`${path}\0`).update(readFileSync(join(root, path)));
  }
  for (const path of MEASURED.flatMap((name) => filesBelow(root, name))) {
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
