import { join } from "node:path";
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
 * The console's page, script, style sheet and icon: bundled, minified and compressed. Done once, when the binary is
 * built; from source, at the first request.
 */
export async function bundleConsole(): Promise<ConsoleFile[]> {
  const [script, style] = await Promise.all([bundle("page.ts"), bundle("style.css")]);
  const files = [
    fileOf(nameFor("page", "js", script), "text/javascript", script),
    fileOf(nameFor("style", "css", style), "text/css", style),
  ];
  const page = await readPage();
  const html = ["./page.ts", "./style.css"].reduce((text, name, at) => {
    if (!text.includes(`"${name}"`)) throw new Error(`index.html does not include ${name}`);
    return text.replace(`"${name}"`, `"${files[at]?.path}"`);
  }, page);
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

async function bundle(entry: string): Promise<string> {
  const { outputs } = await Bun.build({ entrypoints: [join(BROWSER, entry)], target: "browser", minify: true });
  const [output] = outputs;
  if (!output || outputs.length > 1) throw new Error(`${entry} made ${outputs.length} files`);
  return output.text();
}

const hashOf = (text: string): string => Bun.hash(text).toString(36);

const nameFor = (name: string, extension: string, text: string): string =>
  `/console/${name}-${hashOf(text)}.${extension}`;

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
