import { join, normalize, resolve } from "node:path";

export const ROOT = resolve(import.meta.dir, "../..");

export interface Import {
  /** A file below src/ (`lib/clock.ts`), or a module of a package (`drizzle-orm/sqlite-core`, `node:fs`). */
  to: string;
  kind: "file" | "package";
  /** False for an import of types, which does not exist at run time. */
  runs: boolean;
}

export interface SourceFile {
  /** Below src/, with forward slashes. */
  path: string;
  imports: Import[];
}

const transpilers = { ts: new Bun.Transpiler({ loader: "ts" }), tsx: new Bun.Transpiler({ loader: "tsx" }) };
/** Statements, also those of types: `import type … from "x"`, `export … from "x"`. Biome keeps them in this form. */
const STATEMENT = /^(?:import|export)\b[^"';]*?\bfrom "([^"]+)"/gm;

/** Every TypeScript file of src/ with what it imports. */
export async function readSources(): Promise<SourceFile[]> {
  const paths = [...new Bun.Glob("**/*.{ts,tsx}").scanSync({ cwd: join(ROOT, "src") })].sort();
  return await Promise.all(
    paths.map(async (path) => {
      const text = await Bun.file(join(ROOT, "src", path)).text();
      return { path, imports: importsOf(path, text) };
    }),
  );
}

/** What a file imports; exported for the test that it finds every form. */
export function importsOf(path: string, text: string): Import[] {
  const transpiler = transpilers[path.endsWith(".tsx") ? "tsx" : "ts"];
  // scanImports does not know a `#!` line.
  const running = new Set(transpiler.scanImports(text.replace(/^#!.*/, "")).map((one) => one.path));
  const all = new Set([...running, ...Array.from(text.matchAll(STATEMENT), (match) => match[1] ?? "")]);
  return [...all].map((to) => ({ ...target(path, to), runs: running.has(to) }));
}

function target(from: string, to: string): Pick<Import, "to" | "kind"> {
  if (to.startsWith(".")) return { to: normalize(join(from, "..", to)), kind: "file" };
  return { to, kind: "package" };
}
