import { basename, join } from "node:path";
import type { ConsoleFile } from "../src/console/bundle.ts";
import { LIBRARIES } from "../src/models/local/library.ts";
import type { Platform } from "./compile.ts";

/**
 * Embeds the models, ONNX Runtime and the viewer of the API reference in the binary. Importing
 * `"model:<path in models/>"` or `"native:<file of onnxruntime-node>"` (`native:library` is ONNX Runtime itself), `with { type: "file" }`, returns a path to read
 * the file from; with the prefix `sha256:`, its checksum. `gzip:<file of a package>` returns a path to it gzipped. The files
 * of `split` are taken in place of those of `models/` with the same names.
 */
export function embedModels(root: string, { os, arch }: Platform, split: readonly string[]): Bun.BunPlugin {
  const natives = join(root, "node_modules/onnxruntime-node/bin/napi-v6", os, arch);
  const pathOf = (kind: string, file: string): string => {
    if (kind === "model") return split.find((path) => basename(path) === basename(file)) ?? join(root, "models", file);
    return join(natives, file === "library" ? LIBRARIES[os] : file);
  };
  return {
    name: "embed-models",
    setup(build) {
      // Without a namespace of its own, Bun would treat a .node file as a module to require.
      build.onResolve({ filter: /^(model|native):/ }, ({ path }) => {
        const [kind = "", file = ""] = path.split(":");
        return { path: pathOf(kind, file), namespace: "embed" };
      });
      build.onLoad({ filter: /.*/, namespace: "embed" }, async ({ path }) => ({
        contents: await Bun.file(path).bytes(),
        loader: "file",
      }));

      // Files for browsers, compressed as they are sent.
      build.onResolve({ filter: /^gzip:/ }, ({ path }) => ({
        // A unique path: Bun treats modules with the same path as one, even in different namespaces.
        path: join(root, "node_modules", `${path.slice("gzip:".length)}.gz`),
        namespace: "gzip",
      }));
      build.onLoad({ filter: /.*/, namespace: "gzip" }, async ({ path }) => ({
        contents: Bun.gzipSync(await Bun.file(path.slice(0, -".gz".length)).bytes(), { level: 9 }),
        loader: "file",
      }));

      // The checksum of a file, which src/models/local/files.ts verifies after unpacking and before loading it.
      build.onResolve({ filter: /^sha256:(model|native):/ }, ({ path }) => {
        const [, kind = "", file = ""] = path.split(":");
        // A unique path: Bun treats modules with the same path as one, even in different namespaces.
        return { path: `${pathOf(kind, file)}.sha256`, namespace: "sha256" };
      });
      build.onLoad({ filter: /.*/, namespace: "sha256" }, async ({ path }) => {
        const bytes = await Bun.file(path.slice(0, -".sha256".length)).bytes();
        const sum = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
        return { contents: `export default "${sum}";`, loader: "js" };
      });

      // Images are not used, but transformers.js checks while loading that `sharp` exists.
      build.onResolve({ filter: /^sharp$/ }, () => ({ path: "sharp", namespace: "stub" }));
      build.onLoad({ filter: /.*/, namespace: "stub" }, () => ({
        contents: `export default function sharp() { throw new Error("images are not part of this program"); }`,
        loader: "js",
      }));

      // A require() with a computed name cannot be bundled: replace it with a static import.
      build.onLoad({ filter: /transformers\.node\.mjs$/ }, async ({ path }) => {
        const contents = await rewrite(
          path,
          'var onnx_node_default = requireFromHere("onnxruntime-node");',
          'import onnx_node_default from "onnxruntime-node";',
        );
        return { contents: withoutOwnPath(contents), loader: "js" };
      });
      // They use their own path to find worker threads, which Roost does not use.
      build.onLoad({ filter: /node_modules[\\/](pino|thread-stream)[\\/].*\.js$/ }, async ({ path }) => ({
        contents: withoutOwnPath(await Bun.file(path).text()),
        loader: "js",
      }));
      // The native binding is loaded from where it was unpacked; src/models sets the path before importing this.
      build.onLoad({ filter: /onnxruntime-node[\\/]dist[\\/]binding\.js$/ }, async ({ path }) => ({
        contents: await rewrite(
          path,
          /require\(`\.\.\/bin\/napi-v6\/[^`]*`\)/,
          "(() => { const m = { exports: {} }; process.dlopen(m, globalThis.__ORT_BINDING); return m.exports; })()",
        ),
        loader: "js",
      }));
    },
  };
}

/** Embeds the console's files in the binary as `console:files`. They are built first: builds cannot be nested. */
export function embedConsole(files: readonly ConsoleFile[]): Bun.BunPlugin {
  return {
    name: "embed-console",
    setup(build) {
      build.onResolve({ filter: /^console:files$/ }, ({ path }) => ({ path, namespace: "console" }));
      build.onLoad({ filter: /.*/, namespace: "console" }, () => ({ contents: JSON.stringify(files), loader: "json" }));
    },
  };
}

/** For these two names, Bun would put the build machine's paths into the binary. */
const withoutOwnPath = (source: string): string => source.replace(/\b__(filename|dirname)\b/g, '""');

async function rewrite(path: string, from: string | RegExp, to: string): Promise<string> {
  const before = await Bun.file(path).text();
  const after = before.replace(from, () => to);
  if (after === before) throw new Error(`${path} is not what this build expects; adapt scripts/build-plugin.ts`);
  return after;
}
