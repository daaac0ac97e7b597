import { join } from "node:path";
import type { ConsoleFile } from "../src/console/bundle.ts";

/**
 * Puts the models, ONNX Runtime and the viewer of the API reference into the binary. `import path from "model:<path below models/>"` and
 * `"native:<file of onnxruntime-node>"`, both `with { type: "file" }`, give a path that can be read from; with `sha256:`
 * before it, the sum of its contents. `gzip:` and a file of a package gives it gzipped.
 */
export function embedModels(root: string): Bun.BunPlugin {
  const folders: Record<string, string> = {
    model: join(root, "models"),
    native: join(root, "node_modules/onnxruntime-node/bin/napi-v6", process.platform, process.arch),
  };
  return {
    name: "embed-models",
    setup(build) {
      // A namespace of its own, or Bun takes a .node file for a module to be required.
      build.onResolve({ filter: /^(model|native):/ }, ({ path }) => {
        const [kind = "", file = ""] = path.split(":");
        return { path: join(folders[kind] ?? "", file), namespace: "embed" };
      });
      build.onLoad({ filter: /.*/, namespace: "embed" }, async ({ path }) => ({
        contents: await Bun.file(path).bytes(),
        loader: "file",
      }));

      // What is sent to browsers, as it is sent.
      build.onResolve({ filter: /^gzip:/ }, ({ path }) => ({
        // A path of its own: Bun takes two modules of one path for the same, whatever their namespaces.
        path: join(root, "node_modules", `${path.slice("gzip:".length)}.gz`),
        namespace: "gzip",
      }));
      build.onLoad({ filter: /.*/, namespace: "gzip" }, async ({ path }) => ({
        contents: Bun.gzipSync(await Bun.file(path.slice(0, -".gz".length)).bytes(), { level: 9 }),
        loader: "file",
      }));

      // What a file must be when it has been unpacked: src/models/local/files.ts looks before it is loaded.
      build.onResolve({ filter: /^sha256:(model|native):/ }, ({ path }) => {
        const [, kind = "", file = ""] = path.split(":");
        // A path of its own: Bun takes two modules of one path for the same, whatever their namespaces.
        return { path: `${join(folders[kind] ?? "", file)}.sha256`, namespace: "sha256" };
      });
      build.onLoad({ filter: /.*/, namespace: "sha256" }, async ({ path }) => {
        const bytes = await Bun.file(path.slice(0, -".sha256".length)).bytes();
        const sum = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
        return { contents: `export default "${sum}";`, loader: "js" };
      });

      // Images are never used; transformers.js only checks, while it loads, that `sharp` is something.
      build.onResolve({ filter: /^sharp$/ }, () => ({ path: "sharp", namespace: "stub" }));
      build.onLoad({ filter: /.*/, namespace: "stub" }, () => ({
        contents: `export default function sharp() { throw new Error("images are not part of this program"); }`,
        loader: "js",
      }));

      // What is required under a computed name cannot be bundled: make it a static import.
      build.onLoad({ filter: /transformers\.node\.mjs$/ }, async ({ path }) => {
        const contents = await rewrite(
          path,
          'var onnx_node_default = requireFromHere("onnxruntime-node");',
          'import onnx_node_default from "onnxruntime-node";',
        );
        return { contents: withoutOwnPath(contents), loader: "js" };
      });
      // They look beside themselves for worker threads, which Roost does not use.
      build.onLoad({ filter: /node_modules[\\/](pino|thread-stream)[\\/].*\.js$/ }, async ({ path }) => ({
        contents: withoutOwnPath(await Bun.file(path).text()),
        loader: "js",
      }));
      // The native binding is opened where it was unpacked to; models/ sets the path before it imports this.
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

/** Puts the console's files into the binary, as `console:files`. They are made before: one build does not run in another. */
export function embedConsole(files: readonly ConsoleFile[]): Bun.BunPlugin {
  return {
    name: "embed-console",
    setup(build) {
      build.onResolve({ filter: /^console:files$/ }, ({ path }) => ({ path, namespace: "console" }));
      build.onLoad({ filter: /.*/, namespace: "console" }, () => ({ contents: JSON.stringify(files), loader: "json" }));
    },
  };
}

/** For these two names Bun would write the build machine's folders into the binary. */
const withoutOwnPath = (source: string): string => source.replace(/\b__(filename|dirname)\b/g, '""');

async function rewrite(path: string, from: string | RegExp, to: string): Promise<string> {
  const before = await Bun.file(path).text();
  const after = before.replace(from, () => to);
  if (after === before) throw new Error(`${path} is not as this build expects it; adapt scripts/build-plugin.ts`);
  return after;
}
