import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

/** A file of the console as browsers take it, each form in base64. */
export interface ConsoleFile {
  path: string;
  type: string;
  /** Named for its contents: whoever has it need never ask again. */
  lasts: boolean;
  etag: string;
  plain: string;
  gzip: string;
  br: string;
}

const BROWSER = join(import.meta.dir, "browser");

/**
 * The console's page, its one script, its one style sheet and its icon: bundled, minified and compressed. Done once, when
 * the binary is built; from source, when the page is first asked for.
 */
export async function bundleConsole(): Promise<ConsoleFile[]> {
  const [script, style] = await Promise.all([bundle("page.ts"), bundle("style.css")]);
  const files = [
    fileOf(nameFor("page", "js", script), "text/javascript", script),
    fileOf(nameFor("style", "css", style), "text/css", style),
  ];
  const page = await Bun.file(join(BROWSER, "index.html")).text();
  const html = ["./page.ts", "./style.css"].reduce((text, name, at) => {
    if (!text.includes(`"${name}"`)) throw new Error(`index.html does not ask for ${name}`);
    return text.replace(`"${name}"`, `"${files[at]?.path}"`);
  }, page);
  const icon = await Bun.file(join(BROWSER, "favicon.svg")).text();
  return [
    fileOf("/", "text/html", html.replaceAll(/\n\s+/g, "\n")),
    ...files,
    fileOf("/favicon.svg", "image/svg+xml", icon),
  ];
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
  const inTheirBest = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } };
  return {
    path,
    type,
    lasts: path.startsWith("/console/"),
    etag: hashOf(text),
    plain: bytes.toString("base64"),
    gzip: gzipSync(bytes, { level: 9 }).toString("base64"),
    br: brotliCompressSync(bytes, inTheirBest).toString("base64"),
  };
}
