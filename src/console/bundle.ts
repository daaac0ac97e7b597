import { basename, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

/** A file of the console, in each encoding that browsers accept, as base64. */
export interface ConsoleFile {
  path: string;
  type: string;
  /** The name includes a hash of the contents, so browsers can cache it forever. */
  lasts: boolean;
  etag: string;
  plain: string;
  gzip: string;
  br: string;
}

const BROWSER = join(import.meta.dir, "browser");

/**
 * The console's page, scripts, style sheet and icon: bundled, minified and compressed. Done once, when the binary is
 * built; from source, at the first request. The page loads the first script, and that the others when they are needed.
 */
export async function bundleConsole(): Promise<ConsoleFile[]> {
  const [scripts, styles] = await Promise.all([bundle("page.ts"), bundle("style.css")]);
  const files = [
    ...scripts.map(([path, text]) => fileOf(path, "text/javascript", text)),
    ...styles.map(([path, text]) => fileOf(path, "text/css", text)),
  ];
  const entries = { "./page.ts": scripts, "./style.css": styles };
  const html = Object.entries(entries).reduce(
    (text, [name, [entry]]) => {
      if (!text.includes(`"${name}"`)) throw new Error(`index.html does not include ${name}`);
      return text.replace(`"${name}"`, `"${entry?.[0]}"`);
    },
    await readPage(),
  );
  const icon = await Bun.file(join(BROWSER, "favicon.svg")).text();
  return [
    fileOf("/", "text/html", html.replaceAll(/\n\s+/g, "\n")),
    ...files,
    fileOf("/favicon.svg", "image/svg+xml", icon),
  ];
}

/** index.html, with the views that it includes from files of their own: `<!-- agent.html -->`. */
async function readPage(): Promise<string> {
  const page = await Bun.file(join(BROWSER, "index.html")).text();
  const includes = [...page.matchAll(/<!-- (\S+\.html) -->/g)];
  const views = await Promise.all(includes.map(([, name = ""]) => Bun.file(join(BROWSER, name)).text()));
  return includes.reduce((text, [mark], at) => text.replace(mark, () => views[at] ?? ""), page);
}

/** What the entry makes, by the paths that it has in the console; the entry itself first. */
async function bundle(entry: string): Promise<[path: string, text: string][]> {
  const { outputs } = await Bun.build({
    entrypoints: [join(BROWSER, entry)],
    target: "browser",
    minify: true,
    splitting: true,
    naming: { entry: "[name]-[hash].[ext]", chunk: "[name]-[hash].[ext]" },
  });
  const ordered = outputs.toSorted((one, other) => Number(other.kind !== "chunk") - Number(one.kind !== "chunk"));
  return Promise.all(
    ordered.map(
      async (output): Promise<[string, string]> => [`/console/${basename(output.path)}`, await output.text()],
    ),
  );
}

const hashOf = (text: string): string => Bun.hash(text).toString(36);

function fileOf(path: string, type: string, text: string): ConsoleFile {
  const bytes = Buffer.from(text);
  const bestQuality = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } };
  return {
    path,
    type,
    lasts: path.startsWith("/console/"),
    etag: hashOf(text),
    plain: bytes.toString("base64"),
    gzip: gzipSync(bytes, { level: 9 }).toString("base64"),
    br: brotliCompressSync(bytes, bestQuality).toString("base64"),
  };
}
